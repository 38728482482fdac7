"""Indexed timing correlation of events with histograms: a few certain ranges per class.

Problem. Find all satisfied pairs of the events of each group without probes: no probability is
computed, and only targets that form a pair are visited.

Algorithm. The events of either side in reach are classified by shape (intervals.classes does so by
length). For each two classes that meet in a group, a target of a base event is satisfied if
max_B - max_A lies in one of the intervals of their s-window (PTJ Theorem 2). These targets are one
contiguous range of the class in a wide window, and one range per interval in a narrow window
(docs/proofs.md, P-HISTOGRAM-INDEXED). The ends of each range move forward with the base events of
one class and are found by galloping.

Reference. Extends PTJ, which probes wherever the s-windows of the classes differ.

Cost. O(n log n + b c k log t + pairs) for n events and, in each group, b base events that meet c
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
        A search in which the s-windows of all classes are known.
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
        # The classes that occur in reach, in the numbering of their runs.
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
    """Build classes from listed rows and their groups; `lengths` are the codes of the classes."""
    listed = codes[rows]
    order = _order_by_length(listed)
    runs, distinct = _split_runs_kernel(listed[order], groups[order])
    return Classes(rows[order], latest[rows][order], runs, distinct)


@njit(cache=True)
def _find_window_kernel(
    grid: GridColumns, base_class: int, target_class: int
) -> tuple[int, int, int]:
    """Read the cell of two classes, which must be known."""
    cell = grid.bases[base_class] + grid.targets[target_class]
    low = grid.cells[cell, 0]
    high = grid.cells[cell, 1]
    count: int = high if low >= GAPS else int(low <= high)
    return count, low, high


@njit(cache=True)
def _take_span_kernel(grid: GridColumns, low: int, high: int, number: int) -> tuple[int, int]:
    """Return an interval of a cell, as max_target - max_base."""
    if low >= GAPS:
        place = low - GAPS + number
        low = grid.spans[place, 0]
        high = grid.spans[place, 1]
    return (low, high) if grid.sign > 0 else (-high, -low)


specialise(find_window, GridColumns, _find_window_kernel)
specialise(take_span, GridColumns, _take_span_kernel)
