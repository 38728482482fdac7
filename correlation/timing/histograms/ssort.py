"""Simple-Sort correlation of events with histograms (LL10 Algorithm 1, max-sorted buffer).

Problem. All satisfied pairs of the events of each group, as in histograms.simple.

Algorithm. Every target is decided by itself but for those that are too far apart for any
two of the classes that occur (docs/proofs.md, P-SUPPORT): sorted by max they stand together, those
below in front of the walk, those above behind it.

Reference. Lee and Lee 2010, section 4.2 (Simple-Sort), without its invalidation, which is the
buffer's.

Cost. O(base + target + pairs within reach) with a decision for each of the last; memory O(pairs).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numba import njit

from correlation.timing.histograms.search import _probe_kernel, correlate_parts

if TYPE_CHECKING:
    from correlation.timing.histograms.search import Search
    from correlation.timing.intervals.collecting import Columns
    from correlation.timing.intervals.pairs import Pairs


def correlate_ssort(search: Search) -> Pairs:
    """Find the satisfied pairs by deciding those not too far apart."""
    return correlate_parts(search, _decide_near_kernel)


@njit(cache=True)
def _decide_near_kernel(search: Search, done: int, out: Columns) -> tuple[int, int, int, int]:
    """Give the fields of a `collecting.Part`."""
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
            found, decided = _probe_kernel(search, i, first, stop, out, found)
            evaluations += decided
    return row, found, evaluations, 0
