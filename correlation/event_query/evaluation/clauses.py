"""Clauses and ranges as arrays, for the kernels.

Problem. Decide for a combination, whose times are a row of a matrix, whether it satisfies a formula
in disjunctive normal form; and find the range of times in which a further event must be.

Definitions. Alias k of a combination has its begin in column 2k and its end in column 2k + 1. For
an event with the time v (its end) and a clause C of closed difference bounds over the points p of
the combination (relevance.closure)::

    p - dist_C(v, p) <= v <= p + dist_C(p, v)

The range of v is the hull over the clauses of the intersections over the points. Every event that
satisfies a clause with the combination is in it (docs/proofs.md, P-QUERY-DIST).

Cost. O(atoms) a decision, O(clauses · points) a range.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
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
    points : ndarray of int64, shape (p,)
        Columns of the points of the combination.
    low, high : ndarray of int64, shape (c, p)
        dist(v, p) and dist(p, v) of each clause; NO_BOUND if infinite.
    """

    points: Int64s
    low: Int64s
    high: Int64s


def column_of(point: Node, columns: Columns) -> int:
    """Return the column of a point; the instants of all events are exact."""
    if not isinstance(point, Point):
        raise TypeError(f"expected begin or end; got {point!r}")
    return columns[point.alias] + (point.side == END)


def pack_clauses(clauses: Iterable[Iterable[Atom]], columns: Columns) -> Clauses:
    """Write clauses as arrays.

    Parameters
    ----------
    clauses : iterable of iterables of Atom
        The clauses; without clauses the formula is false.
    columns : mapping of alias to int
        Columns of the aliases.
    """
    atoms: list[tuple[int, int, int]] = []
    ends = []
    for clause in clauses:
        for p, q, bound_us in sorted(clause, key=repr):
            if bound_us < _FAR_US:
                bound = max(bound_us, -_FAR_US - 1)
                atoms.append((column_of(p, columns), column_of(q, columns), bound))
        ends.append(len(atoms))
    return Clauses(_frozen(np.array(atoms, np.int64).reshape(-1, 3)), _frozen(ends))


def project_closures(closures: Sequence[Closure], columns: Columns) -> Clauses:
    """Return necessary relations among some aliases, from the closures of clauses over more.

    Parameters
    ----------
    closures : sequence of Closure
        Closures that are not contradictory.
    columns : mapping of alias to int
        The aliases and their columns.
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
    )


def pack_ranges(closures: Sequence[Closure], stamp: Node, columns: Columns) -> Ranges:
    """Write the range of an event's time as arrays.

    Parameters
    ----------
    closures : sequence of Closure
        Closures that are not contradictory, over the event and the aliases.
    stamp : Node
        Time of the event.
    columns : mapping of alias to int
        The aliases of the combination and their columns.
    """
    points = _points_of(closures[0], columns) if closures else []
    low = [[_cut(it.dist(stamp, p)) for p in points] for it in closures]
    high = [[_cut(it.dist(p, stamp)) for p in points] for it in closures]
    shape = (len(closures), len(points))
    return Ranges(
        _frozen([column_of(p, columns) for p in points]),
        _frozen(np.array(low, np.int64).reshape(shape)),
        _frozen(np.array(high, np.int64).reshape(shape)),
    )


def _points_of(closure: Closure, columns: Columns) -> list[Node]:
    return [point for point in closure.points if point.alias in columns]


def _cut(distance: Distance) -> int:
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
        for k in range(len(ranges.points)):
            time = times[i, ranges.points[k]]
            if ranges.low[c, k] != NO_BOUND:
                low = max(low, time - ranges.low[c, k])
            if ranges.high[c, k] != NO_BOUND:
                high = min(high, time + ranges.high[c, k])
        if low <= high:
            first, last = min(first, low), max(last, high)
    return first, last
