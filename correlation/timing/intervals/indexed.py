"""Indexed timing correlation: targets by length, with one certain range per class.

Problem. Find all satisfied pairs of the events of each group without probe regions: no probability
is computed, and only targets that form a pair are visited.

Algorithm. The events of either side are classified by length (intervals.classes). For each two
lengths that meet in a group, the exact s-window [s_lo, s_hi] is computed once. The satisfied
targets of a base event are the contiguous range of the class with s_lo ≤ max_B - max_A ≤ s_hi
(docs/proofs.md, P-INDEXED), in narrow windows as well. Both ends of the range move forward with the
base events of one length and are found by galloping.

Reference. Extends Lee and Lee 2010: their regions bound the s-window over all lengths; this
algorithm uses the s-window of each length. The s-window: P-SWINDOW.

Cost. O(n log n + b c log t + w + pairs) for n events and, in each group, b base events that meet c
lengths of t targets; w pairs of lengths, each O(1) if the window is wide for them, O(log length) if
not. Memory O(n + pairs). The algorithm suits few lengths: with as many lengths as events it
computes an s-window for each pair in reach.
"""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING, Any, NamedTuple

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
from correlation.timing.intervals.specialising import refuse, specialise

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from correlation.timing.intervals.pairs import Side
    from correlation.timing.intervals.window import TimingWindow, WindowScalars


# Columns of `IntervalWindows.known`.
_LENGTH, _MET_BY, _LOW, _HIGH = range(4)
_COLUMNS = 4


class IntervalWindows(NamedTuple):
    """The s-windows of the current base class and every target class that it has met.

    Attributes
    ----------
    window : WindowScalars
        The condition.
    base_lengths : ndarray of int64, shape (b,)
        Length of each base class.
    known : ndarray of int64, shape (c, 4)
        For each target class: its length, the base class that it met last (initially -1), and both
        ends of their s-window.
    """

    window: WindowScalars
    base_lengths: NDArray[np.int64]
    known: NDArray[np.int64]


def correlate_indexed(
    base: Side,
    target: Side,
    groups: NDArray[np.int64],
    window: TimingWindow,
    *,
    exclude_same: bool,
    target_lengths: tuple[int, int] | None = None,
) -> Pairs:
    """Find the satisfied pairs by one certain range per length; see `pairs.Correlate`."""
    base, target, groups = check_inputs(base, target, groups)
    base_lengths, target_lengths = range_lengths(base, target, groups, target_lengths)
    reach = bounds(window, *base_lengths, *target_lengths)
    bases, targets = classify_in_reach(base, target, groups, reach)
    known = np.full((len(targets.lengths), _COLUMNS), -1, np.int64)
    known[:, _LENGTH] = targets.lengths
    return collect_ranges(
        bases,
        targets,
        len(groups),
        IntervalWindows(window.scalars(), bases.lengths, known),
        reach,
        exclude_same=exclude_same,
    )


def collect_ranges(
    bases: Classes,
    targets: Classes,
    groups: int,
    windows: IntervalWindows | Any,  # noqa: ANN401 - another kind that `find_window` takes
    reach: tuple[int, int],
    *,
    exclude_same: bool,
) -> Pairs:
    """Find the certain ranges of all classes and write their pairs.

    Parameters
    ----------
    bases, targets : Classes
        The classes of either side.
    groups : int
        Number of groups.
    windows : IntervalWindows or another kind for which `find_window` is specialised
        The s-windows of the classes.
    reach : (int, int)
        Min and max s of any satisfied pair.
    exclude_same : bool
        Leave out the pairs of equal positions.
    """
    by_group = targets.runs[np.argsort(targets.runs[:, RUN_GROUP], kind="stable")]
    sizes = np.bincount(by_group[:, RUN_GROUP], minlength=groups)
    starts = np.concatenate(([0], np.cumsum(sizes)))
    ranges, room = _find_ranges_kernel(
        bases, targets._replace(runs=by_group), starts, windows, reach
    )
    base_index, target_index, decided_by = make_columns(room)
    found = _fill_ranges_kernel(
        bases.rows, targets.rows, ranges, exclude_same, base_index, target_index
    )
    return Pairs(base_index[:found], target_index[:found], decided_by[:found], ProbeCounts(0, 0, 0))


