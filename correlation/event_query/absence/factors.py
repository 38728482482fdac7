"""The factors q_i(t) = 1 - P(T_i - t in W_i) in float64, and their breakpoints.

Definitions. w is the number of intervals of the merged window. A *break* is an edge minus an end:
between neighbouring breaks q_i is linear.

Theorem (docs/proofs.md, P-ABSENCE-FILTER). The error of a computed q_i is at most
(11 w + 2) 2**-53.

Cost. O(w log b) per value for b buckets.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from correlation.event_query.absence.gathering import Cases
from correlation.event_query.absence.instants import InstantTable
from correlation.resources.histogram import WHOLE_MASS

_WHOLE = float(WHOLE_MASS)


@njit(cache=True)
def _locate_bucket_kernel(table: InstantTable, shape: int, offset: int) -> int:
    """Return the place of the bucket's first edge; edges[0] ≤ offset < 0."""
    low: int = table.starts[shape]
    high = table.starts[shape + 1] - 1
    while low + 1 < high:
        middle = (low + high) // 2
        if table.edges[middle] <= offset:
            low = middle
        else:
            high = middle
    return low


@njit(cache=True)
def _measure_below_kernel(table: InstantTable, row: int, t: int) -> float:
    """Compute P(T ≤ t) of a continuous instant."""
    first = table.earliest[row]
    last = table.latest[row]
    if t <= first:
        return 0.0
    if t >= last:
        return 1.0
    shape = table.shape[row]
    if shape < 0:
        return float(t - first) / float(last - first)
    offset = t - last
    b = _locate_bucket_kernel(table, shape, offset)
    low = table.edges[b]
    mass = float(table.below[b + 1] - table.below[b])
    part = mass * float(offset - low) / float(table.edges[b + 1] - low)
    return (float(table.below[b]) + part) / _WHOLE


@njit(cache=True)
def _measure_miss_kernel(cases: Cases, c: int, t: int) -> float:
    """Compute q of a continuous candidate at T_s = t, in [0, 1]."""
    row = cases.window[c]
    inside = 0.0
    for v in range(cases.lo.shape[1]):
        lo = cases.lo[row, v]
        hi = cases.hi[row, v]
        if lo > hi:
            break
        inside += _measure_below_kernel(cases.candidates, c, t + hi) - _measure_below_kernel(
            cases.candidates, c, t + lo
        )
    return min(max(1.0 - inside, 0.0), 1.0)


@njit(cache=True)
def _miss_exactly_kernel(cases: Cases, c: int, left: int, right: int) -> float:
    """Compute q of an exact candidate for left < T_s < right: 0 or 1 between two breaks."""
    row = cases.window[c]
    time = cases.candidates.latest[c]
    for v in range(cases.lo.shape[1]):
        if cases.lo[row, v] <= time - right and time - left <= cases.hi[row, v]:
            return 0.0
    return 1.0


@njit(cache=True)
def _is_exact_kernel(table: InstantTable, row: int) -> bool:
    exact: bool = table.earliest[row] == table.latest[row]
    return exact


@njit(cache=True)
def _count_edges_kernel(table: InstantTable, row: int) -> int:
    shape = table.shape[row]
    if shape < 0:
        return 2
    count: int = table.starts[shape + 1] - table.starts[shape]
    return count


@njit(cache=True)
def _add_edges_kernel(
    table: InstantTable,
    row: int,
    out: NDArray[np.int64],
    count: int,
    by: int,
    inner: tuple[int, int],
) -> int:
    """Add the edges minus `by` that lie inside an open interval; return the number of breaks."""
    shape = table.shape[row]
    for e in range(_count_edges_kernel(table, row)):
        if shape < 0:
            edge = table.earliest[row] if e == 0 else table.latest[row]
        else:
            edge = table.latest[row] + table.edges[table.starts[shape] + e]
        if inner[0] < edge - by < inner[1]:
            out[count] = edge - by
            count += 1
    return count


@njit(cache=True)
def _add_breaks_kernel(
    cases: Cases, c: int, out: NDArray[np.int64], count: int, inner: tuple[int, int]
) -> int:
    """Add the breaks of a candidate inside an open interval; return the number of breaks."""
    row = cases.window[c]
    for v in range(cases.lo.shape[1]):
        if cases.lo[row, v] > cases.hi[row, v]:
            break
        # Edges minus an infinite end are outside.
        for end in (cases.lo[row, v], cases.hi[row, v]):
            count = _add_edges_kernel(cases.candidates, c, out, count, end, inner)
    return count


@njit(cache=True)
def _find_breaks_kernel(cases: Cases, i: int, first: int, last: int) -> NDArray[np.int64]:
    """Return the ends and breaks of T_s and the breaks of candidates first to last - 1, sorted."""
    positives = cases.positives
    room = _count_edges_kernel(positives, i)
    for c in range(first, last):
        room += 2 * cases.lo.shape[1] * _count_edges_kernel(cases.candidates, c)
    inner = (positives.earliest[i], positives.latest[i])
    out = np.empty(room, np.int64)
    out[0] = inner[0]
    out[1] = inner[1]
    count = _add_edges_kernel(positives, i, out, 2, 0, inner)
    for c in range(first, last):
        count = _add_breaks_kernel(cases, c, out, count, inner)
    out = np.sort(out[:count])
    kept = 1
    for k in range(1, count):
        if out[k] != out[kept - 1]:
            out[kept] = out[k]
            kept += 1
    return out[:kept]


@njit(cache=True)
def _measure_mass_kernel(table: InstantTable, row: int, left: int, right: int) -> float:
    """Compute P(left < T < right) between two neighbouring edges of a continuous instant."""
    shape = table.shape[row]
    if shape < 0:
        return float(right - left) / float(table.latest[row] - table.earliest[row])
    b = _locate_bucket_kernel(table, shape, left - table.latest[row])
    mass = float(table.below[b + 1] - table.below[b]) / _WHOLE
    return mass * float(right - left) / float(table.edges[b + 1] - table.edges[b])
