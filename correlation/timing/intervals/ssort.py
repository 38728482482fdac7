"""Simple-Sort timing correlation (LL10 Algorithm 1 over a max-sorted buffer).

Problem. Find all satisfied pairs of the events of each group, as intervals.simple does. Events may
have intervals or histograms (`search.probe_targets`).

Algorithm. Every target within the reach of the search is decided. The s of all satisfied pairs of
these lengths or classes lie within the reach (docs/proofs.md, P-KEEP, P-SUPPORT), and the targets
are sorted by max. Targets below the reach are the obsolete targets that the paper removes: the
base events are max-sorted too, so these targets stay obsolete, and the scan begins after them. It
stops at the first target above the reach.

Reference. Lee and Lee 2010, section 4.2 (Simple-Sort); the buffer does its invalidation.

Cost. O(base + target + pairs within reach), with a decision per pair within reach; memory O(pairs).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numba import njit

from correlation.timing.intervals.collecting import collect_parts
from correlation.timing.intervals.pairs import count_events
from correlation.timing.intervals.search import make_search, probe_targets

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from correlation.timing.intervals.collecting import Columns
    from correlation.timing.intervals.pairs import Pairs, Side
    from correlation.timing.intervals.search import AnySearch
    from correlation.timing.intervals.window import TimingWindow


def correlate_ssort(
    base: Side,
    target: Side,
    groups: NDArray[np.int64],
    window: TimingWindow,
    *,
    exclude_same: bool,
    target_lengths: tuple[int, int] | None = None,
) -> Pairs:
    """Find the satisfied pairs by deciding all pairs within reach; see `pairs.Correlate`."""
    search = make_search(base, target, groups, window, target_lengths, exclude_same=exclude_same)
    return collect_parts(count_events(search.groups), _decide_near_kernel, search)


@njit(cache=True)
def _decide_near_kernel(search: AnySearch, done: int, out: Columns) -> tuple[int, int, int, int]:
    """Return the fields of a `collecting.Part`."""
    groups = search.groups
    targets = search.target_latest
    found = 0
    evaluations = 0
    row = 0
    for g in range(len(groups)):
        first = groups[g, 2]
        end = groups[g, 3]
        for i in range(groups[g, 0], groups[g, 1]):
            row += 1
            if row <= done:
                continue
            latest = search.base_latest[i]
            while first < end and targets[first] < latest + search.reach[0]:
                first += 1
            stop = first
            while stop < end and targets[stop] <= latest + search.reach[1]:
                stop += 1
            if first == stop:
                continue
            if found + stop - first > len(out[0]):
                return row - 1, found, evaluations, stop - first
            found, decided = probe_targets(search, i, first, stop, out, found)
            evaluations += decided
    return row, found, evaluations, 0
