"""Simulate an algorithm over arrivals in stream time.

*By arrival* (simple, ssort, eager): every event is correlated with the other stream's buffer when
it arrives. *By block* (the lazy family, indexed, auto): events wait until their block is complete,
and the block is correlated with the `StreamBuffer`s like a batch of the job. In both cases the
buffers drop events below their keep values.

The algorithm is a server in stream time: work begins when the event or block has arrived and the
previous work is done, and takes the measured processor time. The response time is the completion
minus the later of both latest times. It is that of an otherwise idle machine, and grows without
bound if the algorithm cannot keep up. Processor time includes correlation, sorting, insertion and
invalidation, but not drawing and counting.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numba import njit
from numpy.typing import NDArray

from benchmarks.ll10.arrivals import LENGTHS, Arrivals, Workload
from benchmarks.ll10.sorted_buffer import ArrivalBuffer
from correlation.buffers.buffer import StreamBuffer
from correlation.buffers.columns import BytesColumn
from correlation.buffers.events import Events
from correlation.buffers.segment import Segment, match_groups
from correlation.timing.intervals.algorithms import ALGORITHMS, Pairs, Side
from correlation.timing.intervals.choosing import AUTO, choose_by_events

if TYPE_CHECKING:
    from collections.abc import Sequence

    from correlation.timing.intervals.pairs import Correlate

BY_ARRIVAL = ("simple", "ssort", "eager")
BY_BLOCK = ("lazy", "lazy_lookup", "indexed", AUTO)


@dataclass
class Measured:
    """Measurements of one run.

    Parameters
    ----------
    span_us : int
        Measured stream time, microseconds.
    pairs : int
        Number of pairs found.
    busy_us : float
        Processor time, microseconds.
    waited_us : float
        Sum of the response times of all pairs, microseconds.
    probed, hits, evaluated : int
        Number of targets in probe regions, of look-up hits, and of computed probabilities; `simple`
        and `ssort` compute the probability of every pair that they visit.
    held : float
        Buffered events of both streams, including those that wait for their block, summed over
        all arrivals.
    arrived : int
        Number of arrivals.
    """

    span_us: int
    pairs: int = 0
    busy_us: float = 0.0
    waited_us: float = 0.0
    probed: int = 0
    hits: int = 0
    evaluated: int = 0
    held: float = 0.0
    arrived: int = 0
    free_us: float = field(default=0.0, repr=False)

    @property
    def busy_seconds(self) -> float:
        """Processor time per second of stream time, seconds."""
        return self.busy_us / self.span_us

    @property
    def response_seconds(self) -> float:
        """Mean response time of a pair, seconds."""
        return self.waited_us / max(self.pairs, 1) / 1e6

    @property
    def buffer_events(self) -> float:
        """Mean number of buffered events per stream."""
        return self.held / max(self.arrived, 1) / 2

    @property
    def hit_ratio(self) -> float:
        """Share of the probe regions that the look-up tables decide."""
        return self.hits / max(self.probed, 1)

    def serve(self, ready_us: int, took_us: float) -> float:
        """Add work and return the stream time at which it is done."""
        self.busy_us += took_us
        self.free_us = max(self.free_us, ready_us) + took_us
        return self.free_us

    def count(self, pairs: Pairs, base: Side, target: Side, done_us: float) -> None:
        """Count pairs that were completed at a stream time."""
        found = len(pairs.base_index)
        later = _sum_later_kernel(base.latest, target.latest, pairs.base_index, pairs.target_index)
        self.pairs += found
        self.waited_us += found * done_us - later
        self.probed += pairs.counts.probe_region
        self.hits += pairs.counts.lookup_hits
        self.evaluated += pairs.counts.evaluations


def play_arrivals(algorithm: str, workload: Workload, arrivals: Arrivals) -> Measured:
    """Correlate every event when it arrives.

    Parameters
    ----------
    algorithm : str
        One of `BY_ARRIVAL`.
    workload : Workload
        The workload.
    arrivals : Arrivals
        Arrivals of the workload.

    Returns
    -------
    Measured
    """
    correlate = ALGORITHMS[algorithm]
    windows = (workload.window, workload.window.mirrored())
    # The simple correlation keeps events in order of arrival and visits all of them.
    is_sorted = algorithm != "simple"
    buffers = [[ArrivalBuffer(is_sorted=is_sorted) for _ in range(workload.keys)] for _ in range(2)]
    measured = Measured(workload.span_us)
    held = 0
    first = arrivals.first_measured
    # Earlier arrivals are obsolete when the first event is measured.
    start = int(np.searchsorted(arrivals.at_us, workload.fill_from_us))
    events = zip(*(column[start:].tolist() for column in arrivals), strict=True)
    for row, (at_us, earliest, latest, key, side) in enumerate(events, start):
        own, other = buffers[side][key], buffers[1 - side][key]
        keep = workload.keep_values(at_us)[1 - side]
        base = Side(arrivals.earliest[row : row + 1], arrivals.latest[row : row + 1])
        length = len(other)
        pairs = None
        begin = time.process_time()
        if row >= first:
            groups = np.array([[0, 1, other.begin, other.end]])
            pairs = correlate(
                base,
                other.columns,
                groups,
                windows[side],
                exclude_same=False,
                target_lengths=LENGTHS,
            )
        other.drop(keep)
        own.insert(earliest, latest)
        took_us = (time.process_time() - begin) * 1e6
        held += 1 + len(other) - length
        if pairs is not None:
            done_us = measured.serve(at_us, took_us)
            measured.count(pairs, base, other.columns, done_us)
            measured.arrived += 1
            measured.held += held
    return measured


def play_blocks(
    algorithm: str | Correlate,
    workload: Workload,
    arrivals: Arrivals,
    blocks: Sequence[tuple[int, int, int]],
) -> Measured:
    """Correlate every block when it is complete.

    Parameters
    ----------
    algorithm : str or Correlate
        One of `BY_BLOCK`, or the algorithm itself.
    workload : Workload
        The workload.
    arrivals : Arrivals
        Arrivals of the workload.
    blocks : sequence of (int, int, int)
        Blocks of `arrivals.cut_by_size` or `cut_by_interval`.

    Returns
    -------
    Measured
    """
    buffers = (StreamBuffer(), StreamBuffer())
    measured = Measured(workload.span_us)
    number = 0
    for begin, end, ready_us in blocks:
        events = [_gather_events(arrivals, begin, end, side) for side in (0, 1)]
        is_measured = arrivals.at_us[begin] >= 0
        if is_measured:
            size = end - begin
            before = len(buffers[0]) + len(buffers[1])
            measured.arrived += size
            measured.held += size * before + size * (size + 1) / 2
        started = time.process_time()
        fresh = [_sort_events(its) for its in events]
        met = _meet_block(algorithm, workload, buffers, fresh) if is_measured else []
        for buffer, segment, keep in zip(
            buffers, fresh, workload.keep_values(ready_us), strict=True
        ):
            mine = None if segment is None else (number, segment)
            number = buffer.age(mine, keep, number + 1)
        took_us = (time.process_time() - started) * 1e6
        if is_measured:
            done_us = measured.serve(ready_us, took_us)
            for base, target, pairs in met:
                measured.count(pairs, base, target, done_us)
    return measured


def _gather_events(arrivals: Arrivals, begin: int, end: int, side: int) -> Events:
    """Build the events of one stream in a block, in the job's form."""
    rows = begin + np.flatnonzero(arrivals.side[begin:end] == side)
    names = [b"k%d" % key for key in arrivals.key[rows].tolist()]
    return Events(
        "ab"[side],
        BytesColumn.from_list(names),
        BytesColumn.from_list([b"%d" % row for row in rows.tolist()]),
        arrivals.earliest[rows],
        arrivals.latest[rows],
        np.zeros(len(rows), np.int32),
        rows,
        arrivals.at_us[rows],
    )


