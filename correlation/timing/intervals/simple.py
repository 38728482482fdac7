"""Simple timing correlation (LL10 Algorithm 1): every base event with every target.

Problem. Find all satisfied pairs of the events of each group. This algorithm decides every pair
and is the reference for the others. Events may have intervals or histograms (`search.decide_pair`).

Reference. Lee and Lee 2010, Algorithm 1; the buffer does its invalidation. PTJ Theorem 1 for the
probability of histograms.

Cost. O(base x target) decisions; memory O(pairs).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numba import njit

from correlation.timing.intervals.collecting import collect_parts
from correlation.timing.intervals.pairs import PROBE, count_events
from correlation.timing.intervals.search import (
    DOUBT,
    DOUBTFUL,
    VIOLATED,
    decide_pair,
    make_search,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from correlation.timing.intervals.collecting import Columns
    from correlation.timing.intervals.pairs import Pairs, Side
    from correlation.timing.intervals.search import AnySearch
    from correlation.timing.intervals.window import TimingWindow


def correlate_simple(
    base: Side,
    target: Side,
    groups: NDArray[np.int64],
    window: TimingWindow,
    *,
    exclude_same: bool,
    target_lengths: tuple[int, int] | None = None,
) -> Pairs:
    """Find the satisfied pairs by deciding every pair; see `pairs.Correlate`."""
    search = make_search(base, target, groups, window, target_lengths, exclude_same=exclude_same)
    return collect_parts(count_events(search.groups), _decide_all_kernel, search)


@njit(cache=True)
def _decide_all_kernel(search: AnySearch, done: int, out: Columns) -> tuple[int, int, int, int]:
    """Return the fields of a `collecting.Part`."""
    base_index, target_index, decided_by = out
    groups = search.groups
    base_latest = search.base_latest
    target_latest = search.target_latest
    window = search.window
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
                if not window.floor <= target_latest[j] - base_latest[i] <= window.ceiling:
                    continue
                verdict = decide_pair(search, i, j)
                if verdict == VIOLATED:
                    continue
                base_index[found] = i
                target_index[found] = j
                decided_by[found] = DOUBT if verdict == DOUBTFUL else PROBE
                found += 1
    return row, found, evaluations, 0
