"""Lookup of records in the newest part of a topic: by id, by another property, or all of them.

Kafka has no index of either. A lookup is therefore bounded by a number of records (the newest,
split evenly over the partitions), by a range of Kafka timestamps, if given, and by a time limit.
The id of a record without an id field is topic-partition-offset; such a record is read at its
offset. An id of the form topic-partition@offset names the record at that offset, whatever its id
and its value are: rejected records are shown by it.
"""

from __future__ import annotations

import re
import threading
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import orjson
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaError, KafkaException, Message

from correlation.explaining import GivenRecord, Place
from correlation.parsing.event_reader import compile_id_reader
from correlation.parsing.intake import NO_VALUE, why_unreadable
from correlation.resources.mapping import EventMapping
from kafka_client.consumers import open_consumer, read_ranges
from kafka_client.partition_offsets import OffsetRange, find_offsets, is_timeout, list_ranges
from kafka_client.rights import with_right
from service.errors import BrokerError, FieldProblem, NotReadyError
from service.newest_records import NewestRecords

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from kafka_client.clients import UserConsumer
    from kafka_client.partition_offsets import Place as Partition
    from service.settings import Settings

    Ranges = Mapping[Partition, OffsetRange]

# Max number of concurrent lookups: each uses a connection, and up to one core for parsing.
_LOOKUPS = 2
# Lookups that wait for them: each has a thread, which all other requests need as well.
_WAITING = 6
# Min timeout of a request to the broker, even when the time limit is nearly reached.
_SHORTEST_SECONDS = 0.1
_PLACE = re.compile(rb".+-\d{1,9}@\d{1,18}")
_OFFSET = re.compile(r"\d{1,18}", re.ASCII)


class Wanted(NamedTuple):
    """A record to look up.

    Attributes
    ----------
    topic : str
        Its topic.
    matches : callable
        `(record) -> bool`: whether a record is the one.
    event_id : bytes or None
        Its id; None if it is not looked up by id.
    most : int
        Max number of matching records to return, the newest.
    unparsed : bool
        Whether records whose value cannot be parsed can match.
    """

    topic: str
    matches: Callable[[GivenRecord], bool]
    event_id: bytes | None = None
    most: int = 1
    unparsed: bool = False


def wanted_by_id(topic: str, mapping: EventMapping, event_id: bytes) -> Wanted:
    """Return a lookup by id, or by place; the mapping reads the ids of the topic's records."""
    if _PLACE.fullmatch(event_id) and event_id.startswith(f"{topic}-".encode()):
        return Wanted(
            topic,
            lambda record: str(record.place).encode() == event_id,
            event_id,
            unparsed=True,
        )
    read_id = compile_id_reader(mapping)
    return Wanted(topic, lambda record: _id_of(record, read_id) == event_id, event_id)


class Span(NamedTuple):
    """A range of Kafka timestamps in ms since 1970, both ends included; None: unbounded."""

    since_ms: int | None = None
    until_ms: int | None = None


@dataclass(slots=True)
class Finding:
    """The result of a lookup.

    Parameters
    ----------
    most : int
        Max number of records to keep.
    records : list of GivenRecord
        The newest records that match, newest first.
    matches : int
        Number of records that match.
    searched : int
        Number of records searched.
    exhaustive : bool
        Whether all records of the topic, or of the requested range, were searched.
    in_time : bool
        False when the time limit ended the search.
    """

    most: int = 1
    records: list[GivenRecord] = field(default_factory=list)
    matches: int = 0
    searched: int = 0
    exhaustive: bool = True
    in_time: bool = True

    @property
    def record(self) -> GivenRecord | None:
        """The newest record that matches."""
        return self.records[0] if self.records else None

    def add(self, record: GivenRecord) -> None:
        """Count a record that matches, and keep it if it is among the newest."""
        self.matches += 1
        newer = sum(_age(it) > _age(record) for it in self.records)
        self.records.insert(newer, record)
        del self.records[self.most :]


