"""A Kafka topic as a log that a service reads from its beginning and writes to.

One partition is read by one background thread, which hands every record to a function and keeps
the position. `wait_for` gives read-your-writes: a writer waits until its own record came back.
Caught up means position ≥ end; an empty partition is caught up. The position comes from the
consumer, also over what it does not deliver (compacted records, markers of transactions).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from confluent_kafka import (
    OFFSET_BEGINNING,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from correlation.limits import CONFIG_RECORD_BYTES
from kafka_client.consumers import END_OF_PARTITION, open_consumer
from kafka_client.partition_offsets import Edge, list_offsets
from service.errors import BrokerError, LogStoppedError
from service.topic_identity import TopicIdentity

if TYPE_CHECKING:
    from confluent_kafka import Consumer

    from service.settings import Settings

_LOGGER = logging.getLogger(__name__)
_POLL_SECONDS = 0.1
# How often the reader asks whether the topic is still the same, and how long it waits for that.
_IDENTITY_SECONDS = 2.0
_IDENTITY_TIMEOUT_SECONDS = 1.0
# Errors after which the records seen so far are no longer what the topic holds.
_BROKEN_LOG = frozenset(
    {
        KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001  librdkafka's own codes carry the underscore
        KafkaError.OFFSET_OUT_OF_RANGE,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
    }
)
# Errors of a topic that was created, or moved, a moment ago.
_SETTLING = frozenset(
    {
        KafkaError._NOENT,  # noqa: SLF001  as above; "No leaders found"
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)


Headers = Sequence[tuple[str, bytes | None]]


class LogRecord(NamedTuple):
    """One record: its offset, key, value (None deletes), Kafka timestamp in µs, and headers."""

    offset: int
    key: bytes | None
    value: bytes | None
    record_timestamp_us: int
    headers: Headers = ()


class TopicLog:
    """The one partition of a topic, read from the beginning and kept up with.

    Parameters
    ----------
    settings : Settings
        Where the broker is and how long it may take.
    topic : str
        A topic of one partition.
    apply : callable
        Takes each record, in order, in the reader's thread. An exception stops the log for good.
    on_failure : callable, optional
        Called in the reader's thread when the log stops by itself.
    """

    def __init__(
        self,
        settings: Settings,
        topic: str,
        apply: Callable[[LogRecord], None],
        on_failure: Callable[[Exception], None] | None = None,
    ) -> None:
        self._settings = settings
        self._partition = TopicPartition(topic, 0, OFFSET_BEGINNING)
        self._identity = TopicIdentity(topic)
        self._apply = apply
        self._on_failure = on_failure
        self._moved = threading.Condition()
        self._position = 0
        self._failure: Exception | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._consumer: Consumer | None = None
        self._producer: Producer | None = None
        self._admin: AdminClient | None = None

    @property
    def position(self) -> int:
        """Offset of the next record to be read."""
        return self._position

    @property
    def failure(self) -> Exception | None:
        """Why the log stopped by itself, or None."""
        return self._failure

    def start(self) -> None:
        """Begin to read; returns when every record that was there has been applied.

        Raises
        ------
        BrokerError
            When the broker does not answer, or the topic is not read in the time set.
        LogStoppedError
            When a record cannot be read; the cause is chained.
        """
        timeout_ms = int(self._settings.write_timeout_seconds * 1000)
        self._producer = Producer(
            {
                **self._settings.client_properties("coincide-service"),
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 0,
                # A stream's record holds its templates.
                "message.max.bytes": CONFIG_RECORD_BYTES,
                # A write that nobody waits for any more must not be stored minutes later.
                "message.timeout.ms": max(1000, timeout_ms),
            }
        )
        self._consumer = open_consumer(
            self._settings.client_properties("coincide-service"),
            "coincide-service",
            auto_offset_reset="error",
        )
        self._admin = self._new_admin()
        # Before the first record is read, so that all of them are of this topic.
        self._identity.check(self._admin, self._settings.broker_timeout_seconds)
        self._consumer.assign([self._partition])
        self._thread = threading.Thread(
            target=self._read, name=f"log-{self._partition.topic}", daemon=True
        )
        self._thread.start()
        self.read_to_end(self._settings.start_timeout_seconds)

    def stop(self) -> None:
        """Stop reading and let go of the clients."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None
        self._admin = None
        if self._producer is not None:
            self._producer.flush(self._settings.write_timeout_seconds)
            self._producer = None

    def end_offset(self, timeout_seconds: float | None = None) -> int:
        """Ask the broker where the partition ends.

        Raises
        ------
        BrokerError
            When it does not answer in time.
        LogStoppedError
            When the topic was deleted and created again.
        """
        timeout = self._settings.broker_timeout_seconds
        timeout = timeout if timeout_seconds is None else min(timeout, timeout_seconds)
        deadline = time.monotonic() + timeout
        while True:
            admin = self._admin
            if admin is None:
                raise LogStoppedError("the log is not started")
            left = max(_POLL_SECONDS, deadline - time.monotonic())
            try:
                self._identity.check(admin, left)
                return self._ask_end(admin, left)
            except LogStoppedError as error:
                self._fail(error)
                raise
            except KafkaException as error:
                # The client keeps an outdated leader for ever: ask with a new one.
                self._admin = self._new_admin()
                settled = _code(error) not in _SETTLING or time.monotonic() > deadline
                if settled or self._stopping.wait(_POLL_SECONDS):
                    raise BrokerError(f"the broker does not answer: {_sentence(error)}") from error

    def read_to_end(self, timeout_seconds: float) -> int:
        """Wait until everything that is in the partition now was applied; gives the end.

        Raises
        ------
        BrokerError
            When the broker does not answer, or reading took longer.
        LogStoppedError
            When the log stopped by itself.
        """
        end = self.end_offset()
        if not self.wait_for(end - 1, timeout_seconds):
            raise BrokerError(
                f"{self._partition.topic} was read up to offset {self._position} of {end} "
                f"in {timeout_seconds:g} s"
            )
        return end

    def wait_for(self, offset: int, timeout_seconds: float) -> bool:
        """Wait until the record at `offset` was applied; False when it was not in time.

        Raises
        ------
        LogStoppedError
            When the log stopped by itself.
        """
        with self._moved:
            self._moved.wait_for(
                lambda: self._position > offset or self._failure is not None, timeout_seconds
            )
            if self._failure is not None:
                raise LogStoppedError(
                    f"reading {self._partition.topic} stopped: {self._failure}"
                ) from self._failure
            return self._position > offset

    def send(
        self, key: bytes, value: bytes | None, timeout_seconds: float, headers: Headers = ()
    ) -> int | None:
        """Write one record and wait until the broker has it.

        Returns
        -------
        int or None
            Its offset; None when the broker has not answered in time.

        Raises
        ------
        BrokerError
            When the record was not stored, or an earlier one is still on its way.
        """
        producer = self._producer
        if producer is None:
            raise LogStoppedError("the log is not started")
        answers: list[tuple[KafkaError | None, Message]] = []
        deadline = time.monotonic() + timeout_seconds
        if producer.flush(timeout_seconds):
            raise BrokerError("an earlier write is still on its way")
        try:
            producer.produce(
                self._partition.topic,
                value,
                key,
                partition=0,
                headers=list(headers),
                on_delivery=lambda error, message: answers.append((error, message)),
            )
        except (KafkaException, BufferError) as error:
            raise BrokerError(f"the record was not written: {_sentence(error)}") from error
        while not answers and (left := deadline - time.monotonic()) > 0:
            producer.poll(min(left, _POLL_SECONDS))
        if not answers:
            return None
        error_code, message = answers[0]
        if error_code is not None:
            raise BrokerError(f"the record was not written: {error_code.str()}")
        return message.offset()

    def _new_admin(self) -> AdminClient:
        return AdminClient(self._settings.client_properties("coincide-service"))

    def _ask_end(self, admin: AdminClient, timeout_seconds: float) -> int:
        place = (self._partition.topic, self._partition.partition)
        # Not asked of the consumer: its calls wait for each other, and it is always polling.
        return list_offsets(admin, [place], Edge.COMMITTED_END, timeout_seconds)[place]

    def _read(self) -> None:
        """Body of the reader's thread."""
        consumer = self._consumer
        if consumer is None:
            return
        next_check = time.monotonic() + _IDENTITY_SECONDS
        try:
            while not self._stopping.is_set() and self._failure is None:
                message = consumer.poll(_POLL_SECONDS)
                if message is not None:
                    self._take(message)
                if time.monotonic() >= next_check:
                    self._check_identity()
                    next_check = time.monotonic() + _IDENTITY_SECONDS
        # Whatever it is: a service that no longer follows its log must not go on answering.
        except Exception as error:  # noqa: BLE001  see the line above
            self._fail(error)

    def _check_identity(self) -> None:
        admin = self._admin
        if admin is not None:
            self._identity.check(admin, _IDENTITY_TIMEOUT_SECONDS)

    def _fail(self, error: Exception) -> None:
        """Stop for good; only the first error counts."""
        with self._moved:
            if self._failure is not None:
                return
            self._failure = error
            self._moved.notify_all()
        _LOGGER.critical("reading %s stopped: %s", self._partition.topic, error)
        if self._on_failure is not None:
            self._on_failure(error)

    def _take(self, message: Message) -> None:
        error, offset = message.error(), message.offset()
        if error is None and offset is not None:
            record_timestamp_us = message.timestamp()[1] * 1000
            headers = cast("Headers", message.headers() or ())
            self._apply(
                LogRecord(offset, message.key(), message.value(), record_timestamp_us, headers)
            )
            self._move(offset + 1)
        elif error is not None and error.code() == END_OF_PARTITION and offset is not None:
            self._move(offset)
        elif error is not None and (error.fatal() or error.code() in _BROKEN_LOG):
            # Mostly because the topic is another one; then that is the better answer.
            self._check_identity()
            raise LogStoppedError(error.str())
        elif error is not None:
            _LOGGER.warning("reading %s: %s", self._partition.topic, error.str())

    def _move(self, position: int) -> None:
        with self._moved:
            self._position = max(position, self._position)
            self._moved.notify_all()


def _code(error: Exception) -> int | None:
    found = error.args[0] if error.args else None
    return found.code() if isinstance(found, KafkaError) else None


def _sentence(error: Exception) -> str:
    found = error.args[0] if error.args else None
    return found.str() if isinstance(found, KafkaError) else str(error) or "no answer in time"
