"""The factors q_i(t) = 1 - P(T_i - t in W_i) in float64, and their breakpoints.

Definitions. w is the number of intervals of the merged window. A *break* is an edge minus an end:
between neighbouring breaks q_i is linear. If a window of the cases has fixed ends, the windows are
boxes, which may overlap. Then the times of T_i in the window are a union of at most w disjoint
intervals, q_i also has breaks at a fixed end of T_i minus an end, and may jump at a fixed end of
T_s.

Theorem (docs/proofs.md, P-ABSENCE-FILTER). The error of a computed q_i is at most
(11 w + 2) 2**-53.

Cost. O(w log b) per value for b buckets; O(w² + w log b) with fixed ends, and O(w (w + b)) breaks.
Kernels take few arrays, and the small ones are compiled into their callers: passing an array costs
more than the computation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from correlation.event_query.absence.gathering import Cases
from correlation.event_query.absence.instants import InstantTable, as_read_only
from correlation.resources.histogram import WHOLE_MASS

_WHOLE = float(WHOLE_MASS)
# Columns of `PackedCases.positives` and `candidates`; of `steps`; of `ends`.
FIRST, LAST, BEGIN, END, WINDOW = range(5)
EDGE, BELOW = range(2)
LO, HI, FIRST_NEGATED, LAST_NEGATED, FIRST_POSITIVE, LAST_POSITIVE = range(6)
# Number of columns of `ends` without fixed ends.
PLAIN = 2


class PackedCases(NamedTuple):
    """`Cases` as passed to the kernels.

    Attributes
    ----------
    positives : ndarray of int64, shape (k, 4)
        Earliest and latest, and the range of its edges in `steps`, which is empty without shape.
    candidates : ndarray of int64, shape (n, 5)
        The same, and the row of `ends`.
    starts : ndarray of int64, shape (k + 1,)
        As in `Cases`.
    steps : ndarray of int64, shape (b, 2)
        Offsets of edges from the latest time, and P(T < edge) in units of 10**-10.
    ends : ndarray of int64, shape (·, w, 2) or (·, w, 6)
        Merged windows; or boxes, with the columns of `Cuts`.
    """

    positives: NDArray[np.int64]
    candidates: NDArray[np.int64]
    starts: NDArray[np.int64]
    steps: NDArray[np.int64]
    ends: NDArray[np.int64]


def pack_cases(cases: Cases) -> PackedCases:
    """Return cases as few arrays."""
    shift = len(cases.positives.edges)
    tables = (cases.positives, cases.candidates)
    return PackedCases(
        as_read_only(np.stack(_instant_columns(cases.positives, 0), axis=1)),
        as_read_only(np.stack([*_instant_columns(cases.candidates, shift), cases.window], axis=1)),
        cases.starts,
        as_read_only(
            np.stack([np.concatenate([getattr(it, name) for it in tables]) for name in _STEPS], 1)
        ),
        as_read_only(
            np.concatenate(
                [
                    np.stack([cases.lo, cases.hi], axis=2),
                    *([] if cases.cuts is None else [cases.cuts]),
                ],
                axis=2,
            )
        ),
    )


_STEPS = ("edges", "below")


def _instant_columns(table: InstantTable, shift: int) -> list[NDArray[np.int64]]:
    with_histogram = table.shape >= 0
    starts = np.append(table.starts, 0)
    bounds = [
        np.where(with_histogram, starts[np.where(with_histogram, table.shape + by, 0)] + shift, 0)
        for by in (0, 1)
    ]
    return [table.earliest, table.latest, *bounds]


@njit(cache=True, inline="always")
def _locate_bucket_kernel(steps: NDArray[np.int64], begin: int, end: int, offset: int) -> int:
    """Return the place of the bucket's first edge; the first edge is ≤ offset < 0."""
    low = begin
    high = end - 1
    while low + 1 < high:
        middle = (low + high) // 2
        if steps[middle, EDGE] <= offset:
            low = middle
        else:
            high = middle
    return low


@njit(cache=True, inline="always")
def _measure_below_kernel(
    first: int, last: int, begin: int, end: int, steps: NDArray[np.int64], t: int
) -> float:
    """Compute P(T ≤ t) of a continuous instant."""
    if t <= first:
        return 0.0
    if t >= last:
        return 1.0
    if begin == end:
        return float(t - first) / float(last - first)
    offset = t - last
    b = _locate_bucket_kernel(steps, begin, end, offset)
    low = steps[b, EDGE]
    mass = float(steps[b + 1, BELOW] - steps[b, BELOW])
    part = mass * float(offset - low) / float(steps[b + 1, EDGE] - low)
    return (float(steps[b, BELOW]) + part) / _WHOLE