class RecordFinder:
    """Looks up records.

    Parameters
    ----------
    settings : Settings
        Broker address, and the bounds of a lookup.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._running = threading.BoundedSemaphore(_LOOKUPS)
        self._places = threading.BoundedSemaphore(_LOOKUPS + _WAITING)

    def find(self, wanted: Mapping[str, Wanted], span: Span) -> dict[str, Finding]:
        """Look up records; each topic is read once.

        Parameters
        ----------
        wanted : mapping of name to Wanted
            Records to look up, under names that the caller chooses.
        span : Span
            Range of Kafka timestamps to search.

        Raises
        ------
        BrokerError
            When the broker does not answer.
        NotReadyError
            When too many lookups are running.
        """
        with self._searching(span, ("id", "send the event itself")) as search:
            return search.find(wanted)

    def read_newest(self, topics: Collection[str], most: int) -> dict[str, NewestRecords]:
        """Read the newest records of topics.

        Parameters
        ----------
        topics : collection of str
            The topics.
        most : int
            Max number of records of each topic.

        Returns
        -------
        dict
            The records by topic; topics that do not exist are missing.

        Raises
        ------
        BrokerError, NotReadyError
            As `find`.
        """
        hint = ("sample_from_topic", "send a sample in the request")
        with self._searching(Span(), hint) as search:
            found = {topic: search.read_newest(topic, most) for topic in topics}
        return {topic: it for topic, it in found.items() if it is not None}

    @contextmanager
    def _searching(self, span: Span, hint: tuple[str, str]) -> Iterator[_Search]:
        """Open a consumer for a search; `hint` is the field that asks for it, and a way without."""
        limit = self._settings.explain_seconds
        with _held(self._places, 0, hint), _held(self._running, limit, hint):
            properties = self._settings.client_properties("coincide-service-lookup")
            try:
                opened = open_consumer(
                    properties,
                    f"{self._settings.prefix}.service",
                    queued_max_messages_kbytes=16 * 1024,
                )
                with closing(opened) as consumer:
                    yield _Search(consumer, self._settings.explain_records, span, limit)
            except KafkaException as error:
                raise BrokerError(
                    f"the records could not be searched: {error.args[0].str()}"
                ) from error


@contextmanager
def _held(
    semaphore: threading.BoundedSemaphore, seconds: float, hint: tuple[str, str]
) -> Iterator[None]:
    """Hold a semaphore that is free within a time; `hint` as in `_searching`."""
    if not semaphore.acquire(timeout=seconds):
        field, remedy = hint
        detail = f"{_LOOKUPS} lookups are already running"
        raise NotReadyError(detail, (FieldProblem(field, detail, remedy),))
    try:
        yield
    finally:
        semaphore.release()


class _Search:
    """One lookup."""

    def __init__(self, consumer: UserConsumer, records: int, span: Span, seconds: float) -> None:
        self._consumer = consumer
        self._records = records
        self._span = span
        self._deadline = time.monotonic() + seconds

    def find(self, wanted: Mapping[str, Wanted]) -> dict[str, Finding]:
        """Look up ids that name an offset at that offset, then search each topic for the rest."""
        found: dict[str, Finding] = {}
        for topic in sorted({it.topic for it in wanted.values()}):
            mine = {name: it for name, it in wanted.items() if it.topic == topic}
            ranges = self._ranges(topic)
            for name, it in mine.items():
                place = _place_in(it, ranges)
                if place is not None:
                    found |= self._read({name: it}, place)
            rest = {
                name: it
                for name, it in mine.items()
                if name not in found or not found[name].matches
            }
            if rest:
                newest, exhaustive = self._newest(ranges, self._share(ranges))
                found |= self._read(rest, newest)
                for name in rest:
                    found[name].exhaustive = exhaustive
        return found

    def read_newest(self, topic: str, most: int) -> NewestRecords | None:
        """Read the newest records of a topic by their timestamps; None: it does not exist."""
        ranges = self._ranges(topic)
        if not ranges:
            return None
        newest, _ = self._newest(ranges, min(most, self._share(ranges)))
        shortened = {it[1] for it, there in newest.items() if there.begin > ranges[it].begin}
        found = NewestRecords(most, shortened)
        try:
            for message in read_ranges(self._consumer, newest, self._deadline):
                found.add(message)
        except KafkaException as error:
            if not is_timeout(error):
                raise
            found.in_time = False
        found.prune()
        return found

    def _share(self, ranges: Ranges) -> int:
        """Return the max number of records that are read of each partition."""
        return max(1, self._records // max(1, len(ranges)))

    def _left(self) -> float:
        return max(_SHORTEST_SECONDS, self._deadline - time.monotonic())

    def _ranges(self, topic: str) -> Ranges:
        """Return the begin and end offset of each partition; empty for a missing topic."""
        described = self._consumer.list_topics(topic, timeout=self._left()).topics[topic]
        if described.error is not None:
            if described.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return {}
            raise KafkaException(
                with_right(described.error, "Describe", topic, self._consumer.user)
            )
        places = [(topic, number) for number in sorted(described.partitions)]
        return list_ranges(self._consumer, places, self._left())

    def _newest(self, ranges: Ranges, each: int) -> tuple[Ranges, bool]:
        """Return the offsets to read, and whether they cover the whole requested range."""
        firsts = {place: it.begin for place, it in ranges.items()}
        stops = {place: it.end for place, it in ranges.items()}
        # For a partition without a record that is new enough, the begin is its end.
        if self._span.since_ms is not None:
            firsts = self._offsets_at(self._span.since_ms, stops)
        if self._span.until_ms is not None:
            stops = self._offsets_at(self._span.until_ms + 1, stops)
        newest = {
            place: OffsetRange(max(firsts[place], stops[place] - each), stops[place])
            for place in ranges
        }
        return newest, all(it.begin == firsts[place] for place, it in newest.items())

    def _offsets_at(
        self, moment_ms: int, otherwise: Mapping[Partition, int]
    ) -> dict[Partition, int]:
        """Return each partition's first offset with a Kafka timestamp at or after a time."""
        found = find_offsets(self._consumer, otherwise, moment_ms, self._left())
        return {place: otherwise[place] if it is None else it for place, it in found.items()}

    def _read(self, wanted: Mapping[str, Wanted], ranges: Ranges) -> dict[str, Finding]:
        """Read ranges of offsets and test their records."""
        found = {name: Finding(it.most) for name, it in wanted.items()}
        tests = [(found[name], it) for name, it in wanted.items()]
        try:
            for message in read_ranges(self._consumer, ranges, self._deadline):
                _test(message, tests)
        except KafkaException as error:
            if not is_timeout(error):
                raise
            for finding in found.values():
                finding.in_time = False
        return found


