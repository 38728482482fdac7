"""Clauses as intervals of one instant, for the kernels.

Problem. For an instant x and exact times of all other events of a clause, find the times of x that
satisfy the clause.

Definitions. An atom ``x - q <= c`` is an upper end q + c, an atom ``p - x <= c`` a lower end p - c,
both open if the atom is open. Any other atom holds or not. The times of x that satisfy a clause are
an interval, those that satisfy a formula a union of intervals, one for each clause.

Cost. O(atoms) a clause.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numba import njit

from correlation.buffers.columns import Int64s
from correlation.event_query.evaluation.clauses import (
    NO_BOUND,
    Columns,
    column_of,
    cut_bound,
)
from correlation.event_query.evaluation.values import read_only
from correlation.event_query.relevance.normal_form import Atom

# Column of x.
_SELF = -1


class Spans(NamedTuple):
    """A formula in disjunctive normal form, as intervals of an instant x.

    Attributes
    ----------
    atoms : ndarray of int64, shape (a, 4)
        ``times[p] - times[q] <= c``, as (p, q, c, open); p or q is -1 for x.
    starts : ndarray of int64, shape (c + 1,)
        Clause i has the atoms starts[i] to starts[i + 1] - 1.
    """

    atoms: Int64s
    starts: Int64s

    def __len__(self) -> int:
        return len(self.starts) - 1


def pack_spans(clauses: Iterable[Iterable[Atom]], alias: str, columns: Columns) -> Spans:
    """Write clauses as arrays.

    Parameters
    ----------
    clauses : iterable of iterables of Atom
        The clauses; without clauses the formula is false.
    alias : str
        Alias of x.
    columns : mapping of alias to int
        Columns of the other aliases, whose times are exact.
    """
    atoms: list[tuple[int, int, int, bool]] = []
    starts = [0]
    for clause in clauses:
        for p, q, bound_us, is_open in sorted(clause, key=repr):
            bound = cut_bound(bound_us)
            if bound != NO_BOUND:
                left, right = (
                    _SELF if it.alias == alias else column_of(it, columns, (), latest=False)
                    for it in (p, q)
                )
                atoms.append((left, right, bound, is_open))
        starts.append(len(atoms))
    packed = np.array(atoms, np.int64).reshape(-1, 4)
    return Spans(read_only(packed), read_only(np.array(starts, np.int64)))


@njit(cache=True)
def _span_kernel(times: Int64s, i: int, spans: Spans, c: int) -> tuple[int, int, bool, bool]:
    """Return lo, hi, and whether each is open, of clause c for row i of the times.

    A missing end is ±NO_BOUND. lo > hi if a relation of the other events does not hold.
    """
    lo, hi = -NO_BOUND, NO_BOUND
    open_lo, open_hi = False, False
    for a in range(spans.starts[c], spans.starts[c + 1]):
        p, q, bound = spans.atoms[a, 0], spans.atoms[a, 1], spans.atoms[a, 2]
        is_open = spans.atoms[a, 3] != 0
        if p == _SELF:
            end = times[i, q] + bound
            if end < hi or (end == hi and is_open):
                hi, open_hi = end, is_open
        elif q == _SELF:
            end = times[i, p] - bound
            if end > lo or (end == lo and is_open):
                lo, open_lo = end, is_open
        elif times[i, p] - times[i, q] > bound:
            return 1, 0, False, False
    return lo, hi, open_lo, open_hi


@njit(cache=True)
def _list_spans_kernel(times: Int64s, spans: Spans, ends: Int64s) -> None:
    """Write lo, hi, open_lo and open_hi of each row and clause into int64[k, c, 4]."""
    for i in range(len(times)):
        for c in range(len(spans.starts) - 1):
            lo, hi, open_lo, open_hi = _span_kernel(times, i, spans, c)
            ends[i, c, 0], ends[i, c, 1] = lo, hi
            ends[i, c, 2], ends[i, c, 3] = open_lo, open_hi


def list_spans(times: Int64s, spans: Spans) -> Int64s:
    """Return the intervals of x for each row of the times and each clause.

    Parameters
    ----------
    times : int64[k, columns]
        Times of the other events, in µs.
    spans : Spans
        c clauses.

    Returns
    -------
    int64[k, c, 4]
        lo, hi in µs or ±`NO_BOUND`, and whether each is open; an empty interval has lo > hi.
    """
    ends = np.empty((len(times), len(spans), 4), np.int64)
    _list_spans_kernel(times, spans, ends)
    return ends