@singledispatch
def find_window(
    windows: object,
    base_class: int,  # noqa: ARG001 - the interface
    target_class: int,  # noqa: ARG001
) -> tuple[int, int, int]:
    """Find the s-window of two classes: its number of intervals, and low, high for `take_span`."""
    return refuse(windows)


@singledispatch
def take_span(
    windows: object,
    low: int,  # noqa: ARG001 - the interface
    high: int,  # noqa: ARG001
    number: int,  # noqa: ARG001
) -> tuple[int, int]:
    """Return both ends of an interval of an s-window, as max_target - max_base."""
    return refuse(windows)


@njit(cache=True)
def _find_ranges_kernel(
    bases: Classes,
    targets: Classes,
    starts: NDArray[np.int64],
    windows: IntervalWindows,
    reach: tuple[int, int],
) -> tuple[NDArray[np.int64], int]:
    """Find the certain ranges that are not empty, and the number of targets in them.

    The runs of the targets are ordered by group; the runs of group g begin at `starts[g]`. A range
    consists of a position in `bases.rows`, and its begin and end in `targets.rows`.
    """
    ranges = np.empty((len(bases.rows), 3), np.int64)
    found = 0
    total = 0
    for r in range(len(bases.runs)):
        begin = bases.runs[r, RUN_BEGIN]
        end = bases.runs[r, RUN_END]
        group = bases.runs[r, RUN_GROUP]
        base_class = bases.runs[r, RUN_CLASS]
        earliest_reach = bases.latest[begin] + reach[0]
        latest_reach = bases.latest[end - 1] + reach[1]
        for q in range(starts[group], starts[group + 1]):
            run_begin = targets.runs[q, RUN_BEGIN]
            stop = targets.runs[q, RUN_END]
            if (
                targets.latest[stop - 1] < earliest_reach
                or targets.latest[run_begin] > latest_reach
            ):
                continue
            spans, one, other = find_window(windows, base_class, targets.runs[q, RUN_CLASS])
            for w in range(spans):
                low, high = take_span(windows, one, other, w)
                first = run_begin
                last = run_begin
                for k in range(begin, end):
                    latest = bases.latest[k]
                    first = _gallop_kernel(targets.latest, first, stop, latest + low)
                    last = _gallop_kernel(targets.latest, max(first, last), stop, latest + high + 1)
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
def _find_window_kernel(
    windows: IntervalWindows, base_class: int, target_class: int
) -> tuple[int, int, int]:
    """Compute the s-window of two lengths once: the runs of a base class are adjacent."""
    known = windows.known
    if known[target_class, _MET_BY] != base_class:
        known[target_class, _MET_BY] = base_class
        known[target_class, _LOW], known[target_class, _HIGH] = _bound_pair_kernel(
            windows.base_lengths[base_class], known[target_class, _LENGTH], windows.window
        )
    low = known[target_class, _LOW]
    high = known[target_class, _HIGH]
    return int(low <= high), low, high


@njit(cache=True)
def _take_span_kernel(
    windows: IntervalWindows,  # noqa: ARG001 - the interface
    low: int,
    high: int,
    number: int,  # noqa: ARG001
) -> tuple[int, int]:
    """Return the only interval."""
    return low, high


specialise(find_window, IntervalWindows, _find_window_kernel)
specialise(take_span, IntervalWindows, _take_span_kernel)


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
    """Write the pairs of the ranges; return their number."""
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
    """Remove i, which occurs at most once, from the ascending [begin, end); return the new end."""
    place = _gallop_kernel(target_index, begin, end, i)
    if place == end or target_index[place] != i:
        return end
    for k in range(place + 1, end):
        target_index[k - 1] = target_index[k]
    return end - 1