@njit(cache=True, inline="always")
def _measure_miss_kernel(
    candidates: NDArray[np.int64],
    c: int,
    steps: NDArray[np.int64],
    ends: NDArray[np.int64],
    t: int,
) -> float:
    """Compute q of a continuous candidate at T_s = t, in [0, 1]."""
    first = candidates[c, FIRST]
    last = candidates[c, LAST]
    begin = candidates[c, BEGIN]
    end = candidates[c, END]
    window = candidates[c, WINDOW]
    inside = 0.0
    for v in range(ends.shape[1]):
        lo = ends[window, v, LO]
        hi = ends[window, v, HI]
        if lo > hi:
            break
        below = _measure_below_kernel(first, last, begin, end, steps, t + lo)
        inside += _measure_below_kernel(first, last, begin, end, steps, t + hi) - below
    return min(max(1.0 - inside, 0.0), 1.0)


@njit(cache=True, inline="always")
def _miss_exactly_kernel(
    candidates: NDArray[np.int64], c: int, ends: NDArray[np.int64], left: int, right: int
) -> float:
    """Compute q of an exact candidate for left < T_s < right: 0 or 1 between two breaks."""
    time = candidates[c, LAST]
    window = candidates[c, WINDOW]
    missed = 1.0
    for v in range(ends.shape[1]):
        if ends[window, v, LO] <= time - right and time - left <= ends[window, v, HI]:
            missed = 0.0
    return missed


@njit(cache=True)
def _measure_cut_kernel(
    candidates: NDArray[np.int64],
    c: int,
    steps: NDArray[np.int64],
    ends: NDArray[np.int64],
    piece: tuple[int, int],
    t: int,
) -> float:
    """Compute q of a continuous candidate with fixed ends at T_s = t, an end of a piece.

    It is the limit of q inside the piece, which has no break.
    """
    first = candidates[c, FIRST]
    last = candidates[c, LAST]
    begin = candidates[c, BEGIN]
    end = candidates[c, END]
    window = candidates[c, WINDOW]
    inside = 0.0
    reached = first
    while reached < last:
        # Of the boxes' intervals of T_i beyond the last one, the one that begins first.
        low = last
        high = last
        for v in range(ends.shape[1]):
            if piece[0] < ends[window, v, FIRST_POSITIVE]:
                continue
            if ends[window, v, LAST_POSITIVE] < piece[1]:
                continue
            after = max(t + ends[window, v, LO], ends[window, v, FIRST_NEGATED], reached)
            until = min(t + ends[window, v, HI], ends[window, v, LAST_NEGATED])
            if after < until and after < low:
                low = after
                high = min(until, last)
        if low < last:
            below = _measure_below_kernel(first, last, begin, end, steps, low)
            inside += _measure_below_kernel(first, last, begin, end, steps, high) - below
        reached = high
    return min(max(1.0 - inside, 0.0), 1.0)


@njit(cache=True)
def _add_breaks_kernel(
    instants: NDArray[np.int64],
    row: int,
    steps: NDArray[np.int64],
    by: int,
    inner: tuple[int, int],
    out: NDArray[np.int64],
    count: int,
) -> int:
    """Add the edges minus `by` that lie inside an open interval; return the number of breaks."""
    begin = instants[row, BEGIN]
    end = instants[row, END]
    if begin == end:
        for column in (FIRST, LAST):
            at = instants[row, column] - by
            if inner[0] < at < inner[1]:
                out[count] = at
                count += 1
    for e in range(begin, end):
        at = instants[row, LAST] + steps[e, EDGE] - by
        if inner[0] < at < inner[1]:
            out[count] = at
            count += 1
    return count


@njit(cache=True, inline="always")
def _add_break_kernel(at: int, inner: tuple[int, int], out: NDArray[np.int64], count: int) -> int:
    """Add a break that lies inside an open interval; if `out` is empty, it is counted only."""
    if inner[0] < at < inner[1]:
        if len(out):
            out[count] = at
        return count + 1
    return count


