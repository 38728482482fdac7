"""Eager timing correlation of events with histograms (LL10 Algorithms 2 and 3): each as it arrives.

Problem. All satisfied pairs of the events of each group, with the targets decided by their position
where that is possible, and none of the base events waiting for another.

Algorithm. The base events of a group are taken one by one. For each, both ends of its pieces
(`histograms.pieces`) are searched among all targets; certain ones are pairs, the others are probed.
Nothing is shared between base events.

Reference. Lee and Lee 2010, Algorithms 2 and 3; PTJ Theorem 3 for the ranges.

Cost. O(log t) a piece for t targets, and a decision for each that is probed; memory O(pairs).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numba import njit

from correlation.timing.histograms.pieces import CERTAIN
from correlation.timing.histograms.search import _probe_kernel, correlate_parts
from correlation.timing.intervals.collecting import _fill_certain_kernel
from correlation.timing.intervals.searching import _search_kernel

if TYPE_CHECKING:
    from correlation.timing.histograms.search import Search
    from correlation.timing.intervals.collecting import Columns
    from correlation.timing.intervals.pairs import Pairs


def correlate_eager(search: Search) -> Pairs:
    """Find the satisfied pairs by the pieces of each base event."""
    return correlate_parts(search, _correlate_events_kernel)


@njit(cache=True)
def _correlate_events_kernel(search: Search, done: int, out: Columns) -> tuple[int, int, int, int]:
    """Give the fields of a `collecting.Part`."""
    groups = search.groups
    pieces = search.pieces
    targets = search.target_latest
    found = 0
    evaluations = 0
    row = 0
    for g in range(len(groups)):
        end = groups[g, 3]
        for i in range(groups[g, 0], groups[g, 1]):
            row += 1
            if row <= done:
                continue
            latest = search.base_latest[i]
            first = pieces.starts[search.base_codes[i]]
            last = pieces.starts[search.base_codes[i] + 1]
            if first == last:
                continue
            begin = _search_kernel(targets, groups[g, 2], end, latest + pieces.low[first])
            stop = _search_kernel(targets, begin, end, latest + pieces.high[last - 1] + 1)
            if found + stop - begin > len(out[0]):
                return row - 1, found, evaluations, stop - begin
            for p in range(first, last):
                begin = _search_kernel(targets, begin, end, latest + pieces.low[p])
                stop = _search_kernel(targets, begin, end, latest + pieces.high[p] + 1)
                if pieces.how[p] == CERTAIN:
                    found = _fill_certain_kernel(
                        i, begin, stop, search.exclude_same, out[0], out[1], found
                    )
                else:
                    found, decided = _probe_kernel(search, i, begin, stop, out, found)
                    evaluations += decided
                begin = stop
    return row, found, evaluations, 0
