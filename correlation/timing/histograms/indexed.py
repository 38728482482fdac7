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

from numba import njit

from correlation.timing.histograms.template_ranges import GAPS, GridColumns
from correlation.timing.intervals.classes import (
    Classes,
    _list_in_reach_kernel,
    _order_by_length,
    _split_runs_kernel,
)
from correlation.timing.intervals.indexed import collect_ranges, find_window, take_span
from correlation.timing.intervals.specialising import specialise

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from correlation.timing.histograms.search import Search
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
        # By the classes that occur in reach, as their runs count them.
        search.grid._replace(
            bases=search.grid.bases[bases.lengths], targets=search.grid.targets[targets.lengths]
        ),
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
def _find_window_kernel(
    grid: GridColumns, base_class: int, target_class: int
) -> tuple[int, int, int]:
    """Read the cell of two classes, which is known."""
    cell = grid.bases[base_class] + grid.targets[target_class]
    low = grid.cells[cell, 0]
    high = grid.cells[cell, 1]
    count: int = high if low >= GAPS else int(low <= high)
    return count, low, high


@njit(cache=True)
def _take_span_kernel(grid: GridColumns, low: int, high: int, number: int) -> tuple[int, int]:
    """Interval of a cell, as max_target - max_base."""
    if low >= GAPS:
        place = low - GAPS + number
        low = grid.spans[place, 0]
        high = grid.spans[place, 1]
    return (low, high) if grid.sign > 0 else (-high, -low)


specialise(find_window, GridColumns, _find_window_kernel)
specialise(take_span, GridColumns, _take_span_kernel)
