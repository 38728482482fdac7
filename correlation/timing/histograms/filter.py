"""Decisions and probabilities of many pairs of histograms, in float64 if the result is certain.

Problem. For pairs of shapes and s = max_B - max_A, decide P(lower ≤ T_B - T_A ≤ upper) ≥ ct with
the same result as over the rationals, without computing with rationals.

Algorithm. As in histograms.exact, 1 - P = P(T_A + lower > T_B) + P(T_B > T_A + upper). Each part is
a sum of non-negative terms over the common intervals of both histograms (PTJ Definition 3, Theorem
1), which two pointers visit. Terms do not cancel, and the relative float64 error is less than
(n + m + 16) 2**-52 for n and m buckets (docs/proofs.md, P-HISTOGRAM). Masses and their sums are
integers in float64, without rounding. A pair whose probability is nearer to ct than this error is
decided in integers.

Reference. PTJ Theorem 1; filtered predicates: Fortune and Van Wyk 1993, as in intervals.exact.

Cost. O(n + m) per pair, O(1) if the ends of the window do not cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from correlation.resources.histogram import WHOLE_MASS
from correlation.timing.histograms.exact import decide_steps
from correlation.timing.intervals.arguments import as_columns
from correlation.timing.intervals.search import DOUBTFUL, SATISFIED, VIOLATED

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from correlation.timing.histograms.shapes import Shapes
    from correlation.timing.intervals.window import TimingWindow, WindowScalars

# Probability 1 of one histogram and of a pair; float64 holds both exactly.
_WHOLE = float(WHOLE_MASS)
_WHOLE_PAIR = _WHOLE * _WHOLE
# Relative rounding error of 1 - P: (n + m + _MORE) _UNIT, twice the proved bound.
_UNIT = 2.0**-52
_MORE = 16


def satisfied_shapes(
    shapes_a: Shapes,
    index_a: ArrayLike,
    shapes_b: Shapes,
    index_b: ArrayLike,
    s: ArrayLike,
    window: TimingWindow,
) -> NDArray[np.bool_]:
    """Decide exactly which pairs satisfy a window.

    Parameters
    ----------
    shapes_a, shapes_b : Shapes
        The shapes that occur in either stream.
    index_a, index_b : array_like of int, shape (n,) or scalar
        Shapes of each pair, as positions in `shapes_a` and `shapes_b`.
    s : array_like of int, shape (n,) or scalar
        max_B - max_A, microseconds, within ±2**61.
    window : TimingWindow
        The condition, including its floor and ceiling.

    Returns
    -------
    ndarray of bool, shape (n,)
        True where P(lower ≤ T_B - T_A ≤ upper) ≥ threshold and floor ≤ s ≤ ceiling.

    Raises
    ------
    ValueError
        A position lies outside the shapes.
    """
    rows_a, rows_b, differences = _check_pairs(shapes_a, index_a, shapes_b, index_b, s)
    verdicts = np.empty(differences.shape, np.uint8)
    _filter_pairs_kernel(
        shapes_a, rows_a, shapes_b, rows_b, differences, window.scalars(), verdicts
    )
    doubtful = np.flatnonzero(verdicts == DOUBTFUL)
    verdicts[doubtful] = decide_exactly(
        shapes_a,
        rows_a[doubtful],
        shapes_b,
        rows_b[doubtful],
        differences[doubtful],
        window.scalars(),
    )
    return verdicts.view(np.bool_)


def decide_exactly(
    shapes_a: Shapes,
    index_a: NDArray[np.int64],
    shapes_b: Shapes,
    index_b: NDArray[np.int64],
    s: NDArray[np.int64],
    window: WindowScalars,
) -> NDArray[np.bool_]:
    """Decide pairs in integers, without floor and ceiling.

    Parameters
    ----------
    shapes_a, index_a, shapes_b, index_b, s
        As in `satisfied_shapes`, of shape (n,).
    window : WindowScalars
        The condition.

    Returns
    -------
    ndarray of bool, shape (n,)
        True where P(lower ≤ T_B - T_A ≤ upper) ≥ threshold.
    """
    # Many ties are equal cases: each case is decided once.
    cases, places = np.unique(np.stack([index_a, index_b, s]), axis=1, return_inverse=True)
    decisions = [
        decide_steps(shapes_a.to_steps(a), shapes_b.to_steps(b), difference, window)
        for a, b, difference in cases.T.tolist()
    ]
    return np.array(decisions, np.bool_)[places.ravel()]


def shape_probability(
    shapes_a: Shapes,
    index_a: ArrayLike,
    shapes_b: Shapes,
    index_b: ArrayLike,
    s: ArrayLike,
    window: TimingWindow,
) -> NDArray[np.float64]:
    """Compute the satisfaction probability of pairs, for reporting.

    Parameters
    ----------
    shapes_a, index_a, shapes_b, index_b, s
        As in `satisfied_shapes`.
    window : TimingWindow
        The condition; its threshold, floor and ceiling are ignored.

    Returns
    -------
    ndarray of float64, shape (n,)
        P(lower ≤ T_B - T_A ≤ upper), in [0, 1], with an error less than 2**-44.

    Raises
    ------
    ValueError
        A position lies outside the shapes.
    """
    rows_a, rows_b, differences = _check_pairs(shapes_a, index_a, shapes_b, index_b, s)
    out = np.empty(differences.shape, np.float64)
    _measure_pairs_kernel(shapes_a, rows_a, shapes_b, rows_b, differences, window.scalars(), out)
    return out


def _check_pairs(
    shapes_a: Shapes, index_a: ArrayLike, shapes_b: Shapes, index_b: ArrayLike, s: ArrayLike
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    rows_a, rows_b, differences = as_columns(index_a, index_b, s)
    for name, shapes, rows in (("index_a", shapes_a, rows_a), ("index_b", shapes_b, rows_b)):
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(shapes.starts) - 1:
            raise ValueError(f"{name}: a position is outside the shapes")
    return rows_a, rows_b, differences


@njit(cache=True)
def _filter_pairs_kernel(
    shapes_a: Shapes,
    index_a: NDArray[np.int64],
    shapes_b: Shapes,
    index_b: NDArray[np.int64],
    s: NDArray[np.int64],
    window: WindowScalars,
    verdicts: NDArray[np.uint8],
) -> None:
    for k in range(len(verdicts)):
        if window.floor <= s[k] <= window.ceiling:
            verdicts[k] = _filter_pair_kernel(
                shapes_a, index_a[k], shapes_b, index_b[k], s[k], window
            )
        else:
            verdicts[k] = VIOLATED


@njit(cache=True)
def _filter_pair_kernel(
    shapes_a: Shapes, a: int, shapes_b: Shapes, b: int, s: int, window: WindowScalars
) -> int:
    """Return SATISFIED, VIOLATED, or DOUBTFUL by float64; the caller checks floor and ceiling."""
    lost = _measure_lost_kernel(shapes_a, a, shapes_b, b, s, window)
    buckets = shapes_a.starts[a + 1] - shapes_a.starts[a]
    buckets += shapes_b.starts[b + 1] - shapes_b.starts[b]
    verdict: int = _judge_lost_kernel(lost, buckets, window)
    return verdict


@njit(cache=True)
def _judge_lost_kernel(lost: float, buckets: int, window: WindowScalars) -> int:
    """Compare the lost probability 1 - P, in units of 10**-20, with 1 - ct."""
    allowed = window.slack * _WHOLE_PAIR
    margin = allowed - lost
    doubt = (buckets + _MORE) * _UNIT * (allowed + lost)
    if margin >= doubt:
        return SATISFIED
    if margin < -doubt:
        return VIOLATED
    return DOUBTFUL


@njit(cache=True)
def _measure_pairs_kernel(
    shapes_a: Shapes,
    index_a: NDArray[np.int64],
    shapes_b: Shapes,
    index_b: NDArray[np.int64],
    s: NDArray[np.int64],
    window: WindowScalars,
    out: NDArray[np.float64],
) -> None:
    for k in range(len(out)):
        lost = _measure_lost_kernel(shapes_a, index_a[k], shapes_b, index_b[k], s[k], window)
        out[k] = max(0.0, 1.0 - lost / _WHOLE_PAIR)


@njit(cache=True)
def _measure_lost_kernel(
    shapes_a: Shapes, a: int, shapes_b: Shapes, b: int, s: int, window: WindowScalars
) -> float:
    """Compute 1 - P in units of 10**-20."""
    first, last = shapes_a.starts[a], shapes_a.starts[a + 1]
    edges_a = shapes_a.edges[first + a : last + a + 1]
    masses_a = shapes_a.masses[first:last]
    first, last = shapes_b.starts[b], shapes_b.starts[b + 1]
    edges_b = shapes_b.edges[first + b : last + b + 1]
    masses_b = shapes_b.masses[first:last]
    below = _measure_greater_kernel(edges_a, masses_a, edges_b, masses_b, window.lower - s)
    above = _measure_greater_kernel(edges_b, masses_b, edges_a, masses_a, s - window.upper)
    lost: float = below + above
    return lost


@njit(cache=True)
def _measure_greater_kernel(
    x_edges: NDArray[np.int64],
    x_masses: NDArray[np.int64],
    y_edges: NDArray[np.int64],
    y_masses: NDArray[np.int64],
    c: int,
) -> float:
    """Compute P(X + c > Y) in units of 10**-20; both shapes end at 0."""
    if c <= y_edges[0]:
        return 0.0
    if x_edges[0] + c > 0:
        return _WHOLE_PAIR
    if x_edges[0] == 0:
        return _WHOLE * _measure_below_kernel(y_edges, y_masses, c)
    if y_edges[0] == 0:
        return _WHOLE * _measure_above_kernel(x_edges, x_masses, -c)
    total = 0.0
    below = 0.0
    j = 0
    for i in range(len(x_masses)):
        left = x_edges[i] + c
        end = x_edges[i + 1] + c
        density = float(x_masses[i]) / float(end - left)
        # Y ends at 0 and begins before the end of X; P(Y < t) = 0 before its first bucket.
        left = max(left, y_edges[0])
        while left < end:
            if left >= 0:
                total += density * float(end - left) * _WHOLE
                break
            low = y_edges[j]
            high = y_edges[j + 1]
            if left < high:
                right = min(end, high)
                middle = float(y_masses[j]) / float(high - low) * float(left - low + right - low)
                total += density * float(right - left) * (below + 0.5 * middle)
                left = right
            if left >= high:
                below += float(y_masses[j])
                j += 1
    return total


@njit(cache=True)
def _measure_below_kernel(edges: NDArray[np.int64], masses: NDArray[np.int64], t: int) -> float:
    """Compute P(X < t) in units of 10**-10; X must not be a point."""
    below = 0.0
    for i in range(len(masses)):
        low = edges[i]
        high = edges[i + 1]
        if t < high:
            if low < t:
                below += float(masses[i]) * float(t - low) / float(high - low)
            break
        below += float(masses[i])
    return below


@njit(cache=True)
def _measure_above_kernel(edges: NDArray[np.int64], masses: NDArray[np.int64], t: int) -> float:
    """Compute P(X > t) in units of 10**-10; X must not be a point."""
    above = 0.0
    for i in range(len(masses) - 1, -1, -1):
        low = edges[i]
        high = edges[i + 1]
        if low < t:
            if t < high:
                above += float(masses[i]) * float(high - t) / float(high - low)
            break
        above += float(masses[i])
    return above
