"""A Kafka topic as a log that a service reads from its beginning.

A background thread reads the single partition, passes each record to a function and tracks the
position. `wait_for` provides read-your-writes: a writer waits until its own record is read. The
log is caught up when position ≥ end; an empty partition is caught up. The position comes from the
consumer, so it also passes undelivered offsets (compacted records, transaction markers).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import (
    OFFSET_BEGINNING,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from kafka_client.clients import UserAdmin
from kafka_client.consumers import END_OF_PARTITION, open_consumer, reading_error
from kafka_client.messages import Headers, message_headers
from kafka_client.partition_offsets import Edge, list_offsets
from service.errors import BrokerError, LogStoppedError
from service.topic_identity import TopicIdentity

if TYPE_CHECKING:
    from kafka_client.clients import UserConsumer
    from service.settings import Settings

_LOGGER = logging.getLogger(__name__)
_POLL_SECONDS = 0.1
# The position passes the marker of a transaction only with the next fetch without records.
_FETCH_WAIT_MS = 100
# Interval and timeout of the check that the topic was not created again.
_IDENTITY_SECONDS = 2.0
_IDENTITY_TIMEOUT_SECONDS = 1.0
# Errors after which the records read so far no longer match the topic.
_BROKEN_LOG = frozenset(
    {
        KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001  librdkafka's own codes carry the underscore
        KafkaError.OFFSET_OUT_OF_RANGE,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
    }
)


class LogRecord(NamedTuple):
    """One record: its offset, key, value (None deletes), Kafka timestamp in µs, and headers."""

    offset: int
    key: bytes | None
    value: bytes | None
    record_timestamp_us: int
    headers: Headers = ()


class TopicLog:
    """Reader and writer of a topic with one partition.

    Parameters
    ----------
    settings : Settings
        Broker address and timeouts.
    topic : str
        A topic with one partition.
    apply : callable
        Called with each record, in order, in the reader's thread. An exception stops the log.
    on_failure : callable, optional
        Called in the reader's thread when an error stops the log.
    at_end : callable, optional
        Called in the reader's thread when the end of the topic is reached, before the position
        moves there. The end is that of the committed records: never inside a transaction.
    """

    def __init__(
        self,
        settings: Settings,
        topic: str,
        apply: Callable[[LogRecord], None],
        on_failure: Callable[[Exception], None] | None = None,
        at_end: Callable[[], None] | None = None,
    ) -> None:
        self._settings = settings
        self._partition = TopicPartition(topic, 0, OFFSET_BEGINNING)
        self._identity = TopicIdentity(topic)
        self._apply = apply
        self._on_failure = on_failure
        self._at_end = at_end
        self._moved = threading.Condition()
        self._position = 0
        self._failure: Exception | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._consumer: UserConsumer | None = None
        self._newest = -1
        # Offset of the transaction marker behind the newest record that was written here.
        self._marker = -1
        self._admin: UserAdmin | None = None

    @property
    def position(self) -> int:
        """Offset of the next record to be read."""
        return self._position

    @property
    def newest(self) -> int:
        """Offset of the newest record; -1 if no record has been read."""
        return self._newest

    @property
    def failure(self) -> Exception | None:
        """Error that stopped the log, or None."""
        return self._failure

    def start(self) -> None:
        """Start reading; return when every existing record is applied.

        Raises
        ------
        BrokerError
            When the broker does not answer, or reading takes longer than the timeout.
        LogStoppedError
            When a record cannot be read; the cause is chained.
        """
        self._consumer = open_consumer(
            self._settings.client_properties("coincide-service"),
            f"{self._settings.prefix}.service",
            auto_offset_reset="error",
            fetch_wait_max_ms=_FETCH_WAIT_MS,
        )
        self._admin = UserAdmin(self._settings.client_properties("coincide-service"))
        # Checked before the first record is read, so that all records are of this topic.
        self._identity.check(self._admin, self._settings.broker_timeout_seconds)
        self._consumer.assign([self._partition])
        self._thread = threading.Thread(
            target=self._read, name=f"log-{self._partition.topic}", daemon=True
        )
        self._thread.start()
        self.read_to_end(self._settings.start_timeout_seconds)

    def stop(self) -> None:
        """Stop reading and close the clients."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None
        self._admin = None

    def end_offset(self, timeout_seconds: float | None = None) -> int:
        """Return the end offset of the partition, as the broker reports it.

        Raises
        ------
        BrokerError
            When the broker does not answer in time.
        LogStoppedError
            When the topic was deleted and created again.
        """
        timeout = self._settings.broker_timeout_seconds
        timeout = timeout if timeout_seconds is None else min(timeout, timeout_seconds)
        deadline = time.monotonic() + timeout
        while True:
            admin = self._admin
            if admin is None:
                raise LogStoppedError("the log has not been started")
            left = max(_POLL_SECONDS, deadline - time.monotonic())
            try:
                self._identity.check(admin, left)
                return self._ask_end(admin, left)
            except LogStoppedError as error:
                self._fail(error)
                raise
            except KafkaException as error:
                # A topic that was just created may still be unknown.
                unknown = error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
                ended = not unknown or time.monotonic() > deadline
                if ended or self._stopping.wait(_POLL_SECONDS):
                    raise BrokerError(f"the broker does not answer: {_sentence(error)}") from error

    def read_to_end(self, timeout_seconds: float) -> int:
        """Wait until every record now in the partition is applied; return the end offset.

        Raises
        ------
        BrokerError
            When the broker does not answer, or reading takes longer than the timeout.
        LogStoppedError
            When an error has stopped the log.
        """
        end = self.end_offset()
        last = end - 1
        if last == self._marker:
            # The position passes a marker only after `_FETCH_WAIT_MS`.
            last -= 1
        if not self.wait_for(last, timeout_seconds):
            raise BrokerError(
                f"{self._partition.topic} was read only up to offset {self._position} of {end} "
                f"in {timeout_seconds:g} s"
            )
        return end

    def expect_marker(self, offset: int) -> None:
        """Note that the marker of a transaction of this process is at an offset."""
        self._marker = offset

    def wait_for(self, offset: int, timeout_seconds: float) -> bool:
        """Wait until the record at `offset` is applied; return False after the timeout.

        Raises
        ------
        LogStoppedError
            When an error has stopped the log.
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

    def _ask_end(self, admin: UserAdmin, timeout_seconds: float) -> int:
        place = (self._partition.topic, self._partition.partition)
        # Not read through the consumer: its calls are serialised, and it is always polling.
        return list_offsets(admin, [place], Edge.COMMITTED_END, timeout_seconds)[place]

    def _read(self) -> None:
        """Run the reader's thread."""
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
                    self._check_identity(_IDENTITY_TIMEOUT_SECONDS)
                    next_check = time.monotonic() + _IDENTITY_SECONDS
        # Any error: a service that no longer follows its log must stop answering.
        except Exception as error:  # noqa: BLE001  see the line above
            self._fail(error)

    def _check_identity(self, seconds: float) -> None:
        admin = self._admin
        if admin is not None:
            self._identity.check(admin, seconds)

    def _fail(self, error: Exception) -> None:
        """Stop the log; only the first error is kept."""
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
            headers = message_headers(message)
            self._apply(
                LogRecord(offset, message.key(), message.value(), record_timestamp_us, headers)
            )
            self._newest = offset
            self._move(offset + 1)
        elif error is not None and error.code() == END_OF_PARTITION and offset is not None:
            if self._at_end is not None:
                self._at_end()
            self._move(offset)
        elif error is not None and (error.fatal() or error.code() in _BROKEN_LOG):
            # Usually the topic was created again; that check raises the better message.
            self._check_identity(self._settings.broker_timeout_seconds)
            raise LogStoppedError(reading_error(message, error, self._settings.kafka_user).str())
        elif error is not None:
            problem = reading_error(message, error, self._settings.kafka_user).str()
            _LOGGER.warning("reading %s: %s", self._partition.topic, problem)

    def _move(self, position: int) -> None:
        with self._moved:
            self._position = max(position, self._position)
            self._moved.notify_all()


def _sentence(error: Exception) -> str:
    found = error.args[0] if error.args else None
    return (
        found.str()
        if isinstance(found, KafkaError)
        else str(error) or "the broker did not answer in time"
    )
