"""Indexed timing correlation of events with histograms: every class a few certain ranges.

Problem. All satisfied pairs of the events of each group, without a probe: no probability is
computed, and no target looked at that is not in a pair.

Algorithm. Events of either side in reach are put by class (timing.classes, with shapes for
lengths). For each two classes that meet in a group the satisfied targets of a base event are those
whose latest time lies in one of the intervals of their s-window (PTJ Theorem 2): in a wide window
one contiguous range of the class, in a narrow one as many as there are intervals, gaps included
(docs/proofs.md, P-HISTOGRAM-INDEXED). The ends of each range move forward with the base events of
one class, and are galloped after.

Reference. Goes past PTJ, whose probing range is what classes do not have in common.

Cost. O(n log n + b c k log t + pairs) for n events and, in each group, b base events meeting c
classes of t targets, with k intervals. Memory O(n + pairs).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from correlation.timing.histograms.template_ranges import GAPS
from correlation.timing.intervals.classes import (
    RUN_BEGIN,
    RUN_CLASS,
    RUN_END,
    RUN_GROUP,
    Classes,
    _list_in_reach_kernel,
    _order_by_length,
    _split_runs_kernel,
)
from correlation.timing.intervals.indexed import _double_ranges_kernel, collect_ranges
from correlation.timing.intervals.searching import _gallop_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from correlation.timing.histograms.search import Search
    from correlation.timing.histograms.template_ranges import GridColumns
    from correlation.timing.intervals.pairs import Pairs


def correlate_indexed(search: Search) -> Pairs:
    """Find the satisfied pairs by certain ranges for every two classes.

    Parameters
    ----------
    search : Search
        With the s-windows of all classes, all of them known.
    """
    base_rows, base_groups, target_rows, target_groups = _list_in_reach_kernel(
        search.base_latest, search.target_latest, search.groups, search.reach
    )
    bases = _classify(search.base_latest, search.base_codes, base_rows, base_groups)
    targets = _classify(search.target_latest, search.target_codes, target_rows, target_groups)
    return collect_ranges(
        bases,
        targets,
        len(search.groups),
        _find_ranges_kernel,
        search.grid,
        search.reach,
        exclude_same=search.exclude_same,
    )


def _classify(
    latest: NDArray[np.int64],
    codes: NDArray[np.int64],
    rows: NDArray[np.int64],
    groups: NDArray[np.int64],
) -> Classes:
    """Sort listed rows, given with their groups, by class; `lengths` are the classes' codes."""
    listed = codes[rows]
    order = _order_by_length(listed)
    runs, distinct = _split_runs_kernel(listed[order], groups[order])
    return Classes(rows[order], latest[rows][order], runs, distinct)


@njit(cache=True)
def _find_ranges_kernel(
    bases: Classes,
    targets: Classes,
    starts: NDArray[np.int64],
    grid: GridColumns,
    reach: tuple[int, int],
) -> tuple[NDArray[np.int64], int]:
    """Find the certain ranges that are not empty; see `indexed.collect_ranges`."""
    ranges = np.empty((len(bases.rows), 3), np.int64)
    found = 0
    total = 0
    for r in range(len(bases.runs)):
        begin = bases.runs[r, RUN_BEGIN]
        end = bases.runs[r, RUN_END]
        group = bases.runs[r, RUN_GROUP]
        row = grid.bases[bases.lengths[bases.runs[r, RUN_CLASS]]]
        earliest_reach = bases.latest[begin] + reach[0]
        latest_reach = bases.latest[end - 1] + reach[1]
        for q in range(starts[group], starts[group + 1]):
            least = targets.runs[q, RUN_BEGIN]
            stop = targets.runs[q, RUN_END]
            if targets.latest[stop - 1] < earliest_reach or targets.latest[least] > latest_reach:
                continue
            cell = row + grid.targets[targets.lengths[targets.runs[q, RUN_CLASS]]]
            for w in range(_count_spans_kernel(grid, cell)):
                low, high = _take_span_kernel(grid, cell, w)
                first = least
                last = least
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
def _count_spans_kernel(grid: GridColumns, cell: int) -> int:
    """Count the intervals of a cell that is known."""
    low = grid.cells[cell, 0]
    high = grid.cells[cell, 1]
    count: int = high if low >= GAPS else int(low <= high)
    return count


@njit(cache=True)
def _take_span_kernel(grid: GridColumns, cell: int, w: int) -> tuple[int, int]:
    """Interval w of a cell, as max_target - max_base."""
    low = grid.cells[cell, 0]
    high = grid.cells[cell, 1]
    if low >= GAPS:
        place = low - GAPS + w
        low = grid.spans[place, 0]
        high = grid.spans[place, 1]
    return (low, high) if grid.sign > 0 else (-high, -low)
