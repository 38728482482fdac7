"""Simple correlation of events with histograms (LL10 Algorithm 1): all base events, all targets.

Problem. All satisfied pairs of the events of each group. The plain reference of the others: no
position and no s-window decides, every probability is computed.

Reference. Lee and Lee 2010, Algorithm 1; PTJ Theorem 1 for the probability.

Cost. O(base x target) decisions; memory O(pairs).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numba import njit

from correlation.timing.histograms.filter import DOUBTFUL, VIOLATED
from correlation.timing.histograms.search import DOUBT, _decide_kernel, correlate_parts
from correlation.timing.intervals.pairs import PROBE

if TYPE_CHECKING:
    from correlation.timing.histograms.search import Search
    from correlation.timing.intervals.collecting import Columns
    from correlation.timing.intervals.pairs import Pairs


def correlate_simple(search: Search) -> Pairs:
    """Find the satisfied pairs by deciding every pair."""
    return correlate_parts(search, _decide_all_kernel)


@njit(cache=True)
def _decide_all_kernel(search: Search, done: int, out: Columns) -> tuple[int, int, int, int]:
    """Give the fields of a `collecting.Part`."""
    base_index, target_index, decided_by = out
    groups = search.groups
    found = 0
    evaluations = 0
    row = 0
    for g in range(len(groups)):
        targets = groups[g, 3] - groups[g, 2]
        for i in range(groups[g, 0], groups[g, 1]):
            row += 1
            if row <= done:
                continue
            if found + targets > len(base_index):
                return row - 1, found, evaluations, targets
            for j in range(groups[g, 2], groups[g, 3]):
                if search.exclude_same and i == j:
                    continue
                evaluations += 1
                s = search.target_latest[j] - search.base_latest[i]
                if not search.window.floor <= s <= search.window.ceiling:
                    continue
                verdict = _decide_kernel(search, i, j)
                if verdict == VIOLATED:
                    continue
                base_index[found] = i
                target_index[found] = j
                decided_by[found] = DOUBT if verdict == DOUBTFUL else PROBE
                found += 1
    return row, found, evaluations, 0
