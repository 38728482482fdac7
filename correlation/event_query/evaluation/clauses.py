"""Clauses and ranges as arrays, for the kernels.

Problem. Decide for a combination, whose times are a row of a matrix, whether it satisfies a formula
in disjunctive normal form; and find the range of times in which a further event must be.

Definitions. Alias k of a combination has its begin in column 2k and its end in column 2k + 1. For
an event with the time v (its end) and a clause C of closed difference bounds over the points p of
the combination (relevance.closure)::

    p - dist_C(v, p) <= v <= p + dist_C(p, v)

The range of v is the hull over the clauses of the intersections over the points. Every event that
satisfies a clause with the combination is in it (docs/proofs.md, P-QUERY-DIST).

Uncertain instants. Column 2k has the first and column 2k + 1 the last possible time of an uncertain
instant; v is its last possible time. A relation that may hold has its minimum on the left side and
its maximum on the right side, so a left point is read from column 2k, a right point from column
2k + 1, whether the query names the begin or the end. Lower bounds of v use column 2k, upper bounds
column 2k + 1. So the kernels keep each combination whose relations may hold (docs/proofs.md,
P-QUERY-UNCERTAIN).

Cost. O(atoms) a decision, O(clauses · points) a range.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from correlation.buffers.columns import Int64s
from correlation.event_query.query import END, Point
from correlation.event_query.relevance.closure import Closure, Distance
from correlation.event_query.relevance.normal_form import Atom, Node
from correlation.limits import TIME_LIMIT_US

# Two times differ by at most this, so bounds beyond it can be cut: all sums then fit int64.
_FAR_US = 2 * TIME_LIMIT_US
# A bound that holds always.
NO_BOUND = 2**62

# Column of the begin of each alias; its end has the next column.
Columns = Mapping[str, int]
# Aliases whose instants are uncertain.
Uncertain = Collection[str]


class Clauses(NamedTuple):
    """A formula in disjunctive normal form.

    Attributes
    ----------
    atoms : ndarray of int64, shape (a, 3)
        ``times[p] - times[q] <= c``, as (p, q, c).
    ends : ndarray of int64, shape (c,)
        Clause i has the atoms ends[i - 1] to ends[i] - 1.
    """

    atoms: Int64s
    ends: Int64s

    @property
    def always_hold(self) -> bool:
        """Whether a clause has no atoms."""
        return bool((np.diff(self.ends, prepend=0) == 0).any())


class Ranges(NamedTuple):
    """Range of the time of a further event.

    Attributes
    ----------
    low_points, high_points : ndarray of int64, shape (p,)
        Columns of the points of the combination for the lower and the upper bound; they differ for
        uncertain instants.
    low, high : ndarray of int64, shape (c, p)
        dist(v, p) and dist(p, v) of each clause; NO_BOUND if infinite.
    """

    low_points: Int64s
    high_points: Int64s
    low: Int64s
    high: Int64s


def column_of(point: Node, columns: Columns, uncertain: Uncertain, *, latest: bool) -> int:
    """Return the column of a point.

    Parameters
    ----------
    point : Node
        The point.
    columns : mapping of alias to int
        Columns of the aliases.
    uncertain : collection of str
        Aliases whose instants are uncertain.
    latest : bool
        Whether to read the last possible time of an uncertain instant, or the first one.
    """
    if isinstance(point, Point):
        second = latest if point.alias in uncertain else point.side == END
    else:
        second = True
    return columns[point.alias] + second


def pack_clauses(
    clauses: Iterable[Iterable[Atom]], columns: Columns, uncertain: Uncertain
) -> Clauses:
    """Write clauses as arrays; open atoms become closed.

    Parameters
    ----------
    clauses : iterable of iterables of Atom
        The clauses; without clauses the formula is false.
    columns : mapping of alias to int
        Columns of the aliases.
    uncertain : collection of str
        Aliases whose instants are uncertain.
    """
    atoms: list[tuple[int, int, int]] = []
    ends = []
    for clause in clauses:
        for p, q, bound_us, _ in sorted(clause, key=repr):
            bound = cut_bound(bound_us)
            if bound != NO_BOUND:
                left = column_of(p, columns, uncertain, latest=False)
                right = column_of(q, columns, uncertain, latest=True)
                atoms.append((left, right, bound))
        ends.append(len(atoms))
    return Clauses(_frozen(np.array(atoms, np.int64).reshape(-1, 3)), _frozen(ends))


def project_closures(
    closures: Sequence[Closure], columns: Columns, uncertain: Uncertain
) -> Clauses:
    """Return necessary relations among some aliases, from the closures of clauses over more.

    Parameters
    ----------
    closures : sequence of Closure
        Closures that are not contradictory.
    columns : mapping of alias to int
        The aliases and their columns.
    uncertain : collection of str
        Aliases whose instants are uncertain.
    """
    return pack_clauses(
        (
            [
                Atom(p, q, int(closure.dist(q, p)))
                for p in points
                for q in points
                if p != q and closure.dist(q, p) < math.inf
            ]
            for closure, points in ((it, _points_of(it, columns)) for it in closures)
        ),
        columns,
        uncertain,
    )


def pack_ranges(
    closures: Sequence[Closure], stamp: Node, columns: Columns, uncertain: Uncertain
) -> Ranges:
    """Write the range of an event's time as arrays.

    Parameters
    ----------
    closures : sequence of Closure
        Closures that are not contradictory, over the event and the aliases.
    stamp : Node
        Time of the event.
    columns : mapping of alias to int
        The aliases of the combination and their columns.
    uncertain : collection of str
        Aliases whose instants are uncertain.
    """
    points = _points_of(closures[0], columns) if closures else []
    low = [[cut_bound(it.dist(stamp, p)) for p in points] for it in closures]
    high = [[cut_bound(it.dist(p, stamp)) for p in points] for it in closures]
    shape = (len(closures), len(points))
    return Ranges(
        _frozen([column_of(p, columns, uncertain, latest=False) for p in points]),
        _frozen([column_of(p, columns, uncertain, latest=True) for p in points]),
        _frozen(np.array(low, np.int64).reshape(shape)),
        _frozen(np.array(high, np.int64).reshape(shape)),
    )


def _points_of(closure: Closure, columns: Columns) -> list[Node]:
    return [point for point in closure.points if point.alias in columns]


def cut_bound(distance: Distance) -> int:
    """Return a bound such that all sums fit int64, or NO_BOUND if it always holds, in µs."""
    return NO_BOUND if distance >= _FAR_US else max(int(distance), -_FAR_US - 1)


def _frozen(values: Sequence[int] | NDArray[np.int64]) -> Int64s:
    """Return a read-only column: numba compiles other kernels for writable arguments."""
    column = np.ascontiguousarray(values, np.int64).view()
    column.flags.writeable = False
    return column


@njit(cache=True)
def _holds_kernel(times: Int64s, i: int, clauses: Clauses) -> bool:
    """Return whether row i of the times satisfies a clause."""
    a = 0
    for c in range(len(clauses.ends)):
        end = clauses.ends[c]
        while a < end and (
            times[i, clauses.atoms[a, 0]] - times[i, clauses.atoms[a, 1]] <= clauses.atoms[a, 2]
        ):
            a += 1
        if a == end:
            return True
        a = end
    return False


@njit(cache=True)
def _range_kernel(times: Int64s, i: int, ranges: Ranges) -> tuple[int, int]:
    """Return the first and the last time of a further event; the first is larger if none is."""
    first, last = NO_BOUND, -NO_BOUND
    for c in range(ranges.low.shape[0]):
        low, high = -NO_BOUND, NO_BOUND
        for k in range(len(ranges.low_points)):
            if ranges.low[c, k] != NO_BOUND:
                low = max(low, times[i, ranges.low_points[k]] - ranges.low[c, k])
            if ranges.high[c, k] != NO_BOUND:
                high = min(high, times[i, ranges.high_points[k]] + ranges.high[c, k])
        if low <= high:
            first, last = min(first, low), max(last, high)
    return first, last
