"""Eager timing correlation (LL10 Algorithms 2 and 3): one base event at a time.

Problem. Find all satisfied pairs of the events of each group. Position decides targets where
possible, and base events do not wait for each other. Events may have intervals or histograms
(`search.locate_event`, `search.collect_located`).

Algorithm. The base events of a group are evaluated one by one. For each, LH, LL, RL and RH, or both
ends of its pieces (`histograms.pieces`), are searched among all targets (Algorithm 2, line 1).
Certain targets are pairs (lines 2 to 4); the other targets in reach are probed (lines 5 to 7,
Algorithm 3). Base events share no work: their order is not used, and the size of the result is not
known beforehand. The buffer inserts events and does the invalidation (lines 8 and 9).

Reference. Lee and Lee 2010, section 4.2, Algorithms 2 and 3; PTJ Theorem 3 for the pieces.

Cost. O(b log t + pairs + probed) for b base events and t targets; each search covers a whole group;
O(log t) per piece for histograms. Memory O(pairs), in parts that are joined at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numba import njit

from correlation.timing.intervals.collecting import collect_parts
from correlation.timing.intervals.pairs import count_events
from correlation.timing.intervals.search import collect_located, locate_event, make_search

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from correlation.timing.intervals.collecting import Columns
    from correlation.timing.intervals.pairs import Pairs, Side
    from correlation.timing.intervals.search import AnySearch
    from correlation.timing.intervals.window import TimingWindow


def correlate_eager(
    base: Side,
    target: Side,
    groups: NDArray[np.int64],
    window: TimingWindow,
    *,
    exclude_same: bool,
    target_lengths: tuple[int, int] | None = None,
) -> Pairs:
    """Find the satisfied pairs by the regions of each base event; see `pairs.Correlate`."""
    search = make_search(base, target, groups, window, target_lengths, exclude_same=exclude_same)
    return collect_parts(count_events(search.groups), _correlate_events_kernel, search)


@njit(cache=True)
def _correlate_events_kernel(
    search: AnySearch, done: int, out: Columns
) -> tuple[int, int, int, int]:
    """Return the fields of a `collecting.Part`."""
    groups = search.groups
    found = 0
    evaluations = 0
    row = 0
    for g in range(len(groups)):
        for i in range(groups[g, 0], groups[g, 1]):
            row += 1
            if row <= done:
                continue
            located = locate_event(search, i, groups[g, 2], groups[g, 3])
            room = located[3] - located[0]
            if found + room > len(out[0]):
                return row - 1, found, evaluations, room
            found, decided = collect_located(search, i, located, out, found)
            evaluations += decided
    return row, found, evaluations, 0
