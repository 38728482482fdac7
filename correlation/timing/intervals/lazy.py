"""Lazy timing correlation (LL10 Algorithms 4 and 5): a block of base events at once.

Problem. Find all satisfied pairs of the events of each group. Position decides targets where
possible, and a block of base events shares its searches. Events may have intervals or histograms
(`search.locate_event`, `search.collect_located`).

Algorithm. When enough events wait (Algorithm 4, in `block_operator`), a block of them is evaluated
against the max-sorted targets. The targets of all its base events are located (intervals.locating).
The base events are then visited by descending max (Algorithm 5, line 4): certain targets are pairs
(lines 6 to 8), and the other targets in reach are probed (lines 9 to 11, Algorithm 3), each by its
own probability, without a look-up table. The buffer does sorting and invalidation.

Reference. Lee and Lee 2010, section 4.2, Algorithms 4 and 5; PTJ Theorem 3 for histograms.

Cost. O(b log t + pairs + probed) for b base events and t targets in reach, O(log t) per piece for
histograms; memory O(pairs + probed) with 32 bytes per base event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numba import njit

from correlation.timing.intervals.collecting import make_columns
from correlation.timing.intervals.locating import locate_events
from correlation.timing.intervals.pairs import Pairs, ProbeCounts
from correlation.timing.intervals.search import collect_located, make_search

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from correlation.timing.intervals.collecting import Columns
    from correlation.timing.intervals.pairs import Side
    from correlation.timing.intervals.search import AnySearch
    from correlation.timing.intervals.window import TimingWindow


def correlate_lazy(
    base: Side,
    target: Side,
    groups: NDArray[np.int64],
    window: TimingWindow,
    *,
    exclude_same: bool,
    target_lengths: tuple[int, int] | None = None,
) -> Pairs:
    """Find the satisfied pairs by the regions of a block; see `pairs.Correlate`."""
    search = make_search(base, target, groups, window, target_lengths, exclude_same=exclude_same)
    return correlate_block(search)


def correlate_block(search: AnySearch) -> Pairs:
    """Find the pairs of any kind of search; pairs of histograms may be doubtful."""
    rows, reached, _ = locate_events(search)
    out = make_columns(reached)
    found, evaluations = _correlate_block_kernel(search, rows, out)
    counts = ProbeCounts(int(evaluations), 0, int(evaluations))
    return Pairs(out[0][:found], out[1][:found], out[2][:found], counts)


@njit(cache=True)
def _correlate_block_kernel(
    search: AnySearch, rows: NDArray[np.int64], out: Columns
) -> tuple[int, int]:
    """Write the pairs; return their number and the number of pairs decided one by one."""
    groups = search.groups
    found = 0
    evaluations = 0
    row = 0
    for g in range(len(groups)):
        count = groups[g, 1] - groups[g, 0]
        for k in range(count - 1, -1, -1):
            located = (rows[row + k, 0], rows[row + k, 1], rows[row + k, 2], rows[row + k, 3])
            if located[0] == located[3]:
                continue
            found, decided = collect_located(search, groups[g, 0] + k, located, out, found)
            evaluations += decided
        row += count
    return found, evaluations
