"""Writes of several records of the config topic in one Kafka transaction.

Either all records of a transaction are read or none of them. Every record except the last one has
a header that announces the next one, so that readers apply the records together: a consumer does
not see where a transaction ends.

If the service ends between the first record and the commit, the transaction stays open, and nothing
behind it is read. The next service with the same transactional id ends it (`settle`); otherwise the
broker ends it after the timeout of the transaction.

Several processes may write with the same transactional id. Kafka lets only the newest of them
commit; `begin` makes this process the newest. A process that begins, reads the topic to its end,
checks and then commits has therefore checked the records of all others: a commit after another
process has begun fails with `OvertakenError`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from correlation.limits import CONFIG_RECORD_BYTES
from correlation.resources.record_types import CONTINUED_HEADER
from kafka_client.clients import UserAdmin, find_unwritable
from kafka_client.partition_offsets import Edge, list_offsets
from kafka_client.rights import with_right
from service.errors import BrokerError, OvertakenError, ServiceError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.settings import Settings

# The client's broker id of a bootstrap address.
_BOOTSTRAP = -1
_SHORTEST_SECONDS = 1.0
# A producer that was not used for this time may have lost its brokers (`kafka_client.renewed`).
_IDLE_SECONDS = 60.0
# Error codes of a producer that is not the newest with its transactional id any more, or whose id
# the broker has forgotten after days without a transaction.
_OVERTAKEN = frozenset(
    {
        KafkaError._FENCED,  # noqa: SLF001  librdkafka's own codes carry the underscore
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
        KafkaError.PRODUCER_FENCED,
        KafkaError.UNKNOWN_PRODUCER_ID,
    }
)


class NewRecord(NamedTuple):
    """A record to write: key, value (None deletes) and headers."""

    key: bytes
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


class Others(NamedTuple):
    """Records of another topic with one partition, made from the offsets of the first records."""

    topic: str
    make: Callable[[Sequence[int]], Iterable[NewRecord]]


class Transactions:
    """Writes records of a topic with one partition, in transactions.

    Parameters
    ----------
    settings : Settings
        Broker address and timeouts.
    topic : str
        The topic; also the transactional id.
    """

    def __init__(self, settings: Settings, topic: str) -> None:
        self._settings = settings
        self._topic = topic
        # A transaction of this id may be open: of an earlier process, or after an error.
        self._is_settled = False
        # None: another process may have begun since the last write of this one.
        self._producer: Producer | None = None
        self._used_at = 0.0

    def settle(self) -> None:
        """End a transaction of this id that an earlier process, or an error, has left open.

        Raises
        ------
        BrokerError
            When the broker does not answer.
        """
        if self._is_settled:
            return
        seconds = self._settings.broker_timeout_seconds
        place = (self._topic, 0)
        try:
            admin = UserAdmin(self._settings.client_properties("coincide-service-admin"))
            ends = [
                list_offsets(admin, [place], edge, seconds)[place]
                for edge in (Edge.COMMITTED_END, Edge.END)
            ]
            if ends[0] != ends[1]:
                self._open(seconds)
        except KafkaException as error:
            # Another process that has begun meanwhile has ended the open transaction.
            if not _is_overtaken(error):
                raise BrokerError(
                    f"an open transaction on {self._topic} could not be ended: {_sentence(error)}"
                ) from error
        self._is_settled = True

    def begin(self) -> None:
        """Become the newest process that writes; this ends an open transaction of another one.

        Nothing is done if this process has begun or written within the last minute, and as far as
        it knows no other one has begun since.

        Raises
        ------
        OvertakenError
            When another process has begun meanwhile.
        BrokerError
            When the broker does not answer.
        """
        is_recent = time.monotonic() - self._used_at < _IDLE_SECONDS
        if self._producer is not None and is_recent:
            return
        try:
            self._producer = self._open(self._settings.broker_timeout_seconds)
            self._used_at = time.monotonic()
        except KafkaException as error:
            raise _not_written(error) from error
        self._is_settled = True

    def close(self) -> None:
        """Close the client."""
        self._producer = None

    def write(
        self,
        records: Sequence[NewRecord],
        timeout_seconds: float,
        others: Others | None = None,
    ) -> int:
        """Write records in one transaction.

        Parameters
        ----------
        records : sequence of NewRecord
            The records, in this order.
        timeout_seconds : float
            Max time until the transaction is committed.
        others : Others or None
            Records of another topic in the same transaction.

        Returns
        -------
        int
            Offset of the last record; -1: no records were given.

        Raises
        ------
        OvertakenError
            When another process has begun since `begin`; nothing was written.
        BrokerError
            When the transaction was aborted, or the broker did not confirm its commit in time.
        """
        deadline = time.monotonic() + timeout_seconds
        if self._producer is None:
            self.begin()
        producer, self._producer = self._producer, None
        if producer is None:
            raise ValueError("begin opens a producer")
        self._is_settled = False
        try:
            producer.begin_transaction()
            offsets = self._produce(producer, self._topic, _announced(records), deadline)
            if others is not None:
                self._produce(producer, others.topic, others.make(offsets), deadline)
        except (KafkaException, BufferError) as error:
            raise self._aborted(producer, error) from error
        try:
            producer.commit_transaction(_left(deadline))
        except KafkaException as error:
            if _is_overtaken(error) or error.args[0].txn_requires_abort():
                raise self._aborted(producer, error) from error
            raise BrokerError(
                "Kafka did not confirm the transaction in time: either all changes will be in "
                f"force, or none of them; compare with GET /v1/config ({_sentence(error)})"
            ) from error
        self._is_settled = True
        self._producer, self._used_at = producer, time.monotonic()
        return max(offsets, default=-1)

    def _aborted(self, producer: Producer, cause: Exception) -> ServiceError:
        """Abort the transaction and return the error of the write.

        If the broker does not answer, `settle` or `begin` ends the transaction later.
        """
        try:
            producer.abort_transaction(self._settings.broker_timeout_seconds)
            self._is_settled = True
        except KafkaException as error:
            # If another process has begun, the cause may be `_FATAL` or an unknown error; the error
            # of the abort says so.
            if _is_overtaken(error):
                return _not_written(error)
        return _not_written(cause)

    def _open(self, timeout_seconds: float) -> Producer:
        """Return a new producer; this ends an open transaction of the same id."""
        deadline = time.monotonic() + timeout_seconds
        timeout_ms = max(1000, int(self._settings.write_timeout_seconds * 1000))
        producer = Producer(
            {
                **self._settings.client_properties("coincide-service"),
                "transactional.id": self._topic,
                # After a crash, readers wait for the end of the transaction up to this time.
                "transaction.timeout.ms": timeout_ms,
                "message.timeout.ms": timeout_ms,
                "linger.ms": 0,
                # The record of a stream contains its templates.
                "message.max.bytes": CONFIG_RECORD_BYTES,
            }
        )
        # While the client knows only bootstrap addresses it does not find its coordinator, and
        # tries again after half a second.
        while producer.list_topics(self._topic, _left(deadline)).orig_broker_id == _BOOTSTRAP:
            if time.monotonic() > deadline:
                break
        try:
            producer.init_transactions(_left(deadline))
        except KafkaException as error:
            user = self._settings.kafka_user
            raise KafkaException(with_right(error.args[0], "Write", self._topic, user)) from error
        return producer

    def _produce(
        self, producer: Producer, topic: str, records: Iterable[NewRecord], deadline: float
    ) -> list[int]:
        """Send records and wait until the broker has them; return their offsets."""
        failures: list[KafkaError] = []
        offsets: list[int] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                failures.append(error)
            else:
                offsets.append(message.offset() or 0)

        for record in records:
            headers: list[tuple[str, str | bytes | None]] = list(record.headers)
            producer.produce(
                topic,
                record.value,
                record.key,
                partition=0,
                headers=headers,
                on_delivery=delivered,
            )
        left = _flush(producer, _left(deadline))
        if failures:
            self._check_right(topic)
            raise KafkaException(failures[0])
        if left:
            self._check_right(topic)
            raise KafkaException(
                KafkaError(KafkaError._TIMED_OUT, "the broker did not answer in time")  # noqa: SLF001  librdkafka's own codes carry the underscore
            )
        return offsets

    def _check_right(self, topic: str) -> None:
        """Raise KafkaException if records were not sent because a right to a topic is missing."""
        admin = UserAdmin(self._settings.client_properties("coincide-service-admin"))
        for error in find_unwritable(admin, [topic], self._settings.broker_timeout_seconds):
            raise KafkaException(error)


def _flush(producer: Producer, seconds: float) -> int:
    """Send all records; return the number of those that the broker does not have in time.

    Raises
    ------
    KafkaException
        The producer cannot be used any more.
    """
    try:
        return int(producer.flush(seconds))
    except SystemError as error:
        # A fatal error arrived together with the result of a delivery, which the client reports
        # although an error is raised already.
        if isinstance(error.__cause__, KafkaException):
            raise error.__cause__ from error
        raise


def _is_overtaken(error: Exception) -> bool:
    """Return whether an error says that another process has begun."""
    found = error.args[0] if error.args else None
    return isinstance(found, KafkaError) and found.code() in _OVERTAKEN


def _not_written(error: Exception) -> ServiceError:
    """Return the error of a write of which nothing was written."""
    kind = OvertakenError if _is_overtaken(error) else BrokerError
    return kind(f"nothing was written: {_sentence(error)}")


def _announced(records: Sequence[NewRecord]) -> Iterator[NewRecord]:
    """Yield records with the header that announces the next one."""
    for place, record in enumerate(records, start=1):
        more = ((CONTINUED_HEADER, b"1"),) if place < len(records) else ()
        yield record._replace(headers=(*record.headers, *more))


def _left(deadline: float) -> float:
    return max(_SHORTEST_SECONDS, deadline - time.monotonic())


def _sentence(error: Exception) -> str:
    found = error.args[0] if error.args else None
    return found.str() if isinstance(found, KafkaError) else str(error)
