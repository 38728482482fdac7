"""Alarms: records of the pairs of a timing condition, and of its events of A without a B."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from correlation.buffers.attribute_json import encode_attributes
from correlation.buffers.columns import Int64s
from correlation.buffers.segment import Segment
from correlation.operators import Encode, Heading, OutputRecord, encode_json, make_heading
from correlation.resources.streams import Stream
from correlation.result_format import ALARM_TYPE, as_text, framed
from correlation.timing.alarm_format import ALARM_VERSION, BY_WATERMARK, alarm_digest
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
# Pairs that are encoded together: each takes about 200 bytes beside its record.
_PART_PAIRS = 65_536


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
        for begin in range(0, len(self), _PART_PAIRS):
            part = slice(begin, begin + _PART_PAIRS)
            moments = detected_at_us if isinstance(detected_at_us, int) else detected_at_us[part]
            yield from self.select(part)._encode(moments, encode)  # noqa: SLF001 - of this class

    def _encode(self, detected_at_us: int | Int64s, encode: Encode) -> Iterator[OutputRecord]:
        condition = self.condition
        keys = self.a.key_of_rows(self.a_rows).to_list() if self.keyed else None
        a_ids, b_ids = self.a.id.take(self.a_rows), self.b.id.take(self.b_rows)
        return _write_alarms(
            condition,
            detected_at_us,
            encode,
            keys,
            [
                framed(a_id) + framed(b_id)
                for a_id, b_id in zip(a_ids.to_list(), b_ids.to_list(), strict=True)
            ],
            self._encode_verdicts(encode),
            _encode_events(condition.a, self.a, self.a_rows, keys, encode, self.attributes.a),
            _encode_events(condition.b, self.b, self.b_rows, keys, encode, self.attributes.b),
        )

    def _encode_verdicts(self, encode: Encode) -> Iterator[bytes]:
        """Encode `decided_by`, `late` and `probability` of each pair, as JSON without braces."""
        late = self.a.late[self.a_rows] | self.b.late[self.b_rows]
        words = [word for way in DECIDED_BY for word in _encode_ways(way, encode)]
        verdicts = map(words.__getitem__, (2 * self.decided_by.astype(np.intp) + late).tolist())
        if not self.condition.report_probability:
            return verdicts
        numbers = encode(self._probabilities())[1:-1].split(b",")
        pairs = zip(verdicts, numbers, strict=True)
        return (b'%b,"probability":%b' % pair for pair in pairs)

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
        """Return the alarms as records; see `Result.records`."""
        condition = self.condition
        keys = self.a.key_of_rows(self.a_rows).to_list() if self.keyed else None
        words = _encode_ways(BY_WATERMARK, encode)
        return _write_alarms(
            condition,
            detected_at_us,
            encode,
            keys,
            [framed(a_id) for a_id in self.a.id.take(self.a_rows).to_list()],
            (words[late] for late in self.a.late[self.a_rows].tolist()),
            _encode_events(condition.a, self.a, self.a_rows, keys, encode, self.attributes.a),
            repeat(encode(None), len(self)),
        )


def _write_alarms(
    condition: TimingCondition,
    detected_at_us: int | Int64s,
    encode: Encode,
    keys: list[bytes] | None,
    ids: Sequence[bytes],
    verdicts: Iterable[bytes],
    a: Iterable[bytes],
    b: Iterable[bytes],
) -> Iterator[OutputRecord]:
    """Join alarms from pieces of JSON, since a few events may form many pairs.

    `ids` are the framed ids of the events; the other columns are JSON, `verdicts` without braces.
    """
    start = alarm_digest(condition.name, condition.version)
    common = {
        "v": ALARM_VERSION,
        "condition": condition.name,
        "version": condition.version,
        "kind": condition.kind,
        "threshold": float(condition.threshold),
    }
    begin = encode(common)[:-1] + b',"detected_at":'
    heads: Iterable[bytes]
    if isinstance(detected_at_us, int):
        heads = repeat(b"%b%d" % (begin, detected_at_us), len(ids))
    else:
        heads = (b"%b%d" % (begin, moment) for moment in detected_at_us.tolist())
    names = keys if keys is not None else repeat(condition.name.encode(), len(ids))
    columns = zip(names, heads, ids, verdicts, a, b, strict=True)
    for key, head, named, verdict, a_event, b_event in columns:
        digest = start.copy()
        digest.update(named)
        ident = digest.hexdigest()
        value = b'%b,"alarm_id":"%b",%b,"a":%b,"b":%b}' % (
            head,
            ident.encode(),
            verdict,
            a_event,
            b_event,
        )
        yield OutputRecord(key, value, ident)


def _encode_ways(way: str, encode: Encode) -> list[bytes]:
    """Encode `decided_by` and `late`, as JSON without braces: first on time, then late."""
    return [encode({"decided_by": way, "late": late})[1:-1] for late in (False, True)]


def _encode_events(
    stream: str,
    segment: Segment,
    rows: Int64s,
    keys: list[bytes] | None,
    encode: Encode,
    attributes: tuple[str, ...],
) -> list[bytes]:
    """Encode each event once and return the JSON of every row."""
    distinct, places = np.unique(rows, return_inverse=True)
    names = segment.key_of_rows(distinct).to_list() if keys is not None else None
    columns = zip(
        segment.id.take(distinct).to_list(),
        names if names is not None else repeat(None, len(distinct)),
        segment.earliest[distinct].tolist(),
        segment.latest[distinct].tolist(),
        strict=True,
    )
    events = [encode(event_record(stream, *event)) for event in columns]
    if attributes:
        values = encode_attributes(segment.columns, distinct, attributes)
        events = list(map(add_attributes, events, values))
    return [events[place] for place in places.tolist()]


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
