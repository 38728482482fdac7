"""Lazy timing correlation with a look-up table (LL10 Algorithms 4 to 7), the default.

Problem. All satisfied pairs of the events of each group (a block of base events against a
max-sorted buffer of targets), computing as few probabilities as possible.

Algorithm. Two passes over the base events of each group, which are max-sorted as well.
1. *Locate*: where LH, LL, RL and RH fall among the targets. The outermost reach of any base event
   moves forward only (galloping); the base event's own ends are searched inside it.
2. *Collect*: the targets in [LL, RL] are pairs, nothing computed (Algorithm 6, lines 4 to 9). The
   left probe region is walked by descending, the right one by ascending max of the base events
   (lines 13 to 25); a table indexed by target position keeps the satisfied base event with the
   most useful earliest time seen so far (left: the greatest; right: the smallest), and a base
   event with earliest ≤ the entry (left; ≥ on the right) is satisfied without an evaluation
   (Algorithm 7; Theorem 2, generalised in docs/proofs.md, P-LOOKUP, to one-sided and narrow
   windows: on the left the upper end must not cut, on the right the lower end must not).

Reference. Lee and Lee 2010, section 4.2, Theorem 2.

Cost. O(b log t + pairs + probed) for b base events and t targets in reach; memory O(pairs), with
32 bytes a base event and 8 a target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from correlation.timing.exact import _decide_depths_kernel
from correlation.timing.pairs import LOOKUP, PROBE, Pairs, ProbeCounts, check_inputs
from correlation.timing.regions import _locate_offsets_kernel
from correlation.timing.satisfaction import bounds
from correlation.timing.window import UNBOUNDED_US

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from correlation.timing.pairs import Side
    from correlation.timing.window import TimingWindow, WindowScalars


def correlate_lazy_lookup(
    base: Side,
    target: Side,
    groups: NDArray[np.int64],
    window: TimingWindow,
    *,
    exclude_same: bool,
    target_lengths: tuple[int, int] | None = None,
) -> Pairs:
    """Find the satisfied pairs by regions and look-up tables; see `pairs.Correlate`."""
    base, target, groups = check_inputs(base, target, groups)
    base_lengths = _range_lengths_kernel(base.earliest, base.latest, groups[:, :2])
    if target_lengths is None:
        target_lengths = _range_lengths_kernel(target.earliest, target.latest, groups[:, 2:])
    reach = bounds(window, *base_lengths, *target_lengths)
    scalars = window.scalars()
    located = np.empty((int((groups[:, 1] - groups[:, 0]).sum()), 4), np.int64)
    certain, probed = _locate_targets_kernel(
        base.earliest, base.latest, target.latest, groups, scalars, reach, target_lengths, located
    )
    base_index = np.empty(certain + probed, np.int64)
    target_index = np.empty(certain + probed, np.int64)
    decided_by = np.zeros(certain + probed, np.uint8)
    found = _collect_certain_kernel(groups, located, exclude_same, base_index, target_index)
    probe_region = hits = 0
    if probed:
        table = np.empty(len(target.latest), np.int64)
        for collect in (_collect_left_kernel, _collect_right_kernel):
            found, probes, decided = collect(
                base.earliest,
                base.latest,
                target.earliest,
                target.latest,
                groups,
                located,
                scalars,
                exclude_same,
                table,
                (base_index, target_index, decided_by),
                found,
            )
            probe_region += int(probes)
            hits += int(decided)
    return Pairs(
        base_index[:found],
        target_index[:found],
        decided_by[:found],
        ProbeCounts(probe_region, hits, probe_region - hits),
    )


@njit(cache=True)
def _range_lengths_kernel(
    earliest: NDArray[np.int64], latest: NDArray[np.int64], ranges: NDArray[np.int64]
) -> tuple[int, int]:
    """Shortest and longest length of the events inside the ranges; 0, 0 if there are none."""
    shortest = UNBOUNDED_US
    longest = 0
    for g in range(len(ranges)):
        for i in range(ranges[g, 0], ranges[g, 1]):
            length = latest[i] - earliest[i]
            shortest = min(shortest, length)
            longest = max(longest, length)
    return min(shortest, longest), longest


@njit(cache=True)
def _locate_targets_kernel(
    base_earliest: NDArray[np.int64],
    base_latest: NDArray[np.int64],
    target_latest: NDArray[np.int64],
    groups: NDArray[np.int64],
    window: WindowScalars,
    reach: tuple[int, int],
    lengths: tuple[int, int],
    located: NDArray[np.int64],
) -> tuple[int, int]:
    """Fill `located`: a row per base event, in order of groups, of four target positions.

    [0] to [1] is the left probe region, [1] to [2] the satisfaction region, [2] to [3] the right
    probe region. Returns the sizes of the satisfaction and of the probe regions.
    """
    row = 0
    certain = 0
    probed = 0
    for g in range(len(groups)):
        first = groups[g, 2]
        last = first
        end = groups[g, 3]
        for i in range(groups[g, 0], groups[g, 1]):
            latest = base_latest[i]
            first = _gallop_kernel(target_latest, first, end, latest + reach[0])
            last = _gallop_kernel(target_latest, max(first, last), end, latest + reach[1] + 1)
            if first == last:
                located[row, :] = first
                row += 1
                continue
            lh, ll, rl, rh = _locate_offsets_kernel(
                latest - base_earliest[i], lengths[0], lengths[1], window
            )
            left = _search_kernel(target_latest, first, last, latest + lh)
            stop = _search_kernel(target_latest, left, last, latest + rh + 1)
            sure = _search_kernel(target_latest, left, stop, latest + ll)
            right = _search_kernel(target_latest, sure, stop, latest + rl + 1)
            located[row, 0] = left
            located[row, 1] = sure
            located[row, 2] = right
            located[row, 3] = stop
            certain += right - sure
            probed += (sure - left) + (stop - right)
            row += 1
    return certain, probed


@njit(cache=True)
def _gallop_kernel(latest: NDArray[np.int64], begin: int, end: int, value: int) -> int:
    """First position in [begin, end) with latest ≥ value, searched in growing steps."""
    step = 1
    while begin < end and latest[min(begin + step, end) - 1] < value:
        begin = min(begin + step, end)
        step *= 2
    position: int = _search_kernel(latest, begin, min(begin + step, end), value)
    return position


@njit(cache=True)
def _search_kernel(latest: NDArray[np.int64], begin: int, end: int, value: int) -> int:
    """First position in [begin, end) with latest ≥ value, else end."""
    while begin < end:
        middle = (begin + end) >> 1
        if latest[middle] < value:
            begin = middle + 1
        else:
            end = middle
    return begin


@njit(cache=True)
def _collect_certain_kernel(
    groups: NDArray[np.int64],
    located: NDArray[np.int64],
    exclude_same: bool,  # noqa: FBT001 - numba takes no keyword-only arguments
    base_index: NDArray[np.int64],
    target_index: NDArray[np.int64],
) -> int:
    """Write the satisfaction regions; returns the number of pairs."""
    row = 0
    found = 0
    for g in range(len(groups)):
        for i in range(groups[g, 0], groups[g, 1]):
            begin = located[row, 1]
            end = located[row, 2]
            row += 1
            if exclude_same and begin <= i < end:
                found = _fill_pairs_kernel(i, begin, i, base_index, target_index, found)
                begin = i + 1
            found = _fill_pairs_kernel(i, begin, end, base_index, target_index, found)
    return found


@njit(cache=True)
def _fill_pairs_kernel(
    i: int,
    begin: int,
    end: int,
    base_index: NDArray[np.int64],
    target_index: NDArray[np.int64],
    found: int,
) -> int:
    """Write (i, begin) to (i, end - 1) in two plain loops, which the compiler vectorises."""
    size = end - begin
    base_part = base_index[found : found + size]
    target_part = target_index[found : found + size]
    for k in range(size):
        base_part[k] = i
    for k in range(size):
        target_part[k] = begin + k
    return found + size


@njit(cache=True)
def _collect_left_kernel(
    base_earliest: NDArray[np.int64],
    base_latest: NDArray[np.int64],
    target_earliest: NDArray[np.int64],
    target_latest: NDArray[np.int64],
    groups: NDArray[np.int64],
    located: NDArray[np.int64],
    window: WindowScalars,
    exclude_same: bool,  # noqa: FBT001 - numba takes no keyword-only arguments
    table: NDArray[np.int64],
    out: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]],
    found: int,
) -> tuple[int, int, int]:
    """Write the satisfied pairs of the left probe regions from `found` on.

    Base events by descending max: the table keeps the greatest satisfied earliest time.
    Returns the number of pairs, the size of the probe regions and the look-up hits.
    """
    base_index, target_index, decided_by = out
    probe_region = 0
    hits = 0
    row = 0
    for g in range(len(groups)):
        count = groups[g, 1] - groups[g, 0]
        _reset_table_kernel(table, located[row : row + count, :2], -UNBOUNDED_US)
        for k in range(count - 1, -1, -1):
            i = groups[g, 0] + k
            earliest = base_earliest[i]
            latest = base_latest[i]
            for j in range(located[row + k, 0], located[row + k, 1]):
                if exclude_same and i == j:
                    continue
                probe_region += 1
                lower_depth = window.lower + latest - target_earliest[j]
                upper_depth = target_latest[j] - window.upper - earliest
                how = PROBE
                if earliest <= table[j] and upper_depth <= 0:
                    how = LOOKUP
                    hits += 1
                elif _decide_depths_kernel(
                    lower_depth,
                    upper_depth,
                    latest - earliest,
                    target_latest[j] - target_earliest[j],
                    window,
                ):
                    table[j] = max(table[j], earliest)
                else:
                    continue
                base_index[found] = i
                target_index[found] = j
                decided_by[found] = how
                found += 1
        row += count
    return found, probe_region, hits


@njit(cache=True)
def _collect_right_kernel(
    base_earliest: NDArray[np.int64],
    base_latest: NDArray[np.int64],
    target_earliest: NDArray[np.int64],
    target_latest: NDArray[np.int64],
    groups: NDArray[np.int64],
    located: NDArray[np.int64],
    window: WindowScalars,
    exclude_same: bool,  # noqa: FBT001 - numba takes no keyword-only arguments
    table: NDArray[np.int64],
    out: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]],
    found: int,
) -> tuple[int, int, int]:
    """Write the satisfied pairs of the right probe regions from `found` on.

    Base events by ascending max: the table keeps the smallest satisfied earliest time.
    Returns the number of pairs, the size of the probe regions and the look-up hits.
    """
    base_index, target_index, decided_by = out
    probe_region = 0
    hits = 0
    row = 0
    for g in range(len(groups)):
        count = groups[g, 1] - groups[g, 0]
        _reset_table_kernel(table, located[row : row + count, 2:], UNBOUNDED_US)
        for k in range(count):
            i = groups[g, 0] + k
            earliest = base_earliest[i]
            latest = base_latest[i]
            for j in range(located[row + k, 2], located[row + k, 3]):
                if exclude_same and i == j:
                    continue
                probe_region += 1
                lower_depth = window.lower + latest - target_earliest[j]
                upper_depth = target_latest[j] - window.upper - earliest
                how = PROBE
                if earliest >= table[j] and lower_depth <= 0:
                    how = LOOKUP
                    hits += 1
                elif _decide_depths_kernel(
                    lower_depth,
                    upper_depth,
                    latest - earliest,
                    target_latest[j] - target_earliest[j],
                    window,
                ):
                    table[j] = min(table[j], earliest)
                else:
                    continue
                base_index[found] = i
                target_index[found] = j
                decided_by[found] = how
                found += 1
        row += count
    return found, probe_region, hits


@njit(cache=True)
def _reset_table_kernel(table: NDArray[np.int64], ranges: NDArray[np.int64], empty: int) -> None:
    """Empty the entries from the least to the greatest position of the ranges."""
    begin = len(table)
    end = 0
    for k in range(len(ranges)):
        if ranges[k, 0] < ranges[k, 1]:
            begin = min(begin, ranges[k, 0])
            end = max(end, ranges[k, 1])
    for j in range(begin, end):
        table[j] = empty
