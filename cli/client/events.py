"""Send events to Kafka: lines of a file at a given rate, and the closing of streams."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

import orjson
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from cli.client.record_spans import record_spans
from cli.client.topics import connected, partitions_of
from cli.errors import BrokerError, UsageError
from correlation.engine.heartbeats import CLOSED, Heartbeat, heartbeat_to_record
from correlation.resources.topics import Topics
from kafka_client.consumers import open_consumer
from kafka_client.rights import with_right
from kafka_client.topic_offsets import KafkaOffsets

if TYPE_CHECKING:
    from cli.settings import Settings
    from kafka_client.partition_offsets import Place

_FLUSH_SECONDS = 60
_POLL_SECONDS = 0.1
# The client does not limit the size of records; the settings of the topic do.
_MAX_RECORD_BYTES = 64 * 1024 * 1024

# Seconds after the first event at which an event (its number, its value) is due.
Schedule = Callable[[int, bytes], float]


class Delivery(NamedTuple):
    """Number of events sent and failed, and the first error."""

    sent: int
    failed: int
    first_error: str | None


class EventSender:
    """Sends records, counts failed ones, and waits between records.

    Parameters
    ----------
    settings
        Broker address.
    """

    def __init__(self, settings: Settings) -> None:
        properties = {
            "linger.ms": 20,
            "enable.idempotence": True,
            "compression.type": "lz4",
            "message.max.bytes": _MAX_RECORD_BYTES,
            **settings.client,
        }
        try:
            self._producer = Producer(properties)
        except KafkaException as error:
            raise UsageError(f"COINCIDE_KAFKA_PROPERTIES: {error.args[0].str()}") from error
        self._user = settings.kafka_user
        self._sent = 0
        self._failed = 0
        self._first_error: str | None = None
        # Rejected with their whole batch, in which perhaps only one record is too large.
        self._again: list[tuple[str, bytes | None, bytes]] = []
        self._alone = False

    def send(self, topic: str, key: bytes | None, value: bytes) -> None:
        """Queue one record; wait while the client's queue is full."""
        self._sent += 1
        self._hand_over(topic, key, value)

    def wait(self, seconds: float) -> None:
        """Wait, and process delivery reports meanwhile."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self._producer.poll(left)

    def finish(self) -> Delivery:
        """Wait until all records are delivered or failed; return the counts."""
        waiting = self._producer.flush(_FLUSH_SECONDS)
        self._alone = True
        for record in self._again:
            self._hand_over(*record)
            waiting += self._producer.flush(_FLUSH_SECONDS)
        if waiting:
            self._failed += waiting
            self._first_error = self._first_error or "the broker did not answer"
        return Delivery(self._sent, self._failed, self._first_error)

    def _hand_over(self, topic: str, key: bytes | None, value: bytes) -> None:
        while True:
            try:
                self._producer.produce(topic, value=value, key=key, on_delivery=self._delivered)
                break
            except BufferError:
                self._producer.poll(_POLL_SECONDS)
            except KafkaException as error:
                # The client rejects the record, for instance because it is too large.
                self._count_failure(error.args[0].str())
                break
        self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            return
        topic, key, value = message.topic(), message.key(), message.value()
        if (
            error.code() == KafkaError.MSG_SIZE_TOO_LARGE
            and not self._alone
            and topic is not None
            and not isinstance(key, str)
            and isinstance(value, bytes)
        ):
            self._again.append((topic, key, value))
        else:
            self._count_failure(with_right(error, "Write", topic, self._user).str())

    def _count_failure(self, reason: str) -> None:
        self._failed += 1
        self._first_error = self._first_error or reason


def send_lines(
    sender: EventSender,
    topic: str,
    lines: Iterable[bytes],
    key_path: str | None = None,
    schedule: Schedule | None = None,
) -> Iterable[int]:
    """Send each line that is not empty as one record, and yield the bytes of each line.

    Parameters
    ----------
    sender
        Sends the records.
    topic
        Topic to send to.
    lines
        One JSON document each; other lines are sent unchanged.
    key_path
        Dotted path of the field that becomes the record's key; no key by default.
    schedule
        Time at which each event is due, after the first one was sent; without delay by default.
    """
    begin = time.monotonic()
    number = 0
    for line in lines:
        value = line.strip()
        if value:
            if schedule is not None:
                sender.wait(begin + schedule(number, value) - time.monotonic())
            sender.send(topic, _read_key(value, key_path), value)
            if number == 0:
                begin = time.monotonic()
            number += 1
        yield len(line)


def at_rate(events_per_second: float) -> Schedule:
    """Return the schedule of a constant rate."""
    return lambda number, _: number / events_per_second


def at_recorded_times(read_time_us: Callable[[bytes], int | None], factor: float) -> Schedule:
    """Return the schedule of the recorded times.

    Parameters
    ----------
    read_time_us
        Returns an event's time in µs, or None; events without a time are sent at once.
    factor
        Speed relative to the recorded times: 2 is twice as fast.
    """
    first_us: int | None = None

    def due(_: int, value: bytes) -> float:
        nonlocal first_us
        time_us = read_time_us(value)
        if time_us is None:
            return 0.0
        if first_us is None:
            first_us = time_us
        return (time_us - first_us) / 1e6 / factor

    return due


def list_partitions(settings: Settings, topic: str) -> list[Place]:
    """Return the partitions of a topic.

    Raises
    ------
    BrokerError
        The broker does not answer, or the topic does not exist.
    """
    with connected(settings, open_consumer) as consumer:
        return partitions_of(consumer, settings, topic)


def close_stream(settings: Settings, stream: str, topic: str) -> None:
    """Close a stream: no events follow after the present end of its topic.

    Parameters
    ----------
    settings
        Broker address and prefix of the topics.
    stream
        Name of the stream.
    topic
        Topic of the stream.

    Raises
    ------
    BrokerError
        The broker does not answer or refuses.
    """
    places = list_partitions(settings, topic)
    with connected(settings, KafkaOffsets) as offsets:
        spans = record_spans(offsets, places)
    sender = EventSender(settings)
    for (_, partition), span in spans.items():
        heartbeat = Heartbeat(stream, partition, CLOSED, span.end)
        value = orjson.dumps(heartbeat_to_record(heartbeat))
        # The topics of the kinds are not needed: they would load numba.
        sender.send(Topics(settings.prefix).heartbeats, stream.encode(), value)
    delivery = sender.finish()
    if delivery.failed:
        raise BrokerError(f"stream {stream} could not be closed: {delivery.first_error}")


def _read_key(value: bytes, path: str | None) -> bytes | None:
    """Return the field at the path as a record key; None if it is missing."""
    if path is None:
        return None
    try:
        found = orjson.loads(value)
    except ValueError:
        return None
    for part in path.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    if found is None:
        return None
    return found.encode() if isinstance(found, str) else orjson.dumps(found)
