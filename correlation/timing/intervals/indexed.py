"""Indexed timing correlation: targets by length, every class one certain range.

Problem. All satisfied pairs of the events of each group, without a probe region: no probability is
computed and no target looked at that is not in a pair.

Algorithm. Events of either side are put by length (timing.classes). For each two lengths that meet
in a group the exact s-window [s_lo, s_hi] is computed once; then the satisfied targets of a base
event are the contiguous range of the class with s_lo ≤ max_B - max_A ≤ s_hi (docs/proofs.md,
P-INDEXED), in narrow windows as well. Both ends of the range move forward with the base events of
one length, and are galloped after.

Reference. Goes past Lee and Lee 2010, whose regions bound the s-window over all lengths; here it is
taken for each. The s-window: P-SWINDOW.

Cost. O(n log n + b c log t + w + pairs) for n events and, in each group, b base events meeting c
lengths of t targets; w pairs of lengths, each O(1) if the window is wide for them, O(log length) if
not. Memory O(n + pairs). It pays where lengths are few: with as many lengths as events it degrades
to an s-window for each pair in reach.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from correlation.timing.intervals.classes import (
    RUN_BEGIN,
    RUN_CLASS,
    RUN_END,
    RUN_GROUP,
    Classes,
    classify_in_reach,
)
from correlation.timing.intervals.collecting import make_columns
from correlation.timing.intervals.pairs import Pairs, ProbeCounts, check_inputs, range_lengths
from correlation.timing.intervals.satisfaction import _bound_pair_kernel, bounds
from correlation.timing.intervals.searching import _gallop_kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from correlation.timing.intervals.pairs import Side
    from correlation.timing.intervals.window import TimingWindow, WindowScalars


def correlate_indexed(
    base: Side,
    target: Side,
    groups: NDArray[np.int64],
    window: TimingWindow,
    *,
    exclude_same: bool,
    target_lengths: tuple[int, int] | None = None,
) -> Pairs:
    """Find the satisfied pairs by a certain range for every length; see `pairs.Correlate`."""
    base, target, groups = check_inputs(base, target, groups)
    base_lengths, target_lengths = range_lengths(base, target, groups, target_lengths)
    reach = bounds(window, *base_lengths, *target_lengths)
    bases, targets = classify_in_reach(base, target, groups, reach)
    return collect_ranges(
        bases,
        targets,
        len(groups),
        _find_ranges_kernel,
        window.scalars(),
        reach,
        exclude_same=exclude_same,
    )


def collect_ranges(
    bases: Classes,
    targets: Classes,
    groups: int,
    find_ranges: Callable[..., tuple[NDArray[np.int64], int]],
    *arguments: object,
    exclude_same: bool,
) -> Pairs:
    """Find the certain ranges of all classes and write their pairs.

    Parameters
    ----------
    bases, targets : Classes
        Of either side.
    groups : int
        Number of groups.
    find_ranges : callable
        `(bases, targets, starts, *arguments)` gives the ranges as int64[r, 3], each a place in
        `bases.rows` and where it begins and ends in `targets.rows`, and the number of targets in
        them. The runs of the targets are ordered by group, those of group g begin at `starts[g]`.
    *arguments
        Of `find_ranges`.
    exclude_same : bool
        Leave out the pairs of equal positions.
    """
    by_group = targets.runs[np.argsort(targets.runs[:, RUN_GROUP], kind="stable")]
    sizes = np.bincount(by_group[:, RUN_GROUP], minlength=groups)
    starts = np.concatenate(([0], np.cumsum(sizes)))
    ranges, room = find_ranges(bases, targets._replace(runs=by_group), starts, *arguments)
    base_index, target_index, decided_by = make_columns(room)
    found = _fill_ranges_kernel(
        bases.rows, targets.rows, ranges, exclude_same, base_index, target_index
    )
    return Pairs(base_index[:found], target_index[:found], decided_by[:found], ProbeCounts(0, 0, 0))


@njit(cache=True)
def _find_ranges_kernel(
    bases: Classes,
    targets: Classes,
    starts: NDArray[np.int64],
    window: WindowScalars,
    reach: tuple[int, int],
) -> tuple[NDArray[np.int64], int]:
    """Find the certain ranges that are not empty; see `collect_ranges`."""
    ranges = np.empty((len(bases.rows), 3), np.int64)
    found = 0
    total = 0
    # The s-windows of the base class in hand and every target class it has met.
    low = np.empty(len(targets.lengths), np.int64)
    high = np.empty(len(targets.lengths), np.int64)
    met_by = np.full(len(targets.lengths), -1, np.int64)
    for r in range(len(bases.runs)):
        begin = bases.runs[r, RUN_BEGIN]
        end = bases.runs[r, RUN_END]
        group = bases.runs[r, RUN_GROUP]
        base_class = bases.runs[r, RUN_CLASS]
        earliest_reach = bases.latest[begin] + reach[0]
        latest_reach = bases.latest[end - 1] + reach[1]
        for q in range(starts[group], starts[group + 1]):
            first = targets.runs[q, RUN_BEGIN]
            stop = targets.runs[q, RUN_END]
            c = targets.runs[q, RUN_CLASS]
            if targets.latest[stop - 1] < earliest_reach or targets.latest[first] > latest_reach:
                continue
            if met_by[c] != base_class:
                met_by[c] = base_class
                low[c], high[c] = _bound_pair_kernel(
                    bases.lengths[base_class], targets.lengths[c], window
                )
            if low[c] > high[c]:
                continue
            last = first
            for k in range(begin, end):
                latest = bases.latest[k]
                first = _gallop_kernel(targets.latest, first, stop, latest + low[c])
                last = _gallop_kernel(targets.latest, max(first, last), stop, latest + high[c] + 1)
                if first == stop:
                    break
                if first == last:
                    continue
                if found == len(ranges):
                    ranges = _double_ranges_kernel(ranges)
                ranges[found, 0] = k
                ranges[found, 1] = first
                ranges[found, 2] = last
                found += 1
                total += last - first
    return ranges[:found], total


@njit(cache=True)
def _double_ranges_kernel(ranges: NDArray[np.int64]) -> NDArray[np.int64]:
    larger = np.empty((2 * len(ranges), 3), np.int64)
    larger[: len(ranges)] = ranges
    return larger


@njit(cache=True)
def _fill_ranges_kernel(
    base_rows: NDArray[np.int64],
    target_rows: NDArray[np.int64],
    ranges: NDArray[np.int64],
    exclude_same: bool,  # noqa: FBT001 - numba takes no keyword-only arguments
    base_index: NDArray[np.int64],
    target_index: NDArray[np.int64],
) -> int:
    """Write the pairs of the ranges; returns their number."""
    found = 0
    for r in range(len(ranges)):
        i = base_rows[ranges[r, 0]]
        begin = ranges[r, 1]
        end = ranges[r, 2]
        size = end - begin
        base_part = base_index[found : found + size]
        target_part = target_index[found : found + size]
        members = target_rows[begin:end]
        for n in range(size):
            base_part[n] = i
        for n in range(size):
            target_part[n] = members[n]
        found += size
        if exclude_same:
            found = _drop_same_kernel(i, target_index, found - size, found)
    return found


@njit(cache=True)
def _drop_same_kernel(i: int, target_index: NDArray[np.int64], begin: int, end: int) -> int:
    """Take i, which stands there at most once, out of the ascending [begin, end)."""
    place = _gallop_kernel(target_index, begin, end, i)
    if place == end or target_index[place] != i:
        return end
    for k in range(place + 1, end):
        target_index[k - 1] = target_index[k]
    return end - 1
