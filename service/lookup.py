"""Finding records by their ids: the newest part of a topic is read, and no more.

Kafka has no index of ids, so that a lookup is bounded three times: by a number of records, the
newest ones, evenly over the partitions; by a range of Kafka's timestamps, if one is given; and by
a time limit. An id of the form topic-partition-offset, which records without an id of their own
have, is read at its place.
"""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import orjson
from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from correlation.explaining import GivenRecord, Place
from correlation.parsing.event_reader import compile_id_reader
from correlation.resources.mapping import EventMapping
from service.errors import BrokerError, FieldProblem, NotReadyError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from service.settings import Settings

# At a time: each takes a connection, and up to a core while it parses what it reads.
_LOOKUPS = 2
_POLL_SECONDS = 0.1
_END_OF_PARTITION = KafkaError._PARTITION_EOF  # noqa: SLF001  librdkafka's own codes carry the underscore
_OFFSET = re.compile(r"\d{1,18}", re.ASCII)
# A partition without a record that is new enough; the client's name for it has no public spelling.
_NO_OFFSET = -1


class Wanted(NamedTuple):
    """A record that is looked for: id, and how ids are read in its topic."""

    topic: str
    mapping: EventMapping
    event_id: bytes


class Span(NamedTuple):
    """A range of Kafka's timestamps, in ms since 1970, both ends in it; None: open."""

    since_ms: int | None = None
    until_ms: int | None = None


@dataclass(slots=True)
class Finding:
    """What a lookup brought.

    Parameters
    ----------
    record : GivenRecord or None
        The newest record with the id.
    matches : int
        Records with the id.
    searched : int
        Records looked at.
    exhaustive : bool
        Whether these were all of the topic, or of the range that was asked for.
    in_time : bool
        False when the time limit ended the search.
    """

    record: GivenRecord | None = None
    matches: int = 0
    searched: int = 0
    exhaustive: bool = True
    in_time: bool = True


