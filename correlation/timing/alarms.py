"""Alarms: records of the pairs of a timing condition, and of its events of A without a B.

`alarm_format` has their ids and versions, and `alarm_writing` writes their JSON: as columns for
many pairs, from lists for a few. The records leave the operator as columns
(`correlation.record_columns`), of which `spark_jobs.worker.envelope` makes rows and
`spark_jobs.sink.transactions` records in Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from correlation.buffers.columns import Int64s
from correlation.buffers.segment import Segment
from correlation.operators import Encode, Heading, encode_json, make_heading
from correlation.record_columns import ColumnResult, RecordColumns
from correlation.resources.streams import Stream
from correlation.result_format import ALARM_TYPE
from correlation.timing.alarm_format import BY_WATERMARK
from correlation.timing.alarm_writing import Alarms, EventRows, encode_verdicts
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


@dataclass(frozen=True, slots=True)
class PairBatch(ColumnResult):
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

    def record_columns(
        self, detected_at_us: int | Int64s, encode: Encode = encode_json
    ) -> Iterator[RecordColumns]:
        """Yield the alarms as columns; see `ColumnResult`."""
        verdicts = [word for way in DECIDED_BY for word in encode_verdicts(way, encode)]
        for part in _parts(len(self)):
            chosen = self.select(part)
            late = self.a.late[chosen.a_rows] | self.b.late[chosen.b_rows]
            yield Alarms(
                self.condition,
                self.keyed,
                _moments(detected_at_us, part),
                verdicts,
                2 * chosen.decided_by.astype(np.int64) + late,
                chosen._probabilities() if self.condition.report_probability else None,  # noqa: SLF001 - of this class
                EventRows(self.condition.a, self.a, chosen.a_rows, self.attributes.a),
                EventRows(self.condition.b, self.b, chosen.b_rows, self.attributes.b),
            ).write(encode)

    def _probabilities(self) -> list[float]:
        return probability_rows(  # type: ignore[no-any-return]
            self.a, self.a_rows, self.b, self.b_rows, self.condition.window
        ).tolist()


@dataclass(frozen=True, slots=True)
class PairsFoundAgain(ColumnResult):
    """Pairs that are found again when their records are written: too many to be kept until then.

    Parameters
    ----------
    condition : TimingCondition
        The condition that the pairs satisfy.
    find : callable
        Returns the pairs, always the same.
    """

    condition: TimingCondition
    find: Callable[[], PairBatch]

    def heading(self, detected_at_us: int) -> Heading:
        """See `PairBatch.heading`."""
        return make_heading(self.condition, detected_at_us, ALARM_TYPE)

    def ready_us(self) -> Int64s:
        """See `Result.ready_us`."""
        return self.find().ready_us()

    def record_columns(
        self, detected_at_us: int | Int64s, encode: Encode = encode_json
    ) -> Iterator[RecordColumns]:
        """Yield the alarms as columns; see `ColumnResult`."""
        yield from self.find().record_columns(detected_at_us, encode)


@dataclass(frozen=True, slots=True)
class UnmatchedBatch(ColumnResult):
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

    def record_columns(
        self, detected_at_us: int | Int64s, encode: Encode = encode_json
    ) -> Iterator[RecordColumns]:
        """Yield the alarms as columns; see `ColumnResult`."""
        verdicts = encode_verdicts(BY_WATERMARK, encode)
        for part in _parts(len(self)):
            rows = self.a_rows[part]
            yield Alarms(
                self.condition,
                self.keyed,
                _moments(detected_at_us, part),
                verdicts,
                self.a.late[rows].astype(np.int64),
                None,
                EventRows(self.condition.a, self.a, rows, self.attributes.a),
                None,
            ).write(encode)


def _parts(count: int) -> Iterator[slice]:
    """Yield the rows of alarms that are written together."""
    for begin in range(0, count, _PART_ALARMS):
        yield slice(begin, begin + _PART_ALARMS)


def _moments(detected_at_us: int | Int64s, part: slice) -> int | Int64s:
    """Return the detection times of a part of the alarms."""
    return detected_at_us if isinstance(detected_at_us, int) else detected_at_us[part]
