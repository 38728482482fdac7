"""One Kafka producer with a transactional id: a batch and its mark in one transaction."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from confluent_kafka import KafkaError, KafkaException, Producer

from kafka_client.messages import as_bytes
from spark_jobs.errors import ProducerFencedError, SparkJobError
from spark_jobs.sink.refusals import Refused

if TYPE_CHECKING:
    from confluent_kafka import Message

    from spark_jobs.settings import Properties
    from spark_jobs.sink.marker import Marker
    from spark_jobs.sink.refusals import OutputTopics
    from spark_jobs.worker.envelope import Record

# The client reports on stderr that it was fenced, which is a matter of course here: Spark gives a
# partition to any worker. What matters is raised.
_client_log = logging.getLogger(f"{__name__}.client")
_client_log.disabled = True

_TIMEOUT_SECONDS = 60.0
_POLL_SECONDS = 0.1
_PATIENCE_SECONDS = 3.0
# From begin to commit: a batch of millions of results takes a while. Behind a job that died and
# does not come back, consumers wait as long as this. Brokers allow 15 minutes by default.
_TRANSACTION_MS = 300_000
# What the client calls a broker of which it knows the address only.
_BOOTSTRAP = -1
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
# What an abort does to the records that were not sent yet: no failure of theirs.
_PURGED = frozenset(
    {
        KafkaError._PURGE_QUEUE,  # noqa: SLF001 - the client's public name
        KafkaError._PURGE_INFLIGHT,  # noqa: SLF001 - the client's public name
    }
)


class UnusableProducerError(SparkJobError):
    """The producer cannot go on; a new one can."""


class RefusedRecordsError(SparkJobError):
    """Kafka refused some records, and the transaction was aborted.

    Attributes
    ----------
    too_large : set of Refused
        Of these. Empty where topics were refused, which are avoided from now on.
    usable : bool
        Whether the producer can be used again.
    """

    def __init__(self, too_large: set[Refused], *, usable: bool) -> None:
        super().__init__(f"{len(too_large)} records are too large, or a topic was refused")
        self.too_large = too_large
        self.usable = usable


@dataclass(slots=True)
class _Failures:
    """What went wrong with records of the open transaction."""

    too_large: set[Refused] = field(default_factory=set)
    # Of topics that are avoided from now on: their records can be written elsewhere.
    avoided: set[str] = field(default_factory=set)
    other: list[KafkaError] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.too_large or self.avoided or self.other)


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


class TransactionalProducer:
    """A producer with its transactional id, and the first batch that is not in yet.

    Parameters
    ----------
    transactional_id : str
        As whom it writes.
    marker : Marker
        Where it marks its batches.
    properties : mapping
        librdkafka properties.
    outputs : OutputTopics
        Which topics can be written.
    batch_bytes : int
        Records are sent together up to this size.

    Raises
    ------
    ProducerFencedError, UnusableProducerError
        When Kafka does not take it.
    """

    def __init__(
        self,
        transactional_id: str,
        marker: Marker,
        properties: Properties,
        outputs: OutputTopics,
        batch_bytes: int,
    ) -> None:
        self._marker = marker
        self._outputs = outputs
        self._failures = _Failures()
        try:
            self._producer = Producer(
                {
                    "linger.ms": 5,
                    # Alarms are alike: a quarter of the disk, for no more time.
                    "compression.type": "lz4",
                    # How long the records of an unknown topic keep a batch waiting.
                    "topic.metadata.propagation.max.ms": 5_000,
                    "transaction.timeout.ms": _TRANSACTION_MS,
                    **properties,
                    "batch.size": batch_bytes,
                    "transactional.id": transactional_id,
                    "message.max.bytes": _MOST_BYTES,
                    "delivery.report.only.error": True,
                    "on_delivery": self._on_delivery,
                },
                logger=_client_log,
            )
            self._connect(marker.topic)
            # Ends what an earlier producer of this id left open, before the mark is read.
            self._producer.init_transactions(_TIMEOUT_SECONDS)
            self.next_batch = marker.next_batch()
        except KafkaException as error:
            raise _as_own_error(error) from error

    def _connect(self, topic: str) -> None:
        """Wait for a connection to a broker proper.

        While the client only knows the bootstrap addresses, or is leaving one of them, it does not
        find its coordinator, and looks for it again half a second later.
        """
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            if self._producer.list_topics(topic, _TIMEOUT_SECONDS).orig_broker_id != _BOOTSTRAP:
                return

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is None or error.code() in _PURGED:
            return
        topic = message.topic() or ""
        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            refused = Refused(topic, as_bytes(message.key()), as_bytes(message.value()))
            self._failures.too_large.add(refused)
        elif self._outputs.refuse(topic, error):
            self._failures.avoided.add(topic)
        else:
            self._failures.other.append(error)

    def write(self, batch: int, records: Iterable[Record]) -> int:
        """Write the records and the mark in one transaction.

        Parameters
        ----------
        batch : int
            Its number; the mark says that it is in.
        records : iterable of Record
            All that this partition has in the batch.

        Returns
        -------
        int
            Number of records.

        Raises
        ------
        RefusedRecordsError
            Some can be written in another way.
        ProducerFencedError, UnusableProducerError
            This producer cannot.
        """
        self._failures = _Failures()
        try:
            self._producer.begin_transaction()
            count = 0
            for record in records:
                self._produce(record)
                count += 1
            self._flush()
            self._producer.send_offsets_to_transaction(
                [self._marker.of(batch)], self._marker.group, _TIMEOUT_SECONDS
            )
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

    def _abort_transaction(self) -> None:
        """Abort; an attempt that takes long goes on after the client's events were served."""
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while True:
            try:
                self._producer.abort_transaction(_PATIENCE_SECONDS)
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise
                self._producer.poll(_POLL_SECONDS)
            else:
                return

    def _abort(self, error: KafkaException) -> NoReturn:
        """Abort the transaction and say what that means: always raises."""
        cause = error.args[0]
        if cause.fatal() or cause.code() in _FENCED:
            raise _as_own_error(error) from error
        failures, usable = self._failures, True
        try:
            if cause.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                # Kafka does not say which topic may not be written any more.
                failures.avoided |= self._outputs.refuse_missing()
            self._abort_transaction()
        except KafkaException as second:
            # Where the first record was not authorised, there is nothing to abort for Kafka.
            if not failures.avoided:
                raise _as_own_error(second) from error
            usable = False
        if failures and not failures.other:
            raise RefusedRecordsError(failures.too_large, usable=usable) from error
        reasons = "; ".join(sorted(set(map(str, failures.other)))) or str(error)
        raise UnusableProducerError(f"Kafka refused the records of a batch: {reasons}") from error


def _as_own_error(error: KafkaException) -> SparkJobError:
    cause = error.args[0]
    if cause.fatal() or cause.code() in _FENCED:
        return ProducerFencedError(str(error))
    return UnusableProducerError(f"the transaction failed: {error}")
