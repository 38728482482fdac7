"""Alarms: records of the pairs of a timing condition, and of its events of A without a B."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from correlation.buffers.blake2b import digest_messages
from correlation.buffers.columns import BytesColumn, Int64s
from correlation.buffers.joining import Pieces, join_pieces, split_numbers, stack_codes
from correlation.buffers.segment import Segment
from correlation.operators import Encode, Heading, OutputRecord, encode_json, make_heading
from correlation.record_columns import RecordColumns
from correlation.resources.streams import Stream
from correlation.result_format import ALARM_TYPE, as_text
from correlation.timing.alarm_events import EventsOfAlarms
from correlation.timing.alarm_format import ALARM_VERSION, BY_WATERMARK, alarm_message
from correlation.timing.conditions import TimingCondition
from correlation.timing.histograms.rows import probability_rows
from correlation.timing.intervals.pairs import DECIDED_BY


class AttributeNames(NamedTuple):
    """Attributes that the streams of A and of B declare; alarms contain their values."""

    a: tuple[str, ...] = ()
    b: tuple[str, ...] = ()

    @classmethod
    def of(cls, a: Stream, b: Stream) -> AttributeNames:
        """Return the names of the attributes of two streams."""
        return cls(*(tuple(it.name for it in stream.attributes) for stream in (a, b)))


NO_ATTRIBUTES = AttributeNames()
# Alarms that are written together; few enough that their columns stay in the processor's caches.
_PART_ALARMS = 8_000
# Fields of the events.
_ROLES = (b"a", b"b")


@dataclass(frozen=True, slots=True)
class PairBatch:
    """One or more pairs of a condition: rows of a segment of A and rows of a segment of B.

    Parameters
    ----------
    condition : TimingCondition
        The condition that the pairs satisfy.
    keyed : bool
        Whether the join key is the users' own (partitioning by key).
    a, b : Segment
        The segments that hold the events.
    a_rows, b_rows : int64[n]
        Pair i consists of the events a_rows[i] and b_rows[i].
    decided_by : uint8[n]
        Index into DECIDED_BY.
    attributes : AttributeNames
        Attributes of the events.
    """

    condition: TimingCondition
    keyed: bool
    a: Segment
    b: Segment
    a_rows: Int64s
    b_rows: Int64s
    decided_by: NDArray[np.uint8]
    attributes: AttributeNames = NO_ATTRIBUTES

    def __len__(self) -> int:
        return len(self.a_rows)

    def select(self, chosen: NDArray[np.bool_] | slice) -> PairBatch:
        """Return the chosen pairs."""
        return replace(
            self,
            a_rows=self.a_rows[chosen],
            b_rows=self.b_rows[chosen],
            decided_by=self.decided_by[chosen],
        )

    def heading(self, detected_at_us: int) -> Heading:
        """Return channel, topic and CloudEvents headers; see `Result.heading`."""
        return make_heading(self.condition, detected_at_us, ALARM_TYPE)

    def ready_us(self) -> Int64s:
        """See `Result.ready_us`."""
        return np.maximum(self.a.latest[self.a_rows], self.b.latest[self.b_rows])

    def records(
        self, detected_at_us: int | Int64s, encode: Encode = encode_json
    ) -> Iterator[OutputRecord]:
        """Yield the alarms as records; see `Result.records`."""
        for part in self.record_columns(detected_at_us, encode):
            yield from part.records()

    def record_columns(
        self, detected_at_us: int | Int64s, encode: Encode = encode_json
    ) -> Iterator[RecordColumns]:
        """Yield the alarms as columns; see `ColumnResult`."""
        for part in _parts(len(self)):
            chosen = self.select(part)
            verdicts = chosen._verdicts(encode)  # noqa: SLF001 - of this class
            moments = detected_at_us if isinstance(detected_at_us, int) else detected_at_us[part]
            events = [
                EventsOfAlarms(stream, segment, rows, names)
                for stream, segment, rows, names in (
                    (self.condition.a, self.a, chosen.a_rows, self.attributes.a),
                    (self.condition.b, self.b, chosen.b_rows, self.attributes.b),
                )
            ]
            yield _write_alarms(self.condition, self.keyed, moments, encode, verdicts, events)

    def _verdicts(self, encode: Encode) -> _Verdicts:
        late = self.a.late[self.a_rows] | self.b.late[self.b_rows]
        words = [word for way in DECIDED_BY for word in _encode_ways(way, encode)]
        numbers = None
        if self.condition.report_probability:
            numbers = split_numbers(encode(self._probabilities()))
        return _Verdicts(words, 2 * self.decided_by.astype(np.int64) + late, numbers)

    def _probabilities(self) -> list[float]:
        return probability_rows(  # type: ignore[no-any-return]
            self.a, self.a_rows, self.b, self.b_rows, self.condition.window
        ).tolist()


@dataclass(frozen=True, slots=True)
class UnmatchedBatch:
    """One or more events of A without a B: no past or future B satisfies the condition with them.

    Parameters
    ----------
    condition : TimingCondition
        The condition that no B satisfies.
    keyed : bool
        Whether the join key is the users' own (partitioning by key).
    a : Segment
        The segment that holds the events.
    a_rows : int64[n]
        Rows of the events.
    attributes : AttributeNames
        Attributes of the events.
    """

    condition: TimingCondition
    keyed: bool
    a: Segment
    a_rows: Int64s
    attributes: AttributeNames = NO_ATTRIBUTES

    def __len__(self) -> int:
        return len(self.a_rows)

    def heading(self, detected_at_us: int) -> Heading:
        """Return channel, topic and CloudEvents headers; see `Result.heading`."""
        return make_heading(self.condition, detected_at_us, ALARM_TYPE)

    def ready_us(self) -> Int64s:
        """See `Result.ready_us`."""
        return self.a.latest[self.a_rows]

    def records(
        self, detected_at_us: int | Int64s, encode: Encode = encode_json
    ) -> Iterator[OutputRecord]:
        """Yield the alarms as records; see `Result.records`."""
        for part in self.record_columns(detected_at_us, encode):
            yield from part.records()

    def record_columns(
        self, detected_at_us: int | Int64s, encode: Encode = encode_json
    ) -> Iterator[RecordColumns]:
        """Yield the alarms as columns; see `ColumnResult`."""
        words = _encode_ways(BY_WATERMARK, encode)
        for part in _parts(len(self)):
            rows = self.a_rows[part]
            verdicts = _Verdicts(words, self.a.late[rows].astype(np.int64), None)
            moments = detected_at_us if isinstance(detected_at_us, int) else detected_at_us[part]
            events = [EventsOfAlarms(self.condition.a, self.a, rows, self.attributes.a)]
            yield _write_alarms(self.condition, self.keyed, moments, encode, verdicts, events)


class _Verdicts(NamedTuple):
    """Fields between the id and the events of an alarm.

    Parameters
    ----------
    words : list of bytes
        JSON of `decided_by` and `late` without braces.
    places : int64[n]
        Index into `words` of each alarm.
    probability : BytesColumn or None
        JSON of the probability of each alarm, if alarms contain it.
    """

    words: list[bytes]
    places: Int64s
    probability: BytesColumn | None


def _parts(count: int) -> Iterator[slice]:
    """Yield the rows of alarms that are written together."""
    for begin in range(0, count, _PART_ALARMS):
        yield slice(begin, begin + _PART_ALARMS)


def _write_alarms(
    condition: TimingCondition,
    keyed: bool,  # noqa: FBT001 - of a private function
    detected_at_us: int | Int64s,
    encode: Encode,
    verdicts: _Verdicts,
    events: Sequence[EventsOfAlarms],
) -> RecordColumns:
    """Write alarms as pieces of JSON, since a few events may form many pairs.

    `events` are those of A, and of B if the alarms have a B.
    """
    count = len(verdicts.places)
    pieces = Pieces()
    common = {
        "v": ALARM_VERSION,
        "condition": condition.name,
        "version": condition.version,
        "kind": condition.kind,
        "threshold": float(condition.threshold),
    }
    ident = pieces.add(_identify(condition, events))
    begin = encode(common)[:-1] + b',"detected_at":'
    middle = b',"alarm_id":"'
    value: list[Int64s | int]
    if isinstance(detected_at_us, int):
        value = [pieces.one(b"%b%d%b" % (begin, detected_at_us, middle))]
    else:
        moments = pieces.add(split_numbers(encode(detected_at_us.tolist())))
        value = [pieces.one(begin), moments, pieces.one(middle)]
    words = BytesColumn.from_list([b'",' + word for word in verdicts.words])
    value += [ident, pieces.add(words, verdicts.places)]
    if verdicts.probability is not None:
        value += [pieces.one(b',"probability":'), pieces.add(verdicts.probability)]
    for role, found in zip(_ROLES, events, strict=False):
        encoded = found.encode(encode, keyed=keyed)
        value += [pieces.one(b',"%b":' % role), pieces.add(encoded, found.places)]
    value.append(pieces.one(b"}" if len(events) == len(_ROLES) else b',"b":%b}' % encode(None)))
    key = events[0].keys(pieces) if keyed else pieces.one(condition.name.encode())
    codes = stack_codes(count, [key, ident, *value])
    return RecordColumns(pieces.to_column(), codes[0], codes[2:], codes[1])


def _identify(condition: TimingCondition, events: Sequence[EventsOfAlarms]) -> BytesColumn:
    """Compute the ids of alarms; see `alarm_format.alarm_id`."""
    pieces = Pieces()
    start = pieces.one(alarm_message(condition.name, condition.version))
    parts = (part for it in events for part in it.framed_ids(pieces))
    codes = stack_codes(len(events[0].rows), [start, *parts])
    return digest_messages(join_pieces(pieces.to_column(), codes))


def _encode_ways(way: str, encode: Encode) -> list[bytes]:
    """Encode `decided_by` and `late`, as JSON without braces: first on time, then late."""
    return [encode({"decided_by": way, "late": late})[1:-1] for late in (False, True)]


def event_record(
    stream: str, event_id: bytes, key: bytes | None, earliest: int, latest: int
) -> dict[str, object]:
    """Return an event as an alarm contains it."""
    return {
        "id": as_text(event_id),
        "stream": stream,
        "key": None if key is None else as_text(key),
        "earliest": earliest,
        "latest": latest,
    }


def add_attributes(event: bytes, attributes: bytes) -> bytes:
    """Add the attributes, a JSON object, to the JSON of an event."""
    return b'%b,"attributes":%b}' % (event[:-1], attributes)