def _test(message: Message, tests: list[tuple[Finding, Wanted]]) -> None:
    """Test a record."""
    place = Place(message.topic() or "", message.partition() or 0, message.offset() or 0)
    record = _parse(message, place)
    for finding, wanted in tests:
        finding.searched += 1
        if (record.problem is None or wanted.unparsed) and wanted.matches(record):
            finding.add(record)


def _parse(message: Message, place: Place) -> GivenRecord:
    """Parse a record; if its value is not JSON, the record holds the problem."""
    value, key = message.value(), message.key()
    parsed, problem = None, None
    if value is None:
        problem = NO_VALUE
    else:
        try:
            parsed = orjson.loads(value)
        except orjson.JSONDecodeError as error:
            problem = why_unreadable(value, error)
    kind, record_timestamp_ms = message.timestamp()
    record_timestamp_us = None if kind == TIMESTAMP_NOT_AVAILABLE else record_timestamp_ms * 1000
    key = key.encode() if isinstance(key, str) else key
    return GivenRecord(parsed, key, record_timestamp_us, place, "record", value, problem)


def _id_of(record: GivenRecord, read_id: Callable[[object], bytes | None]) -> bytes | None:
    found = read_id(record.value)
    if found is None and record.place is not None:
        return "-".join(map(str, record.place)).encode()
    return found


def _age(record: GivenRecord) -> tuple[int, int]:
    offset = record.place.offset if record.place is not None else -1
    return (record.record_timestamp_us or 0, offset)


def _place_in(wanted: Wanted, ranges: Ranges) -> Ranges | None:
    """Return the offset that an id of topic, partition and offset names, or None."""
    if wanted.event_id is None:
        return None
    event_id = wanted.event_id.decode("utf-8", "replace")
    if wanted.unparsed:
        event_id = "-".join(event_id.rsplit("@", 1))
    topic, *numbers = event_id.rsplit("-", 2)
    if topic != wanted.topic or not all(map(_OFFSET.fullmatch, numbers)) or not numbers[1:]:
        return None
    number, offset = map(int, numbers)
    there = ranges.get((topic, number), OffsetRange(0, 0))
    if not there.begin <= offset < there.end:
        return None
    return {(topic, number): OffsetRange(offset, offset + 1)}
