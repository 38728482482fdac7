"""The s-window: the interval of s = max_B - max_A in which a pair is satisfied.

Problem. For fixed lengths the satisfaction probability depends on s alone and the satisfied s
form one integer interval [s_lo, s_hi] (docs/proofs.md, P-SWINDOW). Compute it exactly.

Definitions. With K as in intervals.exact, W(l_A, l_B) = max {w : q K(w) ≤ (q - p) 2mM} is the
*max depth* to which one end of the window may cut. In a wide window only one end cuts, hence

    s_lo = lower + l_B - W,    s_hi = upper - l_A + W,

the quantiles of the difference of two uniforms. In a narrow window they bound the interval, which
is symmetric about (lower + upper - l_A + l_B) / 2; bisection finds it.

Closed form. With r = 1 - ct the real root of K(w) = 2 r m M is sqrt(2 r m M), r M + m/2 or
m + M - sqrt(2 ct m M): one square root. It is corrected to the exact integer (P-DEPTH).

Reference. LL10 section 3 and Figure 1; PTJ `stime`, Theorems 2 and 3.

Cost. O(1) per pair of lengths; O(log length) if the guess is near an integer or the window narrow.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from correlation.timing.intervals.arguments import as_columns
from correlation.timing.intervals.exact import _decide_depths_kernel

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from correlation.timing.intervals.window import TimingWindow, WindowScalars

# Error bound of the closed form, relative to l_A + l_B (docs/proofs.md, P-DEPTH).
_GUESS_BOUND = 2.0**-50


def satisfied(
    length_a: ArrayLike, length_b: ArrayLike, s: ArrayLike, window: TimingWindow
) -> NDArray[np.bool_]:
    """Decide exactly which pairs satisfy a window.

    Parameters
    ----------
    length_a, length_b : array_like of int, shape (n,) or scalar
        Lengths of the two timestamps, microseconds, 0 … 2**45.
    s : array_like of int, shape (n,) or scalar
        max_B - max_A, microseconds, within ±2**61.
    window : TimingWindow
        The condition, including its floor and ceiling.

    Returns
    -------
    ndarray of bool, shape (n,)
        True where P(lower ≤ T_B - T_A ≤ upper) ≥ threshold and floor ≤ s ≤ ceiling.
    """
    lengths_a, lengths_b, differences = as_columns(length_a, length_b, s)
    out = np.empty(lengths_a.shape, np.bool_)
    _decide_pairs_kernel(lengths_a, lengths_b, differences, window.scalars(), out)
    return out


def s_window(
    length_a: ArrayLike, length_b: ArrayLike, window: TimingWindow
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Compute the exact s-windows of pairs of lengths.

    Parameters
    ----------
    length_a, length_b : array_like of int, shape (n,) or scalar
        Lengths of the two timestamps, microseconds, 0 … 2**45.
    window : TimingWindow
        The condition, wide or narrow, including its floor and ceiling.

    Returns
    -------
    s_lo, s_hi : ndarray of int64, shape (n,)
        A pair is satisfied if and only if s_lo ≤ max_B - max_A ≤ s_hi, microseconds. The s-window
        is empty if s_lo > s_hi.
    """
    lengths_a, lengths_b = as_columns(length_a, length_b)
    low = np.empty(lengths_a.shape, np.int64)
    high = np.empty(lengths_a.shape, np.int64)
    _bound_lengths_kernel(lengths_a, lengths_b, window.scalars(), low, high)
    return low, high


def bounds(
    window: TimingWindow,
    min_uncertainty_a_us: int,
    max_uncertainty_a_us: int,
    min_uncertainty_b_us: int,
    max_uncertainty_b_us: int,
) -> tuple[int, int]:
    """Compute the min and max s of any satisfied pair of two streams.

    Parameters
    ----------
    window : TimingWindow
        The condition.
    min_uncertainty_a_us, max_uncertainty_a_us, min_uncertainty_b_us, max_uncertainty_b_us : int
        Min and max uncertainty of either stream, microseconds.

    Returns
    -------
    min_s, max_s : int
        Every satisfied pair has min_s ≤ max_B - max_A ≤ max_s; both are finite, within ±2**52.
        In a wide window some pair reaches each of them, unless floor or ceiling cuts it off. If
        min_s > max_s, no pair can be satisfied (docs/proofs.md, P-KEEP).
    """
    return bounds_of_scalars(
        window.scalars(),
        (min_uncertainty_a_us, max_uncertainty_a_us),
        (min_uncertainty_b_us, max_uncertainty_b_us),
    )


