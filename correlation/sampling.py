"""Samples of the records of streams, from which the load of a condition is estimated.

A sample is read as the job reads the records of a topic. It yields the rate of the stream, the
records that the job would reject, and columns of events, of which `ConditionKind.measure` estimates
more. Nothing is decided by a sample: it describes the records that it contains.

Rates. n events whose times range from the first to the last moment have the rate
(n - 1) / (last - first), even if other records lie between them. The rate of a stream is that of
its event times (`latest`), because windows are measured in them. The rate of Kafka's timestamps
shows how fast the same events arrived; both differ if recorded events were loaded in bulk.

Outliers. One wrong time would change first or last. The inner range is that of the times without
the lowest and the highest 5 %; times that are further from it than it is wide are left out. Of less
than 10 events all times count, because a few times show no range.

Cut samples. If only the newest records of busy partitions were read, the sample has records of
quiet partitions from a longer time. The rate is then the sum of the rates of the partitions, each
over the time from its first to its last event.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from correlation.buffers.columns import Int64s
from correlation.buffers.events import Events
from correlation.errors import RejectedEventError
from correlation.limits import TIME_LIMIT_US
from correlation.parsing.intake import Problem
from correlation.parsing.stream_reader import StreamReader
from correlation.reasons import Reason
from correlation.resources.streams import Stream

# Timestamp of a record whose own is not known: after any time, so the event is not future-dated.
_NEVER_US = 2 * TIME_LIMIT_US
# Timestamp of such a record in columns, as the job has it.
_NO_TIMESTAMP = 0
# The inner range leaves out one of this number of events at either end.
_TAIL = 20
# Samples with fewer events have no outliers.
_FEWEST = 10
# Rates that differ by this factor are reported.
_FACTOR = 2.0
_US = 1e6


class SampleRecord(NamedTuple):
    """A record of a sample.

    Parameters
    ----------
    value : object
        Parsed value.
    text : bytes or None
        JSON of the value; None if `value` holds its fractions as decimals.
    record_key : bytes or None
        Kafka key.
    record_timestamp_us : int or None
        Kafka's timestamp, in µs since 1970; None: not known.
    partition, offset : int
        Place in Kafka, or in the sample.
    problem : Problem or None
        Why the value could not be parsed; `value` is then not used.
    """

    value: object
    text: bytes | None = None
    record_key: bytes | None = None
    record_timestamp_us: int | None = None
    partition: int = 0
    offset: int = 0
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class StreamSample:
    """The sample of a stream, after reading.

    Parameters
    ----------
    stream : Stream
        The stream.
    records : int
        Number of records.
    events : Events
        The valid events.
    filtered : int
        Number of records that the stream's `where` excludes.
    rejected : mapping of Reason to int
        Number of records that the job would reject, by reason.
    problems : tuple of str
        Problem of the first rejected record of each reason.
    is_cut : bool
        Whether the partitions have records of different times, because not all were read.
    """

    stream: Stream
    records: int
    events: Events
    filtered: int
    rejected: Mapping[Reason, int]
    problems: tuple[str, ...]
    is_cut: bool = False

    @property
    def rate(self) -> float | None:
        """Events per second of event time; None: the events have less than two times."""
        return self._estimate(self.events.latest).per_second

    @property
    def arrival_rate(self) -> float | None:
        """Events per second of Kafka's timestamps; None: less than two are known."""
        return self._estimate(self.events.record_timestamp_us, _NO_TIMESTAMP).per_second

    def _estimate(self, times_us: Int64s, unknown_us: int | None = None) -> _Rate:
        """Estimate the rate of moments of the events, of which those with a value are not known."""
        known = times_us != unknown_us
        partitions = self.events.partition[known] if self.is_cut else None
        return _estimate_rate(times_us[known], partitions)

    def describe(self) -> dict[str, Any]:
        """Return the facts of the sample as a JSON-able dict."""
        times = self.events.latest
        return {
            "records": self.records,
            "events": len(times),
            "filtered": self.filtered,
            "rejected": {str(reason): count for reason, count in sorted(self.rejected.items())},
            "problems": list(self.problems),
            "first_time": int(times.min()) if len(times) else None,
            "last_time": int(times.max()) if len(times) else None,
            "events_per_second": None if self.rate is None else shorten(self.rate),
            "arrivals_per_second": None
            if self.arrival_rate is None
            else shorten(self.arrival_rate),
        }

    def warnings(self) -> Iterator[str]:
        """Yield sentences on facts that make estimates of the stream wrong or impossible."""
        name, rejected = self.stream.name, sum(self.rejected.values())
        if rejected:
            listed = ", ".join(f"{reason} {count:,}" for reason, count in self.rejected.items())
            yield (
                f"{name}: {rejected:,} of {self.records:,} records would go to the dead-letter "
                f"topic ({listed}); correct the producer, or the declaration of the stream"
            )
        rate, outliers = self._estimate(self.events.latest)
        arrived = self.arrival_rate
        if outliers:
            yield (
                f"{name}: {outliers:,} of {len(self.events):,} events have times far from those of "
                "the others, and are left out of the rate; correct the producer: a time in the "
                "future makes later events late"
            )
        if rate is None:
            yield (
                f"{name}: the rate is not known, because the sample has less than two events with "
                "different times; use a larger sample, or add the rate to rates"
            )
        elif arrived is not None and max(rate, arrived) > _FACTOR * min(rate, arrived):
            yield (
                f"{name}: {rate:.4g} events per second by event time, but {arrived:.4g} by Kafka's "
                "timestamps; event time is used. The events were recorded and loaded in bulk, or "
                "the sample is not typical: correct the rate with rates"
            )


