"""The driver's view of the config topic: streams, output topics, slots, and their changes."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

import orjson
from confluent_kafka import TopicPartition

from correlation.config_records import Unreadable, read_key
from correlation.errors import UnreadableRecordError
from correlation.kinds import to_condition
from correlation.newest_records import NewestRecords
from correlation.resources.job_slots import JOB
from correlation.resources.records import Resource
from kafka_client.consumers import is_record, open_consumer
from kafka_client.messages import as_bytes
from kafka_client.partition_offsets import list_ranges, timed_out

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType
    from typing import Self

    from confluent_kafka import Message

    from correlation.resources.streams import Stream
    from spark_jobs.settings import Properties

_log = logging.getLogger(__name__)

_TIMEOUT_SECONDS = 30.0
_MAX_RECORDS = 500


class ConfigWatch:
    """Follows the config topic; keeps the streams, output topics and slots registered there.

    Parameters
    ----------
    properties : mapping
        librdkafka properties.
    topic : str
        The config topic; it has one partition.
    """

    def __init__(self, properties: Properties, topic: str) -> None:
        self._place = TopicPartition(topic, 0, 0)
        self._consumer = open_consumer(properties, f"{topic}.watch")
        self._consumer.assign([self._place])
        self._streams: dict[str, Stream] = {}
        self._output_topics: dict[str, str] = {}
        self._kinds: dict[str, str] = {}
        self._slots: int | None = None
        self._newest = NewestRecords(orjson.loads)
        self._changed_at = time.monotonic()

    @property
    def streams(self) -> Mapping[str, Stream]:
        """All registered streams."""
        return dict(self._streams)

    @property
    def output_topics(self) -> frozenset[str]:
        """Output topics of the registered conditions."""
        return frozenset(self._output_topics.values())

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds of the registered conditions."""
        return frozenset(self._kinds.values())

    @property
    def slots(self) -> int | None:
        """Registered number of slots of the job, or None."""
        return self._slots

    @property
    def unreadable(self) -> tuple[Unreadable, ...]:
        """Unreadable records that are the newest of their keys, sorted by offset."""
        return tuple(self._newest.unreadable())

    @property
    def quiet_seconds(self) -> float:
        """Time since the last change of the streams, in seconds."""
        return time.monotonic() - self._changed_at

    def read_to_end(self) -> None:
        """Read the topic to its current end; return at once when it is empty.

        Raises
        ------
        KafkaException
            When the end is not reached in time.
        UnknownRecordVersionError
            When a newer version of this software wrote the newest record of a key.
        """
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        place = (self._place.topic, self._place.partition)
        end = list_ranges(self._consumer, [place], _TIMEOUT_SECONDS)[place].end
        while self._position() < end:
            if time.monotonic() > deadline:
                raise timed_out(place, f"was not read up to its end offset, {end}, in time")
            self.poll(0.1)
        self._newest.follow()

    def _position(self) -> int:
        # The position is unknown before the first record is read; the beginning is assumed.
        return max(int(self._consumer.position([self._place])[0].offset), 0)

    def poll(self, seconds: float) -> None:
        """Wait up to `seconds` for records and process them.

        Raises
        ------
        UnknownRecordVersionError
            When a newer version of this software wrote a record after the first read to the end.
        KafkaException
            When the topic can no longer be read.
        """
        for message in self._consumer.consume(_MAX_RECORDS, timeout=seconds):
            if is_record(message, self._consumer.user):
                self._take(message)

    def _take(self, message: Message) -> None:
        key = as_bytes(message.key()) or b""
        found = self._newest.take(message.offset() or 0, key, as_bytes(message.value()))
        if isinstance(found, Unreadable):
            _log.error(
                "the record at offset %d of the config topic, %s, cannot be read and is not in "
                "force: %s",
                found.offset,
                found.shown_key,
                found.problem,
            )
        resource = found if isinstance(found, Resource) else None
        try:
            kind, name = read_key(key)
        except UnreadableRecordError:
            return
        if kind == "condition":
            self._take_condition(name, resource)
        elif kind == "stream":
            self._take_stream(name, resource)
        elif kind == JOB:
            self._slots = None if resource is None else resource.to_slots()

    def _take_stream(self, name: str, resource: Resource | None) -> None:
        before = self._streams.get(name)
        if resource is None:
            self._streams.pop(name, None)
        else:
            self._streams[name] = resource.to_stream()
        if self._streams.get(name) != before:
            self._changed_at = time.monotonic()

    def _take_condition(self, name: str, resource: Resource | None) -> None:
        self._output_topics.pop(name, None)
        self._kinds.pop(name, None)
        if resource is None:
            return
        condition = to_condition(resource)
        self._kinds[name] = condition.kind
        if condition.output_topic is not None:
            self._output_topics[name] = condition.output_topic

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