@njit(cache=True)
def _add_cut_breaks_kernel(
    packed: PackedCases, c: int, inner: tuple[int, int], out: NDArray[np.int64], count: int
) -> int:
    """Add the breaks of a candidate with fixed ends; return the number of breaks."""
    _, candidates, _, steps, ends = packed
    window = candidates[c, WINDOW]
    for v in range(ends.shape[1]):
        first = max(candidates[c, FIRST], ends[window, v, FIRST_NEGATED])
        last = min(candidates[c, LAST], ends[window, v, LAST_NEGATED])
        if ends[window, v, LO] > ends[window, v, HI] or first > last:
            continue
        for side in (FIRST_POSITIVE, LAST_POSITIVE):
            count = _add_break_kernel(ends[window, v, side], inner, out, count)
        # Sums with an infinite end are outside.
        for side in (LO, HI):
            by = ends[window, v, side]
            count = _add_break_kernel(first - by, inner, out, count)
            count = _add_break_kernel(last - by, inner, out, count)
            for e in range(candidates[c, BEGIN], candidates[c, END]):
                edge = candidates[c, LAST] + steps[e, EDGE]
                if first < edge < last:
                    count = _add_break_kernel(edge - by, inner, out, count)
            for u in range(ends.shape[1]):
                for fixed in (FIRST_NEGATED, LAST_NEGATED):
                    if first < ends[window, u, fixed] < last:
                        at = ends[window, u, fixed] - by
                        count = _add_break_kernel(at, inner, out, count)
    return count


@njit(cache=True)
def _find_breaks_kernel(packed: PackedCases, i: int, first: int, last: int) -> NDArray[np.int64]:
    """Return the ends and breaks of T_s and the breaks of candidates first to last - 1, sorted."""
    positives, candidates, _, steps, ends = packed
    room = 4 + positives[i, END] - positives[i, BEGIN]
    for c in range(first, last):
        room += 2 * ends.shape[1] * (2 + candidates[c, END] - candidates[c, BEGIN])
    inner = (positives[i, FIRST], positives[i, LAST])
    out = np.empty(room, np.int64)
    out[0] = inner[0]
    out[1] = inner[1]
    count = _add_breaks_kernel(positives, i, steps, 0, inner, out, 2)
    for c in range(first, last):
        window = candidates[c, WINDOW]
        for v in range(ends.shape[1]):
            if ends[window, v, LO] > ends[window, v, HI]:
                break
            # Edges minus an infinite end are outside.
            for side in (LO, HI):
                by = ends[window, v, side]
                count = _add_breaks_kernel(candidates, c, steps, by, inner, out, count)
    out = np.sort(out[:count])
    kept = 1
    for k in range(1, count):
        if out[k] != out[kept - 1]:
            out[kept] = out[k]
            kept += 1
    return out[:kept]


@njit(cache=True)
def _find_cut_breaks_kernel(
    packed: PackedCases, i: int, first: int, last: int
) -> NDArray[np.int64]:
    """Return the breaks as `_find_breaks_kernel`, of candidates with fixed ends."""
    positives, steps = packed.positives, packed.steps
    inner = (positives[i, FIRST], positives[i, LAST])
    room = 4 + positives[i, END] - positives[i, BEGIN]
    counted = np.empty(0, np.int64)
    for c in range(first, last):
        room = _add_cut_breaks_kernel(packed, c, inner, counted, room)
    out = np.empty(room, np.int64)
    out[0] = inner[0]
    out[1] = inner[1]
    count = _add_breaks_kernel(positives, i, steps, 0, inner, out, 2)
    for c in range(first, last):
        count = _add_cut_breaks_kernel(packed, c, inner, out, count)
    return np.unique(out[:count])


@njit(cache=True)
def _measure_mass_kernel(
    positives: NDArray[np.int64], i: int, steps: NDArray[np.int64], left: int, right: int
) -> float:
    """Compute P(left < T < right) between two neighbouring edges of a continuous instant."""
    begin = positives[i, BEGIN]
    end = positives[i, END]
    if begin == end:
        return float(right - left) / float(positives[i, LAST] - positives[i, FIRST])
    b = _locate_bucket_kernel(steps, begin, end, left - positives[i, LAST])
    mass = float(steps[b + 1, BELOW] - steps[b, BELOW]) / _WHOLE
    return mass * float(right - left) / float(steps[b + 1, EDGE] - steps[b, EDGE])
