"""The s-windows of histograms: the values of s = max_B - max_A that satisfy a pair of shapes.

Problem. For fixed shapes of A and B the satisfaction probability depends on s alone. Find all
integers s with P(s) ≥ ct and floor ≤ s ≤ ceiling: one interval in a wide window, one or several in
a narrow window.

Definitions. U_A = max_A - T_A and U_B = max_B - T_B have fixed distributions. With F the
distribution function of E = U_B - U_A, P(s) = F(s - lower) - F⁻(s - upper).

Algorithm. *Wide window*: only one end cuts at a time, so s_lo = lower + Q_ct(U_B - U_A) and
s_hi = upper - Q_ct(U_A - U_B). Q_ct(D) is the min integer x with P(D ≤ x) ≥ ct; bisection with
exact decisions finds it.
*Narrow window*: the densities of the shapes are step functions, so the density of E is piecewise
linear and F is piecewise quadratic: F(x) = Σ_ij w_ij (x - e_ij)²₊ / 2 over all pairs of edges, with
e_ij their difference and -w_ij the product of their steps (linear instead of quadratic if one shape
is a point). For ct = p / q, q P(s) - p times 2 whole_A whole_B is an integer quadratic between
neighbouring breakpoints lower + e_ij and upper + e_ij. A sweep by ascending s updates value, slope
and curvature in integers. The integer square root of every quadratic gives its satisfied integers
exactly (docs/proofs.md, P-SWINDOWS).

Reference. PTJ Definition 8 and section 3.1; spec section 4.

Cost. Wide: O((n + m) log length) for n and m buckets. Narrow: O(k log k), k = 2 (n + 1) (m + 1)
breakpoints, fewer if some coincide. All in integers of a few hundred bits.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from correlation.timing.histograms.exact import Steps, count_greater, to_steps
from correlation.timing.histograms.integer_sets import Intervals, unite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from correlation.resources.histogram import Histogram
    from correlation.timing.intervals.window import TimingWindow, WindowScalars


def s_windows(u: Histogram, v: Histogram, window: TimingWindow) -> Intervals:
    """Find the s-window of two shapes.

    Parameters
    ----------
    u, v : Histogram
        The shapes of A and B; their positions in time are ignored.
    window : TimingWindow
        The condition, wide or narrow, including its floor and ceiling.

    Returns
    -------
    tuple of (int, int)
        Closed intervals of s, microseconds, ascending, without touching intervals: a pair is
        satisfied if and only if an interval contains max_B - max_A. At most one interval if the
        window is wide.
    """
    a, b = to_steps(u.shape()), to_steps(v.shape())
    scalars = window.scalars()
    if window.is_wide(u.length_us, v.length_us):
        spans = [one_sided_ends(u, v, window)]
    else:
        spans = list(_sweep(a, b, scalars))
    return unite((max(low, scalars.floor), min(high, scalars.ceiling)) for low, high in spans)


def one_sided_ends(u: Histogram, v: Histogram, window: TimingWindow) -> tuple[int, int]:
    """Find the s at which each end of a window alone is satisfied.

    Parameters
    ----------
    u, v : Histogram
        The shapes of A and B; their positions in time are ignored.
    window : TimingWindow
        The condition; its floor and ceiling are ignored.

    Returns
    -------
    s_lo, s_hi : int
        P(T_B - T_A ≥ lower) ≥ ct iff s ≥ s_lo, and P(T_B - T_A ≤ upper) ≥ ct iff s ≤ s_hi,
        microseconds. [s_lo, s_hi] contains the s-window, and equals it in a wide window. For an
        infinite end of the window the result is beyond every s.
    """
    scalars = window.scalars()
    forth, back = _find_quantiles(u.shape(), v.shape(), window.threshold)
    return scalars.lower + forth, scalars.upper - back


# Conditions on the same streams differ by their windows more than by their thresholds.
@lru_cache(maxsize=4096)
def _find_quantiles(u: Histogram, v: Histogram, ct: Fraction) -> tuple[int, int]:
    a, b = to_steps(u), to_steps(v)
    return _find_quantile(a, b, ct), _find_quantile(b, a, ct)


def _find_quantile(u: Steps, v: Steps, ct: Fraction) -> int:
    """Find the min integer x with P(U_v - U_u ≤ x) ≥ ct; both shapes end at 0."""
    # Max probability above x, in units of 1 / (2 whole_u whole_v).
    allowed = (ct.denominator - ct.numerator) * 2 * u.whole * v.whole // ct.denominator
    bad, good = u.edges[0] - 1, -v.edges[0]
    while good - bad > 1:
        middle = (bad + good) >> 1
        if count_greater(u, v, -middle) <= allowed:
            good = middle
        else:
            bad = middle
    return good


def _sweep(u: Steps, v: Steps, window: WindowScalars) -> Iterator[tuple[int, int]]:
    """Yield the satisfied s piece by piece, ascending; at most one shape may be a point."""
    bends = _gather_bends(u, v, window)
    # At s + t, q P - p times the whole is the integer curve t² + slope t + value.
    degree = 1 if u.is_point or v.is_point else 2
    value = (window.slack_part - window.whole) * degree * u.whole * v.whole
    slope = curve = 0
    for s, following in pairwise(sorted(bends)):
        if degree == 1:
            slope += bends[s]
        else:
            curve += bends[s]
        width = following - s
        for first, last in _solve(curve, slope, value, width):
            yield s + first, s + last
        value += (curve * width + slope) * width
        slope += 2 * curve * width


def _gather_bends(u: Steps, v: Steps, window: WindowScalars) -> dict[int, int]:
    """Compute the changes at every breakpoint: of q P's slope, or half its second derivative."""
    one_end: dict[int, int] = {}
    sign = 1 if v.is_point else -1
    for edge_u, change_u in zip(u.edges, u.changes, strict=True):
        for edge_v, change_v in zip(v.edges, v.changes, strict=True):
            place = edge_u - edge_v
            one_end[place] = one_end.get(place, 0) + sign * window.whole * change_u * change_v
    bends = {window.lower + place: bend for place, bend in one_end.items()}
    for place, bend in one_end.items():
        bends[window.upper + place] = bends.get(window.upper + place, 0) - bend
    return bends


def _solve(curve: int, slope: int, value: int, width: int) -> Iterator[tuple[int, int]]:
    """Yield the integers t in [0, width] with curve t² + slope t + value ≥ 0, as intervals."""
    end = (curve * width + slope) * width + value
    square = slope * slope - 4 * curve * value
    if (curve <= 0 <= min(value, end)) or (curve > 0 > square):
        yield 0, width
    elif (curve >= 0 > max(value, end)) or (curve < 0 and square < 0):
        return
    elif curve == 0:
        yield (-(value // slope), width) if slope > 0 else (0, value // -slope)
    else:
        root = math.isqrt(square)
        root_up = root + (root * root < square)
        if curve > 0:
            yield 0, min((-slope - root_up) // (2 * curve), width)
            yield max(-((slope - root_up) // (2 * curve)), 0), width
        else:
            first = -((root - slope) // (-2 * curve))
            yield max(first, 0), min((slope + root) // (-2 * curve), width)