def shorten(number: float) -> float:
    """Return an estimate with four significant digits."""
    return float(f"{number:.4g}")


def read_sample(
    stream: Stream, records: Sequence[SampleRecord], *, is_cut: bool = False
) -> StreamSample:
    """Read the sample of a stream as the job reads its topic.

    Parameters
    ----------
    stream : Stream
        The stream.
    records : sequence of SampleRecord
        At least one record; those of a partition in the order of their offsets.
    is_cut : bool
        Whether the partitions have records of different times, because not all were read.
    """
    reader = StreamReader(stream)
    rows_of: dict[int, list[int]] = defaultdict(list)
    for row, record in enumerate(records):
        rows_of[record.partition].append(row)
    offsets = np.array([it.offset for it in records], np.int64)
    stamps = np.array(
        [
            _NO_TIMESTAMP if it.record_timestamp_us is None else it.record_timestamp_us
            for it in records
        ],
        np.int64,
    )

    def positions(rows: Sequence[int]) -> tuple[Int64s, Int64s]:
        return offsets[rows], stamps[rows]

    parts, filtered = [], 0
    problems: dict[int, Problem] = {}
    for partition, rows in sorted(rows_of.items()):
        intake = reader.begin(partition)
        for row in rows:
            record = records[row]
            if record.problem is not None:
                problems[row] = record.problem
                continue
            stamp_us = record.record_timestamp_us
            arrived_us = _NEVER_US if stamp_us is None else stamp_us
            try:
                intake.add(row, record.value, record.text, record.record_key, arrived_us)
            except RejectedEventError as error:
                problems[row] = Problem(error.reason, error.detail)
        problems |= dict(intake.settle(positions))
        filtered += intake.filtered
        parts.append(intake.to_events(*positions(intake.rows)))
    counts = Counter(it.reason for it in problems.values())
    return StreamSample(
        stream,
        len(records),
        Events.concat(parts),
        filtered,
        dict(counts.most_common()),
        tuple(_first_problems(problems)),
        is_cut,
    )


def _first_problems(problems: Mapping[int, Problem]) -> Iterable[str]:
    """Yield the first problem of each reason, with the number of its record, from 1."""
    seen = set()
    for row, problem in sorted(problems.items()):
        if problem.reason not in seen:
            seen.add(problem.reason)
            yield f"record {row + 1}: {problem.reason}, {problem.detail}"


class _Rate(NamedTuple):
    """An estimated rate per second, or None, and the number of moments that were left out."""

    per_second: float | None
    outliers: int


def _estimate_rate(times_us: Int64s, partitions: NDArray[np.int32] | None) -> _Rate:
    """Return the rate of moments, or the sum of the rates of their partitions."""
    if partitions is None:
        return _rate_without_outliers(times_us)
    found = [_rate_without_outliers(times_us[partitions == it]) for it in np.unique(partitions)]
    rates = [it.per_second for it in found if it.per_second is not None]
    if not rates:
        return _rate_without_outliers(times_us)
    return _Rate(sum(rates), sum(it.outliers for it in found))


def _rate_without_outliers(times_us: Int64s) -> _Rate:
    """Return (n - 1) / (last - first) of the n moments that are not outliers."""
    kept = np.sort(times_us)
    if len(kept) >= _FEWEST:
        tail = max(1, len(kept) // _TAIL)
        low, high = int(kept[tail]), int(kept[-tail - 1])
        width = high - low
        # Of moments that are nearly all equal, the others show the span.
        if width:
            kept = kept[(kept >= low - width) & (kept <= high + width)]
    outliers = len(times_us) - len(kept)
    span_us = int(kept[-1]) - int(kept[0]) if len(kept) else 0
    return _Rate((len(kept) - 1) * _US / span_us if span_us else None, outliers)
