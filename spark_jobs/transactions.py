"""Kafka transactions of one partition of the sink: each batch in it once."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

from correlation.topics import Topics
from spark_jobs.errors import DeliveryError, ProducerFencedError
from spark_jobs.refusals import OutputTopics, shorten

if TYPE_CHECKING:
    from confluent_kafka import Message

    from spark_jobs.envelope import Record
    from spark_jobs.settings import Properties

_log = logging.getLogger(__name__)
# The client reports on stderr that it was fenced, which is a matter of course here: Spark gives a
# partition to any worker. What matters is raised.
_client_log = logging.getLogger(f"{__name__}.client")
_client_log.disabled = True

_TIMEOUT_SECONDS = 60.0
_POLL_SECONDS = 0.1
_PATIENCE_SECONDS = 3.0
# Offsets are not negative where one was committed.
_NOTHING_COMMITTED = 0
# No record that Kafka takes is larger; the broker's and the topic's own limits decide.
_MOST_BYTES = 256 * 1024 * 1024
_FENCED = frozenset(
    {
        KafkaError._FENCED,  # noqa: SLF001 - the client's public name
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
    }
)
_MOVING = frozenset(
    {
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
        KafkaError._WAIT_COORD,  # noqa: SLF001 - the client's public name
    }
)
# What an abort does to the records that were not sent yet: no failure of theirs.
_PURGED = frozenset(
    {
        KafkaError._PURGE_QUEUE,  # noqa: SLF001 - the client's public name
        KafkaError._PURGE_INFLIGHT,  # noqa: SLF001 - the client's public name
    }
)
# A batch is tried again as long as its records can be mended, but not for ever.
_MOST_ATTEMPTS = 10


class Target(NamedTuple):
    """As whom a task writes (the transactional id, also its group's), and the installation.

    The marker is partition 0 of the config topic: offsets are committed there, nothing is written.
    """

    transactional_id: str
    topics: Topics


@dataclass(slots=True)
class _Failures:
    """Records of the open transaction that Kafka refused."""

    too_large: set[tuple[str, bytes | None]] = field(default_factory=set)
    # Of topics that are avoided from now on: their records can be written elsewhere.
    avoided: set[str] = field(default_factory=set)
    other: list[KafkaError] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.too_large or self.avoided or self.other)


class PartitionProducer:
    """Writes the batches of one partition of the sink, each once.

    Parameters
    ----------
    target : Target
        Transactional id and marker.
    properties : mapping
        librdkafka properties.
    """

    def __init__(self, target: Target, properties: Properties) -> None:
        self._target = target
        self._properties = properties
        self._session: _Session | None = None

    def write(self, batch: int, records: Iterable[Record]) -> int:
        """Write the records of a batch, unless they are already in.

        Parameters
        ----------
        batch : int
            Number of the batch; batches come in ascending order, the last one perhaps again.
        records : iterable of Record
            All that this partition has in the batch; looked through once for each attempt.

        Returns
        -------
        int
            Number of records written; 0 when the batch was already in.

        Raises
        ------
        DeliveryError
            Kafka did not take them; nothing of the batch is visible.
        """
        try:
            return self._write(batch, records)
        except ProducerFencedError:
            # Another worker had this partition meanwhile. Now it is ours: open anew, once.
            self._session = None
        try:
            return self._write(batch, records)
        except ProducerFencedError as error:
            self._session = None
            raise DeliveryError(f"another job writes as {self._target[0]}: {error}") from error

    def _write(self, batch: int, records: Iterable[Record]) -> int:
        try:
            session = self._session or _Session(self._target, self._properties)
            self._session = session
            if batch < session.next_batch:
                return 0
            for _ in range(_MOST_ATTEMPTS):
                try:
                    return session.write(batch, records)
                except _MendableError as error:
                    records = _mend(records, error)
        except _ReopenError as error:
            self._session = None
            raise DeliveryError(str(error)) from error
        raise DeliveryError(f"batch {batch}: Kafka refused its records again and again")


class _ReopenError(Exception):
    """The producer cannot go on; a new one can."""


class _MendableError(Exception):
    """Kafka refused some records that can be mended; the transaction was aborted."""

    def __init__(self, failures: _Failures) -> None:
        super().__init__("some records were refused")
        self.failures = failures


def _mend(records: Iterable[Record], error: _MendableError) -> Iterable[Record]:
    """Give the records as they may be taken; those of avoided topics are directed elsewhere."""
    too_large = error.failures.too_large
    if not too_large:
        return records
    shortened = shorten(records, too_large)
    if shortened is None:
        raise _ReopenError(f"a topic's max.message.bytes is too small for {too_large}")
    return shortened


class _Waiting:
    """How long Kafka has been keeping a transaction waiting."""

    def __init__(self) -> None:
        self._deadline = time.monotonic() + _TIMEOUT_SECONDS
        self._next_asking = time.monotonic() + _PATIENCE_SECONDS

    def is_over(self) -> bool:
        """Tell whether it takes too long."""
        return time.monotonic() > self._deadline

    def asks_now(self) -> bool:
        """Tell whether it is time to ask what Kafka waits for: every few seconds."""
        if time.monotonic() < self._next_asking:
            return False
        self._next_asking = time.monotonic() + _PATIENCE_SECONDS
        return True


class _Session:
    """A producer with its transactional id, and the first batch that is not in yet."""

    def __init__(self, target: Target, properties: Properties) -> None:
        self._marker = TopicPartition(target.topics.config, 0)
        self._failures = _Failures()
        self._producer = Producer(
            {
                "linger.ms": 5,
                # Alarms are alike: a quarter of the disk, for no more time.
                "compression.type": "lz4",
                # How long the records of an unknown topic keep a batch waiting.
                "topic.metadata.propagation.max.ms": 5_000,
                **properties,
                "transactional.id": target.transactional_id,
                "message.max.bytes": _MOST_BYTES,
                "delivery.report.only.error": True,
                "on_delivery": self._on_delivery,
            },
            logger=_client_log,
        )
        self._outputs = OutputTopics(target.topics, self._producer)
        try:
            # Ends what an earlier producer of this id left open, before the mark is read.
            self._producer.init_transactions(_TIMEOUT_SECONDS)
            self.next_batch = self._read_mark(target.transactional_id, properties)
        except KafkaException as error:
            raise _as_session_error(error) from error

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is None or error.code() in _PURGED:
            return
        topic = message.topic() or ""
        if self._outputs.refuse(topic, error):
            self._failures.avoided.add(topic)
        elif error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            self._failures.too_large.add((topic, _as_bytes(message.key())))
        else:
            self._failures.other.append(error)

    def _read_mark(self, group: str, properties: Properties) -> int:
        # The consumer joins no group; it only asks what the group has committed.
        consumer = Consumer(
            {
                **properties,
                "group.id": group,
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            },
            logger=_client_log,
        )
        try:
            committed = self._ask_committed(consumer)
            self._group = consumer.consumer_group_metadata()
        finally:
            consumer.close()
        return max(int(committed.offset), _NOTHING_COMMITTED)

    def _ask_committed(self, consumer: Consumer) -> TopicPartition:
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while True:
            try:
                committed = consumer.committed([self._marker], timeout=_TIMEOUT_SECONDS)[0]
                error = committed.error
            except KafkaException as raised:
                error = raised.args[0]
            if error is None:
                return committed
            # A coordinator that is new, or moves, answers later.
            if error.code() not in _MOVING or time.monotonic() > deadline:
                raise KafkaException(error)
            self._producer.poll(_POLL_SECONDS)

    def write(self, batch: int, records: Iterable[Record]) -> int:
        """Write the records and the mark in one transaction; gives the number of records."""
        self._failures = _Failures()
        try:
            self._producer.begin_transaction()
            count = 0
            for record in records:
                self._produce(self._outputs.direct(record))
                count += 1
            self._flush()
            mark = TopicPartition(self._marker.topic, self._marker.partition, batch + 1)
            self._producer.send_offsets_to_transaction([mark], self._group, _TIMEOUT_SECONDS)
            self._producer.commit_transaction(_TIMEOUT_SECONDS)
        except KafkaException as error:
            self._abort(error)
        self.next_batch = batch + 1
        return count

    def _produce(self, record: Record) -> None:
        waiting: _Waiting | None = None
        while True:
            try:
                self._producer.produce(
                    record.topic,
                    value=record.value,
                    key=record.key,
                    headers=list(record.headers),
                )
            except BufferError:
                # The local queue is full: let some of it out, then go on.
                waiting = waiting or _Waiting()
                self._producer.poll(_POLL_SECONDS)
                self._look(waiting)
            else:
                return

    def _flush(self) -> None:
        """Wait until Kafka has all records, or has refused one of them.

        A commit would wait for the records behind a refused one, which never go out.
        """
        waiting = _Waiting()
        while self._producer.flush(_POLL_SECONDS):
            self._look(waiting)
        self._look(waiting)

    def _look(self, waiting: _Waiting) -> None:
        """Go on waiting only while there is hope."""
        if waiting.asks_now():
            # The records of a topic that was deleted just now wait without being refused.
            self._failures.avoided |= self._outputs.refuse_missing()
        if self._failures or waiting.is_over():
            raise KafkaException(
                KafkaError(KafkaError._TIMED_OUT, "records were not acknowledged")  # noqa: SLF001 - the client's public name
            )

    def _abort(self, error: KafkaException) -> NoReturn:
        """Abort the transaction and say what that means: always raises."""
        cause = error.args[0]
        if cause.fatal() or cause.code() in _FENCED:
            raise _as_session_error(error) from error
        try:
            self._producer.abort_transaction(_TIMEOUT_SECONDS)
        except KafkaException as second:
            raise _as_session_error(second) from error
        if self._failures and not self._failures.other:
            raise _MendableError(self._failures)
        reasons = "; ".join(sorted(set(map(str, self._failures.other)))) or str(error)
        raise _ReopenError(f"Kafka refused the records of a batch: {reasons}") from error


def _as_session_error(error: KafkaException) -> Exception:
    cause = error.args[0]
    if cause.fatal() or cause.code() in _FENCED:
        return ProducerFencedError(str(error))
    return _ReopenError(f"the transaction failed: {error}")


def _as_bytes(key: str | bytes | None) -> bytes | None:
    return key.encode() if isinstance(key, str) else key
