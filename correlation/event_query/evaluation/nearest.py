"""The first or last event of a negated alias from a limit on, for many queries at once.

Problem. Queries differ in the window of a negated event only: no report within 3 min, 4 min, … of
the same smoke. Decide all of them by one search among the reports.

Definition. A negated alias is *decided by its range* if its events are exact instants, its formula
is one clause, and each atom of the clause relates the event and one point of the combination. Then
an event with the time v stops a combination iff low <= v <= high, where [low, high] is the range of
`clauses.Ranges` (docs/proofs.md, P-QUERY-SHARED).

Algorithm. The side of the range that is nearer to the combination is the *anchor*. If it is `low`,
the first event with a time v >= low is searched, and v <= high is the decision; otherwise the last
event with v <= high, and v >= low. The search depends on the anchor only, so queries with equal
anchors share it.

Cost. O(log g + log n) per combination and segment, once; then O(points) per query.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from correlation.buffers.columns import Int64s
from correlation.event_query.evaluation.clauses import NO_BOUND
from correlation.event_query.evaluation.compiled import Target
from correlation.event_query.evaluation.kernels import _find_group_kernel, _lower_bound_kernel
from correlation.event_query.evaluation.views import Groups


@dataclass(frozen=True, slots=True)
class Anchor:
    """The side of the range of a negated alias from which its nearest event is searched.

    Parameters
    ----------
    low_points, high_points : int64[p]
        Columns of the points of a combination.
    low, high : int64[p]
        The range is ``max(times[low_points] - low) <= v <= min(times[high_points] + high)``;
        NO_BOUND where a point does not bound it.
    is_first : bool
        Whether the first event from the lower limit on is searched; otherwise the last one up to
        the upper limit.
    """

    low_points: Int64s
    high_points: Int64s
    low: Int64s
    high: Int64s
    is_first: bool

    @classmethod
    def of_target(cls, target: Target) -> Anchor | None:
        """Return the anchor of a negated alias of exact instants; None if its range decides not."""
        atoms, own = target.clauses.atoms, (2 * target.place, 2 * target.place + 1)
        sides = np.isin(atoms[:, :2], own).sum(axis=1)
        if len(target.clauses.ends) != 1 or len(target.ranges.low) != 1 or (sides != 1).any():
            return None
        low, high = target.ranges.low[0], target.ranges.high[0]
        # dist(v, p) and dist(p, v) are the distances of the ends of the range from a point.
        before, after = (int(np.abs(it).min(initial=NO_BOUND)) for it in (low, high))
        points = target.ranges.points
        return cls(points, points, low, high, before <= after)

    def content(self) -> Hashable:
        """Return a value that is equal for anchors that need the same search."""
        if self.is_first:
            return True, self.low_points.tobytes(), self.low.tobytes()
        return False, self.high_points.tobytes(), self.high.tobytes()

    def limits(self, times: Int64s) -> Int64s:
        """Return the limit of each combination from which the nearest event is searched, in µs."""
        return self._from(times) if self.is_first else self._until(times)

    def stop(self, nearest: Int64s, times: Int64s) -> NDArray[np.bool_]:
        """Return whether the nearest event of each combination stops it.

        Parameters
        ----------
        nearest : int64[k]
            Time of the first event, or NO_BOUND; time of the last event, or -NO_BOUND.
        times : int64[k, columns]
            Times of the combinations, in µs.
        """
        if self.is_first:
            return (nearest <= self._until(times)) & (nearest < NO_BOUND)
        return (nearest >= self._from(times)) & (nearest > -NO_BOUND)

    def _from(self, times: Int64s) -> Int64s:
        found = np.full(len(times), -NO_BOUND, np.int64)
        for column, by in zip(self.low_points.tolist(), self.low.tolist(), strict=True):
            if by != NO_BOUND:
                np.maximum(found, times[:, column] - by, out=found)
        return found

    def _until(self, times: Int64s) -> Int64s:
        found = np.full(len(times), NO_BOUND, np.int64)
        for column, by in zip(self.high_points.tolist(), self.high.tolist(), strict=True):
            if by != NO_BOUND:
                np.minimum(found, times[:, column] + by, out=found)
        return found


@njit(cache=True)
def _first_event_kernel(
    numbers: Int64s, limits: Int64s, groups: Groups, first: int, last: int, found: Int64s
) -> int:
    """Lower `found` to the first event of the group from each limit on; return the searches.

    Parameters
    ----------
    numbers : ndarray of int64, shape (k,)
        Group of each combination.
    limits : ndarray of int64, shape (k,)
        Minimum time of the event, in µs.
    groups, first, last
        The events, and their first and last time.
    found : ndarray of int64, shape (k,)
        Time of the first event so far.
    """
    searches = 0
    group, searched = -1, np.int64(-1)
    for i in range(len(numbers)):
        if limits[i] > last or found[i] <= first:
            continue
        if numbers[i] != searched:
            searched = numbers[i]
            group = _find_group_kernel(groups.numbers, searched)
        if group < 0:
            continue
        searches += 1
        stop = groups.stops[group]
        j = _lower_bound_kernel(groups.end, groups.starts[group], stop, limits[i])
        if j < stop:
            found[i] = min(found[i], groups.end[j])
    return searches


@njit(cache=True)
def _last_event_kernel(
    numbers: Int64s, limits: Int64s, groups: Groups, first: int, last: int, found: Int64s
) -> int:
    """Raise `found` to the last event of the group up to each limit; as `_first_event_kernel`."""
    searches = 0
    group, searched = -1, np.int64(-1)
    for i in range(len(numbers)):
        if limits[i] < first or found[i] >= last:
            continue
        if numbers[i] != searched:
            searched = numbers[i]
            group = _find_group_kernel(groups.numbers, searched)
        if group < 0:
            continue
        searches += 1
        start = groups.starts[group]
        j = _lower_bound_kernel(groups.end, start, groups.stops[group], limits[i] + 1)
        if j > start:
            found[i] = max(found[i], groups.end[j - 1])
    return searches
