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

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numba import njit
from numpy.typing import NDArray

from correlation.buffers.columns import Int64s
from correlation.event_query.evaluation.clauses import NO_BOUND
from correlation.event_query.evaluation.compiled import Target
from correlation.event_query.evaluation.kernels import _find_group_kernel, _lower_bound_kernel
from correlation.event_query.evaluation.views import Groups

# Columns of points, each with a distance in µs.
Bounds = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Anchor:
    """The side of the range of a negated alias from which its nearest event is searched.

    Parameters
    ----------
    low, high : tuple of (int, int)
        The range is ``max(times[p] - by for p, by in low) <= v <= min(times[p] + by for p, by in
        high)``, where p is a column of the times.
    is_first : bool
        Whether the first event from the lower limit on is searched; otherwise the last one up to
        the upper limit.
    """

    low: Bounds
    high: Bounds
    is_first: bool

    @classmethod
    def of_target(cls, target: Target, instants: Collection[int]) -> Anchor | None:
        """Return the anchor of a negated alias of exact instants; None if its range decides not.

        Parameters
        ----------
        target : Target
            How its events are searched.
        instants : collection of int
            Numbers of the positive aliases whose events are exact instants.
        """
        atoms, own = target.clauses.atoms, (2 * target.place, 2 * target.place + 1)
        sides = np.isin(atoms[:, :2], own).sum(axis=1)
        if len(target.clauses.ends) != 1 or len(target.ranges.low) != 1 or (sides != 1).any():
            return None
        low = _bounds(target.ranges.low_points, target.ranges.low[0], instants)
        high = _bounds(target.ranges.high_points, target.ranges.high[0], instants)
        before, after = (min((abs(by) for _, by in it), default=NO_BOUND) for it in (low, high))
        return cls(low, high, before <= after)

    def content(self) -> Hashable:
        """Return a value that is equal for anchors that need the same search."""
        return self.is_first, self.low if self.is_first else self.high

    def limits(self, column: Callable[[int], Int64s]) -> Int64s | None:
        """Return the limit of each combination from which the nearest event is searched, in µs.

        Parameters
        ----------
        column : callable
            Returns a column of the times of the combinations, in µs.

        Returns
        -------
        int64[k] or None
            None if nothing limits the range on this side.
        """
        return self._from(column) if self.is_first else self._until(column)

    def stop(self, nearest: Int64s, column: Callable[[int], Int64s]) -> NDArray[np.bool_]:
        """Return whether the nearest event of each combination stops it.

        Parameters
        ----------
        nearest : int64[k]
            Time of the first event, or NO_BOUND; time of the last event, or -NO_BOUND.
        column : callable
            As for `limits`.
        """
        limits = self._until(column) if self.is_first else self._from(column)
        if limits is None:
            limits = np.full_like(nearest, NO_BOUND - 1 if self.is_first else 1 - NO_BOUND)
        found: NDArray[np.bool_] = nearest <= limits if self.is_first else nearest >= limits
        return found

    def _from(self, column: Callable[[int], Int64s]) -> Int64s | None:
        limits = [column(place) - by for place, by in self.low]
        return reduce(np.maximum, limits) if limits else None

    def _until(self, column: Callable[[int], Int64s]) -> Int64s | None:
        limits = [column(place) + by for place, by in self.high]
        return reduce(np.minimum, limits) if limits else None


def _bounds(points: Int64s, distances: Int64s, instants: Collection[int]) -> Bounds:
    """Return the points that bound an event; begin and end of an exact instant are one point."""
    found: dict[int, int] = {}
    for point, by in zip(points.tolist(), distances.tolist(), strict=True):
        if by != NO_BOUND:
            column = point | 1 if point // 2 in instants else point
            found[column] = min(by, found.get(column, by))
    return tuple(sorted(found.items()))


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
    """Raise `found` to the last event of the group up to each limit; as `_first_event_kernel`.

    The comparisons and the end of the search are those of the other direction. A shared kernel
    would choose them for each combination.
    """
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