class RecordFinder:
    """Looks for records by id.

    Parameters
    ----------
    settings : Settings
        Where the broker is, and the bounds of a lookup.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._running = threading.BoundedSemaphore(_LOOKUPS)

    def find(self, wanted: Mapping[str, Wanted], span: Span) -> dict[str, Finding]:
        """Look for records; each topic is read once.

        Parameters
        ----------
        wanted : mapping of name to Wanted
            By names of the caller's own.
        span : Span
            Only records that Kafka took in this range.

        Raises
        ------
        BrokerError
            When the broker does not answer.
        NotReadyError
            When too many lookups are running.
        """
        limit = self._settings.explain_seconds
        if not self._running.acquire(timeout=limit):
            detail = f"{_LOOKUPS} lookups are running"
            raise NotReadyError(detail, (FieldProblem("id", detail, "give the event itself"),))
        try:
            consumer = Consumer(
                {
                    **self._settings.client_properties("coincide-service-lookup"),
                    # librdkafka wants a name; partitions are assigned and nothing is committed.
                    "group.id": "coincide-service",
                    "enable.auto.commit": False,
                    "enable.partition.eof": True,
                    "auto.offset.reset": "earliest",
                    "isolation.level": "read_committed",
                    "queued.max.messages.kbytes": 16 * 1024,
                }
            )
            try:
                search = _Search(consumer, self._settings.explain_records, span, limit)
                return search.find(wanted)
            finally:
                consumer.close()
        except KafkaException as error:
            raise BrokerError(f"looking for records: {error.args[0].str()}") from error
        finally:
            self._running.release()


class _Search:
    """One lookup."""

    def __init__(self, consumer: Consumer, records: int, span: Span, seconds: float) -> None:
        self._consumer = consumer
        self._records = records
        self._span = span
        self._deadline = time.monotonic() + seconds

    def find(self, wanted: Mapping[str, Wanted]) -> dict[str, Finding]:
        """Look for each at its place if it names one, and then for the rest, topic by topic."""
        found: dict[str, Finding] = {}
        for topic in sorted({it.topic for it in wanted.values()}):
            mine = {name: it for name, it in wanted.items() if it.topic == topic}
            ends = self._ends(topic)
            for name, it in mine.items():
                place = _place_in(it, ends)
                if place is not None:
                    found |= self._read(topic, {name: it}, place)
            rest = {
                name: it
                for name, it in mine.items()
                if name not in found or not found[name].matches
            }
            if rest:
                ranges, exhaustive = self._newest(topic, ends)
                found |= self._read(topic, rest, ranges)
                for name in rest:
                    found[name].exhaustive = exhaustive
        return found

    def _left(self) -> float:
        return max(_POLL_SECONDS, self._deadline - time.monotonic())

    def _ends(self, topic: str) -> dict[int, tuple[int, int]]:
        """First and next offset of each partition; none of a topic that does not exist."""
        described = self._consumer.list_topics(topic, timeout=self._left()).topics[topic]
        if described.error is not None:
            if described.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return {}
            raise KafkaException(described.error)
        return {
            number: self._consumer.get_watermark_offsets(
                TopicPartition(topic, number), timeout=self._left()
            )
            for number in sorted(described.partitions)
        }

    def _newest(
        self, topic: str, ends: Mapping[int, tuple[int, int]]
    ) -> tuple[dict[int, tuple[int, int]], bool]:
        """Offsets to be read of each partition, and whether they are all that was asked for."""
        each = max(1, self._records // max(1, len(ends)))
        firsts = {number: first for number, (first, _) in ends.items()}
        stops = {number: stop for number, (_, stop) in ends.items()}
        # Where no record is new enough the client gives the end.
        if self._span.since_ms is not None:
            firsts = self._offsets_at(topic, self._span.since_ms, stops)
        if self._span.until_ms is not None:
            stops = self._offsets_at(topic, self._span.until_ms + 1, stops)
        ranges = {
            number: (max(firsts[number], stops[number] - each), stops[number]) for number in ends
        }
        return ranges, all(ranges[number][0] == firsts[number] for number in ends)

    def _offsets_at(
        self, topic: str, moment_ms: int, otherwise: Mapping[int, int]
    ) -> dict[int, int]:
        """Offset of the first record of each partition that Kafka took at a time or later."""
        if not otherwise:
            return {}
        asked = [TopicPartition(topic, number, moment_ms) for number in otherwise]
        found = self._consumer.offsets_for_times(asked, timeout=self._left())
        return {
            it.partition: otherwise[it.partition] if it.offset <= _NO_OFFSET else it.offset
            for it in found
        }

    def _read(
        self, topic: str, wanted: Mapping[str, Wanted], ranges: Mapping[int, tuple[int, int]]
    ) -> dict[str, Finding]:
        """Compare the records of some ranges with the ids."""
        found = {name: Finding() for name in wanted}
        readers = [
            (found[name], it.event_id, compile_id_reader(it.mapping)) for name, it in wanted.items()
        ]
        waiting = {number: stop for number, (start, stop) in ranges.items() if start < stop}
        self._consumer.assign(
            [TopicPartition(topic, number, ranges[number][0]) for number in waiting]
        )
        while waiting:
            if time.monotonic() > self._deadline:
                for finding in found.values():
                    finding.in_time = False
                break
            message = self._consumer.poll(_POLL_SECONDS)
            if message is not None:
                _take(message, waiting, readers)
        return found


def _take(
    message: Message,
    waiting: dict[int, int],
    readers: list[tuple[Finding, bytes, Callable[[object], bytes | None]]],
) -> None:
    """Compare a record; strike its partition off when it was the last one."""
    error, number, offset = message.error(), message.partition(), message.offset()
    if error is not None and error.code() != _END_OF_PARTITION:
        raise KafkaException(error)
    if number is None or offset is None or number not in waiting:
        return
    if error is None and offset < waiting[number]:
        record = _parse(message, Place(str(message.topic()), number, offset))
        for finding, event_id, read_id in readers:
            finding.searched += 1
            if record is not None and _id_of(record, read_id) == event_id:
                finding.matches += 1
                if finding.record is None or _age(finding.record) <= _age(record):
                    finding.record = record
    # The end too may be a record that is not delivered: a marker of a transaction.
    if error is not None or offset + 1 >= waiting[number]:
        del waiting[number]


def _parse(message: Message, place: Place) -> GivenRecord | None:
    """Give the record; None for what is no JSON, which has no id."""
    value, key = message.value(), message.key()
    if value is None:
        return None
    try:
        parsed = orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
    kind, appended_ms = message.timestamp()
    record_timestamp_us = None if kind == TIMESTAMP_NOT_AVAILABLE else appended_ms * 1000
    key = key.encode() if isinstance(key, str) else key
    return GivenRecord(parsed, key, record_timestamp_us, place, "record", value)


def _id_of(record: GivenRecord, read_id: Callable[[object], bytes | None]) -> bytes | None:
    found = read_id(record.value)
    if found is None and record.place is not None:
        return "-".join(map(str, record.place)).encode()
    return found


def _age(record: GivenRecord) -> tuple[int, int]:
    offset = record.place.offset if record.place is not None else -1
    return (record.record_timestamp_us or 0, offset)


def _place_in(
    wanted: Wanted, ends: Mapping[int, tuple[int, int]]
) -> dict[int, tuple[int, int]] | None:
    """Give the one offset that an id of the form topic-partition-offset names."""
    topic, *numbers = wanted.event_id.decode("utf-8", "replace").rsplit("-", 2)
    if topic != wanted.topic or not all(map(_OFFSET.fullmatch, numbers)) or not numbers[1:]:
        return None
    number, offset = map(int, numbers)
    first, end = ends.get(number, (0, 0))
    return {number: (offset, offset + 1)} if first <= offset < end else None