def bounds_of_scalars(
    window: WindowScalars, lengths_a: tuple[int, int], lengths_b: tuple[int, int]
) -> tuple[int, int]:
    """Compute `bounds` from window scalars and the min and max uncertainty of either stream."""
    deepest_low = int(_find_depth_kernel(lengths_a[1], lengths_b[0], window))
    deepest_high = int(_find_depth_kernel(lengths_a[0], lengths_b[1], window))
    min_s = max(window.lower + lengths_b[0] - deepest_low, window.floor)
    max_s = min(window.upper - lengths_a[0] + deepest_high, window.ceiling)
    return min_s, max_s


@njit(cache=True)
def _decide_pairs_kernel(
    length_a: NDArray[np.int64],
    length_b: NDArray[np.int64],
    s: NDArray[np.int64],
    window: WindowScalars,
    out: NDArray[np.bool_],
) -> None:
    for i in range(len(out)):
        a = length_a[i]
        b = length_b[i]
        out[i] = window.floor <= s[i] <= window.ceiling and _decide_depths_kernel(
            window.lower - s[i] + b, s[i] - window.upper + a, a, b, window
        )


@njit(cache=True)
def _bound_lengths_kernel(
    length_a: NDArray[np.int64],
    length_b: NDArray[np.int64],
    window: WindowScalars,
    low: NDArray[np.int64],
    high: NDArray[np.int64],
) -> None:
    for i in range(len(low)):
        low[i], high[i] = _bound_pair_kernel(length_a[i], length_b[i], window)


@njit(cache=True)
def _bound_pair_kernel(a: int, b: int, window: WindowScalars) -> tuple[int, int]:
    """Compute [s_lo, s_hi] of two lengths, cut by floor and ceiling; empty if s_lo > s_hi."""
    depth = _find_depth_kernel(a, b, window)
    s_lo = window.lower + b - depth
    s_hi = window.upper - a + depth
    if window.upper - window.lower < a + b:
        s_lo, s_hi = _bisect_narrow_kernel(a, b, s_lo, window)
    return max(s_lo, window.floor), min(s_hi, window.ceiling)


@njit(cache=True)
def _bisect_narrow_kernel(a: int, b: int, s_lo: int, window: WindowScalars) -> tuple[int, int]:
    """Find [s_lo, s_hi] by bisection from its centre; argument `s_lo` is a lower bound."""
    twice_centre = window.lower + window.upper - a + b
    good = twice_centre >> 1
    if not _decide_depths_kernel(window.lower - good + b, good - window.upper + a, a, b, window):
        return good + 1, good
    bad = s_lo - 1
    while good - bad > 1:
        middle = (good + bad) >> 1
        if _decide_depths_kernel(
            window.lower - middle + b, middle - window.upper + a, a, b, window
        ):
            good = middle
        else:
            bad = middle
    return good, twice_centre - good


@njit(cache=True)
def _find_depth_kernel(a: int, b: int, window: WindowScalars) -> int:
    """Compute W(a, b), the max w ≥ 0 with a probability of at least ct after the cut K(w)."""
    small = min(a, b)
    large = max(a, b)
    if window.slack_part == 0 or large == 0:
        return 0
    root = _guess_depth_kernel(small, large, window)
    doubt = _GUESS_BOUND * float(small + large)
    guess = math.floor(root - doubt)
    if guess >= 0 and guess == math.floor(root + doubt):
        return guess
    depth: int = _correct_depth_kernel(min(max(guess, 0), small + large), a, b, window)
    return depth


@njit(cache=True)
def _guess_depth_kernel(small: int, large: int, window: WindowScalars) -> float:
    """Solve K(w) = (1 - ct) 2mM over the reals."""
    m = float(small)
    reach = 2.0 * window.slack * float(large)
    if small == 0:
        return 0.5 * reach
    if reach <= m:
        return math.sqrt(reach * m)
    if reach <= float(2 * large - small):
        return 0.5 * (reach + m)
    return float(small + large) - math.sqrt(2.0 * window.threshold * m * float(large))


@njit(cache=True)
def _correct_depth_kernel(guess: int, a: int, b: int, window: WindowScalars) -> int:
    """Find W(a, b) by galloping from any guess in [0, a + b], then by bisection."""
    good = 0
    bad = a + b + 1
    step = 1
    if _decide_depths_kernel(guess, 0, a, b, window):
        good = guess
        while good + step < bad:
            if not _decide_depths_kernel(good + step, 0, a, b, window):
                bad = good + step
                break
            good += step
            step *= 2
    else:
        bad = guess
        while bad - step > good:
            if _decide_depths_kernel(bad - step, 0, a, b, window):
                good = bad - step
                break
            bad -= step
            step *= 2
    while bad - good > 1:
        middle = (good + bad) >> 1
        if _decide_depths_kernel(middle, 0, a, b, window):
            good = middle
        else:
            bad = middle
    return good
