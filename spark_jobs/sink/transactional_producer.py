"""A Kafka producer with a transactional id, which writes a batch and its mark atomically."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from confluent_kafka import KafkaError, KafkaException

from kafka_client.messages import as_bytes
from kafka_client.rights import with_right
from kafka_client.users import user_of
from spark_jobs.errors import SparkJobError
from spark_jobs.sink.refusals import Refused
from spark_jobs.sink.transactional_client import (
    FENCED,
    TIMEOUT_SECONDS,
    UnusableProducerError,
    as_own_error,
    open_producer,
    send_offsets,
)

if TYPE_CHECKING:
    from confluent_kafka import Message

    from spark_jobs.settings import Properties
    from spark_jobs.sink.marker import Marker
    from spark_jobs.sink.refusals import OutputTopics
    from spark_jobs.worker.envelope import Record

_POLL_SECONDS = 0.1
# A full queue has room again within milliseconds; no event ends the wait.
_ROOM_SECONDS = 0.01
_PATIENCE_SECONDS = 3.0
# Time from begin to commit; a batch of millions of results takes a while. After a job has died,
# consumers wait up to this time. Brokers allow 15 minutes by default.
_TRANSACTION_MS = 300_000
# Larger than any record that Kafka accepts, so that the limits of broker and topic decide.
_MAX_BYTES = 256 * 1024 * 1024
# Errors of unsent records after an abort; they are not failures.
_PURGED = frozenset(
    {
        KafkaError._PURGE_QUEUE,  # noqa: SLF001 - the client's public name
        KafkaError._PURGE_INFLIGHT,  # noqa: SLF001 - the client's public name
    }
)


class RefusedRecordsError(SparkJobError):
    """Kafka refused some records, and the transaction was aborted.

    Attributes
    ----------
    too_large : set of Refused
        Records that are too large. Empty when topics were refused, which are avoided from now on.
    usable : bool
        Whether the producer can be used again.
    """

    def __init__(self, too_large: set[Refused], *, usable: bool) -> None:
        super().__init__(f"{len(too_large)} records are too large, or a topic was rejected")
        self.too_large = too_large
        self.usable = usable


@dataclass(slots=True)
class _Failures:
    """Failures of records of the open transaction."""

    too_large: set[Refused] = field(default_factory=set)
    # Topics that are avoided from now on; their records can be redirected.
    avoided: set[str] = field(default_factory=set)
    other: list[KafkaError] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.too_large or self.avoided or self.other)


class _Waiting:
    """Timer of a transaction that waits for Kafka."""

    def __init__(self) -> None:
        self._deadline = time.monotonic() + TIMEOUT_SECONDS
        self._next_asking = time.monotonic() + _PATIENCE_SECONDS

    def is_over(self) -> bool:
        """Return whether the timeout has passed."""
        return time.monotonic() > self._deadline

    def asks_now(self) -> bool:
        """Return whether the cause must be queried now, which is every few seconds."""
        if time.monotonic() < self._next_asking:
            return False
        self._next_asking = time.monotonic() + _PATIENCE_SECONDS
        return True


class TransactionalProducer:
    """A producer with its transactional id, and the first batch that is not written yet.

    Parameters
    ----------
    transactional_id : str
        Transactional id of the producer.
    marker : Marker
        Marks of the batches.
    properties : mapping
        librdkafka properties.
    outputs : OutputTopics
        Topics that can be written.
    batch_bytes : int
        Max size of a batch of records in a request, in bytes.
    check_claim : callable
        Raises an error if this job does not own the installation (`Claims.check`). A job that
        claims the installation later fences off this producer.

    Raises
    ------
    ClaimLostError
        When another job owns the installation.
    ProducerFencedError, UnusableProducerError
        When Kafka does not accept the producer.
    """

    def __init__(
        self,
        transactional_id: str,
        marker: Marker,
        properties: Properties,
        outputs: OutputTopics,
        batch_bytes: int,
        check_claim: Callable[[], None],
    ) -> None:
        self._id, self._user = transactional_id, user_of(properties)
        self._marker = marker
        self._outputs = outputs
        self._failures = _Failures()
        # Topics of the open transaction.
        self._topics: set[str] = set()
        try:
            self._producer = open_producer(
                transactional_id,
                marker.topic,
                {
                    # Batches are sent when they are full, and all at the end of a transaction,
                    # which does not wait for this time. More batches cost more processor time.
                    "linger.ms": 100,
                    # Alarms are similar: lz4 needs a quarter of the disk at the same speed.
                    "compression.type": "lz4",
                    # Max time for which records of an unknown topic delay a batch.
                    "topic.metadata.propagation.max.ms": 5_000,
                    "transaction.timeout.ms": _TRANSACTION_MS,
                    **properties,
                    "batch.size": batch_bytes,
                    "message.max.bytes": _MAX_BYTES,
                    "delivery.report.only.error": True,
                    "on_delivery": self._on_delivery,
                },
            )
            # Both are read after an open transaction of an earlier producer of this id has ended.
            check_claim()
            self.next_batch = marker.find_next_batch()
        except KafkaException as error:
            raise self._own_error(error) from error

    def _own_error(self, error: KafkaException) -> SparkJobError:
        return as_own_error(error, self._id, self._marker.name, self._user)

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
            self._failures.other.append(with_right(error, "Write", topic, self._user))

    def write(
        self, batch: int, records: Iterable[Record], patience_seconds: float = TIMEOUT_SECONDS
    ) -> int:
        """Write the records and both marks in one transaction.

        Parameters
        ----------
        batch : int
            Number of the batch, which the mark stores.
        records : iterable of Record
            All records of this partition in the batch.
        patience_seconds : float
            Max time to commit the mark of the group.

        Returns
        -------
        int
            Number of records.

        Raises
        ------
        RefusedRecordsError
            When refused records can be written in another form.
        SilentCoordinatorError
            When the mark of the group is not committed in time.
        ProducerFencedError, UnusableProducerError
            When this producer cannot continue.
        """
        self._failures, self._topics = _Failures(), set()
        try:
            self._producer.begin_transaction()
            count = self._send(records)
            self._send([self._marker.record_of(self._id, batch)])
            self._flush()
            send_offsets(
                self._producer, [self._marker.of(batch)], self._marker.group, patience_seconds
            )
            self._producer.commit_transaction(TIMEOUT_SECONDS)
        except KafkaException as error:
            self._abort(error)
        self.next_batch = batch + 1
        return count

    def _send(self, records: Iterable[Record]) -> int:
        """Pass records to the client and return their number; this loop runs for every alarm."""
        produce, add_topic = self._producer.produce, self._topics.add
        count = 0
        for record in records:
            topic, key, value, headers = record
            add_topic(topic)
            try:
                produce(topic, value, key, headers=headers if type(headers) is list else [*headers])
            except (BufferError, KafkaException):
                self._produce(record)
            count += 1
        return count

    def _produce(self, record: Record) -> None:
        """Pass a record to the client as soon as the client has room for it."""
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
                # The local queue is full: wait until some records are sent.
                waiting = waiting or _Waiting()
                self._producer.poll(_ROOM_SECONDS)
                self._look(waiting)
            except KafkaException as error:
                # Larger than any record that the client sends.
                if error.args[0].code() != KafkaError.MSG_SIZE_TOO_LARGE:
                    raise
                self._failures.too_large.add(Refused(record.topic, record.key, record.value))
                return
            else:
                return

    def _flush(self) -> None:
        """Wait until Kafka has all records or has refused a record.

        A commit would wait for the records after a refused record, which are never sent.
        """
        waiting = _Waiting()
        while self._producer.flush(_POLL_SECONDS):
            self._look(waiting)
        self._look(waiting)

    def _look(self, waiting: _Waiting) -> None:
        """Raise when a record was refused or the timeout has passed."""
        if waiting.asks_now():
            # Records of a topic that was just deleted, or may not be written, wait without being
            # refused.
            self._ask_for_refusals()
        if self._failures or waiting.is_over():
            raise KafkaException(
                KafkaError(KafkaError._TIMED_OUT, "records were not acknowledged")  # noqa: SLF001 - the client's public name
            )

    def _ask_for_refusals(self) -> None:
        """Query the broker for topics that cannot be written."""
        self._failures.avoided |= self._outputs.refuse_missing()
        self._failures.other += self._outputs.find_unwritable(self._topics)

    def _abort_transaction(self) -> None:
        """Abort the transaction; between attempts, serve the client's events."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
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
        """Abort the transaction and raise the error that describes the cause."""
        cause = error.args[0]
        if cause.fatal() or cause.code() in FENCED:
            raise self._own_error(error) from error
        failures, usable = self._failures, True
        try:
            if cause.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                # Kafka does not name the topic that is no longer authorized.
                self._ask_for_refusals()
            self._abort_transaction()
        except KafkaException as second:
            # When the first record was not authorized, Kafka has no transaction to abort.
            if not (failures.avoided or failures.other):
                raise self._own_error(second) from error
            usable = False
        if failures and not failures.other:
            raise RefusedRecordsError(failures.too_large, usable=usable) from error
        own = self._own_error(error)
        reasons = "; ".join(sorted({it.str() for it in failures.other})) or str(own)
        raise UnusableProducerError(f"Kafka refused the records of a batch: {reasons}") from error
