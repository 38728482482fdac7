"""Times at which a positive event is stopped with certainty, as columns.

Problem. Relations to events with exact times do not depend on another instant: they hold, or not,
for each value of T_s. The values of T_s at which they stop the positive event are intervals. Find
the positive events that these intervals cover, and of the others the intervals that remain.

Algorithm. The intervals of a positive event are cut to the range of T_s, sorted and merged. Each
merged interval [lo, hi] then is a candidate with the exact time x = latest_s and the window
[x - hi, x - lo]: x - T_s is in it iff T_s is in [lo, hi]. Its factor is 0 inside and 1 outside, so
P is the probability that T_s is in none of them and that no other candidate stops the event
(docs/proofs.md, P-ABSENCE-BARRED).

Cost. O(n log n) for n intervals.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from correlation.buffers.columns import Int64s
from correlation.event_query.absence.instants import InstantTable


class Barred(NamedTuple):
    """Intervals of T_s at which a positive event is stopped with certainty.

    Ends are closed; this matters only if T_s is exact.

    Attributes
    ----------
    owner : ndarray of int64, shape (n,)
        Positive event of each interval.
    lo, hi : ndarray of int64, shape (n,)
        Ends of T_s, in microseconds; an interval with lo > hi is empty.
    """

    owner: Int64s
    lo: Int64s
    hi: Int64s


def merge_barred(positives: InstantTable, barred: Barred) -> tuple[NDArray[np.bool_], Barred]:
    """Merge the intervals of each positive event.

    Parameters
    ----------
    positives : InstantTable
        k positive events.
    barred : Barred
        Their intervals, in any order; they may overlap.

    Returns
    -------
    (ndarray of bool, shape (k,), Barred)
        Whether the intervals cover all times of the positive event; and the merged intervals of the
        others, cut to the times of the event, disjoint, by owner and ascending.
    """
    stopped = np.zeros(len(positives.latest), np.bool_)
    first, last = positives.earliest[barred.owner], positives.latest[barred.owner]
    lo, hi = np.maximum(barred.lo, first), np.minimum(barred.hi, last)
    # An interval without a length has probability 0, unless T_s is exact.
    kept = np.flatnonzero((lo < hi) | ((lo == hi) & (first == last)))
    kept = kept[np.lexsort((lo[kept], barred.owner[kept]))]
    owner, lo, hi = barred.owner[kept], lo[kept], hi[kept]
    starts = np.empty(len(kept), np.bool_)
    _merge_barred_kernel(owner, lo, hi, starts)
    heads = np.flatnonzero(starts)
    owner, lo, hi = owner[heads], lo[heads], hi[heads]
    covered = (lo == positives.earliest[owner]) & (hi == positives.latest[owner])
    stopped[owner[covered]] = True
    open_ = ~stopped[owner]
    return stopped, Barred(owner[open_], lo[open_], hi[open_])


@njit(cache=True)
def _merge_barred_kernel(
    owner: NDArray[np.int64],
    lo: NDArray[np.int64],
    hi: NDArray[np.int64],
    starts: NDArray[np.bool_],
) -> None:
    """Mark the first interval of each merged one, and write the end of the merged one to it."""
    head = 0
    for i in range(len(owner)):
        starts[i] = i == 0 or owner[i] != owner[head] or lo[i] > hi[head]
        if starts[i]:
            head = i
        else:
            hi[head] = max(hi[head], hi[i])
