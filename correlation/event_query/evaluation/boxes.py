"""Windows of negated events with uncertain instants, from the clauses of their relations.

Problem. For the exact times of the other events of a clause, find the times of a negated event r
that satisfy the clause, relative to a positive event u.

Definitions. Let all times but T_r and T_u be exact. An atom of r and u is an end of T_r - T_u, an
atom of r and another event an end of T_r, an atom of u and another event an end of T_u. Any other
atom holds or not. So the times that satisfy a clause are a box: T_r - T_u, T_r and T_u are in one
interval each (absence.windows). If no clause has an atom of r or u and another event, all
combinations have the same window. Without u, it is relative to an exact time (`spans`).

Cost. O(atoms) a clause.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numba import njit

from correlation.buffers.columns import Int64s
from correlation.event_query.absence.windows import (
    END_LIMIT_US,
    INFINITE_US,
    Cuts,
    Windows,
    make_windows,
)
from correlation.event_query.evaluation.clauses import (
    NO_BOUND,
    Columns,
    column_of,
    cut_bound,
)
from correlation.event_query.evaluation.values import read_only
from correlation.event_query.relevance.normal_form import Atom
from correlation.limits import TIME_LIMIT_US

# Columns of r and of u.
_NEGATED, _POSITIVE = -1, -2
# Intervals of a box, and the elements of an interval.
_DIFFERENCE, _OF_NEGATED, _OF_POSITIVE = range(3)
# The interval of the time with each column -1, -2.
_PLACES = (_DIFFERENCE, _OF_NEGATED, _OF_POSITIVE)
_LO, _HI, _OPEN_LO, _OPEN_HI = range(4)


class Boxes(NamedTuple):
    """A formula in disjunctive normal form, as boxes of T_r and T_u.

    Attributes
    ----------
    atoms : ndarray of int64, shape (a, 4)
        ``times[p] - times[q] <= c``, as (p, q, c, open); p or q is -1 for r, -2 for u.
    starts : ndarray of int64, shape (c + 1,)
        Clause i has the atoms starts[i] to starts[i + 1] - 1.
    fixed : bool
        Whether an atom relates r or u to another event.
    """

    atoms: Int64s
    starts: Int64s
    fixed: bool

    def __len__(self) -> int:
        return len(self.starts) - 1


def pack_boxes(
    clauses: Iterable[Iterable[Atom]], aliases: tuple[str, str], columns: Columns
) -> Boxes:
    """Write clauses as arrays.

    Parameters
    ----------
    clauses : iterable of iterables of Atom
        The clauses; without clauses the formula is false.
    aliases : (str, str)
        Aliases r and u.
    columns : mapping of alias to int
        Columns of the other aliases, whose times are exact.
    """
    places = dict(zip(aliases, (_NEGATED, _POSITIVE), strict=True))
    atoms: list[tuple[int, int, int, bool]] = []
    starts = [0]
    for clause in clauses:
        for p, q, bound_us, is_open in sorted(clause, key=repr):
            bound = cut_bound(bound_us)
            if bound != NO_BOUND:
                left, right = (
                    places[it.alias]
                    if it.alias in places
                    else column_of(it, columns, (), latest=False)
                    for it in (p, q)
                )
                atoms.append((left, right, bound, is_open))
        starts.append(len(atoms))
    packed = np.array(atoms, np.int64).reshape(-1, 4)
    # Atoms of other events are true or false: the windows depend on the combination, too.
    fixed = bool((packed[:, :2] >= 0).any())
    return Boxes(read_only(packed), read_only(np.array(starts, np.int64)), fixed)


@njit(cache=True)
def _box_kernel(times: Int64s, i: int, boxes: Boxes, c: int, box: Int64s) -> None:
    """Write the box of clause c for row i of the times into int64[3, 4]."""
    box[:, _LO], box[:, _HI] = -NO_BOUND, NO_BOUND
    box[:, _OPEN_LO], box[:, _OPEN_HI] = 0, 0
    for a in range(boxes.starts[c], boxes.starts[c + 1]):
        p, q, bound = boxes.atoms[a, 0], boxes.atoms[a, 1], boxes.atoms[a, 2]
        is_open = boxes.atoms[a, 3]
        if p >= 0 and q >= 0:
            if times[i, p] - times[i, q] > bound:
                box[_DIFFERENCE, _LO], box[_DIFFERENCE, _HI] = 1, 0
                return
            continue
        # The atom is an upper end of the time of p, or a lower end of that of q.
        if p < 0 and q < 0:
            place, base, is_upper = _DIFFERENCE, np.int64(0), p == _NEGATED
        elif p < 0:
            place, base, is_upper = _PLACES[-p], times[i, q], True
        else:
            place, base, is_upper = _PLACES[-q], times[i, p], False
        end = base + bound if is_upper else base - bound
        if is_upper:
            if end < box[place, _HI] or (end == box[place, _HI] and is_open):
                box[place, _HI], box[place, _OPEN_HI] = end, is_open
        elif end > box[place, _LO] or (end == box[place, _LO] and is_open):
            box[place, _LO], box[place, _OPEN_LO] = end, is_open


@njit(cache=True)
def _list_boxes_kernel(times: Int64s, boxes: Boxes, ends: Int64s) -> None:
    """Write the box of each row and clause into int64[k, c, 3, 4]."""
    for i in range(len(times)):
        for c in range(len(boxes.starts) - 1):
            _box_kernel(times, i, boxes, c, ends[i, c])


def list_boxes(times: Int64s, boxes: Boxes) -> Int64s:
    """Return the boxes for each row of the times and each clause.

    Parameters
    ----------
    times : int64[k, columns]
        Times of the other events, in µs.
    boxes : Boxes
        c clauses.

    Returns
    -------
    int64[k, c, 3, 4]
        lo, hi in µs or ±`NO_BOUND`, and whether each is open, of T_r - T_u, of T_r and of T_u; if
        the box is empty, an interval has lo > hi.
    """
    ends = np.empty((len(times), len(boxes), 3, 4), np.int64)
    _list_boxes_kernel(times, boxes, ends)
    return ends


def box_windows(ends: Int64s) -> Windows:
    """Return windows with fixed ends.

    Parameters
    ----------
    ends : int64[k, c, 3, 4]
        Result of `list_boxes`.
    """
    plain = relative_windows(ends[:, :, _DIFFERENCE], np.zeros(len(ends), np.int64))
    fixed = ends[:, :, _OF_NEGATED:]
    lo, hi = fixed[..., _LO], fixed[..., _HI]
    # No time is beyond the limit.
    empty = (lo > TIME_LIMIT_US) | (hi < -TIME_LIMIT_US)
    lo = np.where(empty, 1, np.where(lo < -TIME_LIMIT_US, -INFINITE_US, lo))
    hi = np.where(empty, 0, np.where(hi > TIME_LIMIT_US, INFINITE_US, hi))
    shape = *ends.shape[:2], 4
    cuts = Cuts(
        np.stack([lo, hi], axis=3).reshape(shape), fixed[..., _OPEN_LO:].reshape(shape) != 0
    )
    return make_windows(*plain[:4], cuts)


def relative_windows(ends: Int64s, time: Int64s) -> Windows:
    """Return windows relative to exact times.

    Parameters
    ----------
    ends : int64[k, c, 4]
        Result of `list_spans`.
    time : int64[k]
        T_s, in µs.
    """
    lo, hi = ends[:, :, 0], ends[:, :, 1]
    low, high = lo - time[:, None], hi - time[:, None]
    # No difference of two times is beyond the limit.
    unbounded_lo = (lo == -INFINITE_US) | (low < -END_LIMIT_US)
    unbounded_hi = (hi == INFINITE_US) | (high > END_LIMIT_US)
    empty = (lo > hi) | (~unbounded_lo & (low > END_LIMIT_US))
    empty |= ~unbounded_hi & (high < -END_LIMIT_US)
    low = np.where(empty, 1, np.where(unbounded_lo, -INFINITE_US, low))
    high = np.where(empty, 0, np.where(unbounded_hi, INFINITE_US, high))
    return make_windows(low, high, ends[:, :, 2] != 0, ends[:, :, 3] != 0)