def _sort_events(events: Events) -> Segment | None:
    if not len(events):
        return None
    return Segment.from_events(events, np.zeros(len(events), np.bool_))[0]


def _meet_block(
    algorithm: str | Correlate,
    workload: Workload,
    buffers: tuple[StreamBuffer, StreamBuffer],
    fresh: Sequence[Segment | None],
) -> list[tuple[Side, Side, Pairs]]:
    """Correlate new A with all B, and new B with the A of earlier blocks."""
    a, b = fresh
    min_s, max_s = workload.reach
    window, mirrored = workload.window, workload.window.mirrored()
    met = []
    if a is not None:
        targets = [*(segment for _, segment in buffers[1].segments), *([] if b is None else [b])]
        met += [(a, target, window) for target in targets if _may_meet(a, target, min_s, max_s)]
    if b is not None:
        met += [
            (b, target, mirrored)
            for _, target in buffers[0].segments
            if _may_meet(target, b, min_s, max_s)
        ]
    found = []
    for base, target, condition in met:
        sides = Side(base.earliest, base.latest), Side(target.earliest, target.latest)
        groups = match_groups(base, target)
        lengths = (target.min_uncertainty, target.max_uncertainty)
        chosen = algorithm
        if chosen == AUTO:
            chosen = choose_by_events(*sides, groups, condition, lengths)
        correlate = ALGORITHMS[chosen] if isinstance(chosen, str) else chosen
        pairs = correlate(*sides, groups, condition, exclude_same=False, target_lengths=lengths)
        found.append((*sides, pairs))
    return found


def _may_meet(a: Segment, b: Segment, min_s: int, max_s: int) -> bool:
    """Return whether any max_B - max_A is in the range where a pair can be satisfied."""
    return b.max_latest - a.min_latest >= min_s and b.min_latest - a.max_latest <= max_s


@njit(cache=True)
def _sum_later_kernel(
    base_latest: NDArray[np.int64],
    target_latest: NDArray[np.int64],
    base_index: NDArray[np.int64],
    target_index: NDArray[np.int64],
) -> float:
    """Sum the later of both latest times over all pairs."""
    total = 0.0
    for k in range(len(base_index)):
        total += float(max(base_latest[base_index[k]], target_latest[target_index[k]]))
    return total
