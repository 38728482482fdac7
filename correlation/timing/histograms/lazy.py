"""Lazy timing correlation of events with histograms (LL10 Algorithms 4 and 5): a block at once.

Problem. All satisfied pairs of the events of each group, with the targets decided by their position
where that is possible and the searches shared by a block of base events.

Algorithm. The pieces of all base events are located (`histograms.locating`), then walked by
descending max of the base events: certain ones are pairs, the others are probed. There is no
look-up table.

Reference. Lee and Lee 2010, Algorithms 4 and 5; PTJ Theorem 3 for the ranges.

Cost. O(log t) a piece for t targets in reach, and a decision for each that is probed; memory
O(pairs + probed).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numba import njit

from correlation.timing.histograms.locating import BASE, BEGIN, END, HOW, locate_block
from correlation.timing.histograms.pieces import CERTAIN
from correlation.timing.histograms.search import _probe_kernel, settle_pairs
from correlation.timing.intervals.collecting import _fill_certain_kernel, make_columns
from correlation.timing.intervals.pairs import ProbeCounts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from correlation.timing.histograms.search import Search
    from correlation.timing.intervals.collecting import Columns
    from correlation.timing.intervals.pairs import Pairs


def correlate_lazy(search: Search) -> Pairs:
    """Find the satisfied pairs by the pieces of a block."""
    located = locate_block(search)
    out = make_columns(located.certain + located.probed)
    found, evaluations = _correlate_block_kernel(search, located.ranges, out)
    counts = ProbeCounts(int(evaluations), 0, int(evaluations))
    return settle_pairs(search, (out[0][:found], out[1][:found], out[2][:found]), counts)


@njit(cache=True)
def _correlate_block_kernel(
    search: Search, ranges: NDArray[np.int64], out: Columns
) -> tuple[int, int]:
    """Write the pairs; returns their number and how many were decided one by one."""
    found = 0
    evaluations = 0
    for k in range(len(ranges) - 1, -1, -1):
        i = ranges[k, BASE]
        begin = ranges[k, BEGIN]
        end = ranges[k, END]
        if ranges[k, HOW] == CERTAIN:
            found = _fill_certain_kernel(i, begin, end, search.exclude_same, out[0], out[1], found)
        else:
            found, decided = _probe_kernel(search, i, begin, end, out, found)
            evaluations += decided
    return found, evaluations
