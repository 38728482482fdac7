"""Oracle for the probability of absence over the rationals: slow, obviously right, independent.

An instant is a list of buckets (lo, hi, p), where p is a fraction. An exact time is one bucket with
lo = hi. A window is a list of intervals (lo, hi, open_lo, open_hi) of T_r - T_s, where None means
infinite. A candidate is a pair (instant, window).

P = E over T_s of the product over the candidates of 1 - P(T_r - T_s in the window). Between two
neighbours among all differences of edges and ends, each factor is linear in T_s. The product is
expanded there and integrated term by term.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

Bucket = tuple[int, int, Fraction]
Instant = list[Bucket]
Interval = tuple[int | None, int | None, bool, bool]
Window = list[Interval]
Candidate = tuple[Instant, Window]
ZERO = Fraction(0)


def probability(positive: Instant, candidates: list[Candidate]) -> Fraction:
    """Compute the probability that no candidate stops the positive event."""
    first, last = positive[0][0], positive[-1][1]
    if first == last:
        missed = Fraction(1)
        for instant, window in candidates:
            missed *= 1 - stops_at(Fraction(first), instant, window, exact=True)
        return missed
    breaks = {edge for lo, hi, _ in positive for edge in (lo, hi)}
    for instant, window in candidates:
        for lo, hi, _ in instant:
            for ends in window:
                breaks |= {edge - end for edge in (lo, hi) for end in ends[:2] if end is not None}
    total = Fraction(0)
    for left, right in pairwise(sorted(it for it in breaks if first <= it <= last)):
        density = sum(p / (hi - lo) for lo, hi, p in positive if lo <= left and right <= hi)
        product = [Fraction(1)]
        for instant, window in candidates:
            product = times(product, line(left, right, instant, window))
        total += density * sum(
            c * (Fraction(right) ** (k + 1) - Fraction(left) ** (k + 1)) / (k + 1)
            for k, c in enumerate(product)
        )
    return total


def line(left: int, right: int, instant: Instant, window: Window) -> tuple[Fraction, Fraction]:
    """Return a and b of 1 - P(T_r - t in the window) = a + b t, from two inner points."""
    u, v = left + Fraction(right - left, 3), left + Fraction(2 * (right - left), 3)
    at_u, at_v = (1 - stops_at(t, instant, window, exact=False) for t in (u, v))
    slope = (at_v - at_u) / (v - u)
    return at_u - slope * u, slope


def times(product: list[Fraction], factor: tuple[Fraction, Fraction]) -> list[Fraction]:
    """Multiply a polynomial by a + b t."""
    a, b = factor
    return [
        a * low + b * high for low, high in zip([*product, ZERO], [ZERO, *product], strict=True)
    ]


def stops_at(t: Fraction, instant: Instant, window: Window, *, exact: bool) -> Fraction:
    """Compute P(T_r - t in the window); open ends count if t is an exact T_s and T_r is exact."""
    return sum(
        (p * part(lo - t, hi - t, window, exact=exact) for lo, hi, p in instant), Fraction(0)
    )


def part(lo: Fraction, hi: Fraction, window: Window, *, exact: bool) -> Fraction:
    """Compute the part of [lo, hi] inside the window; 0 or 1 if lo = hi."""
    if lo == hi:
        return Fraction(any(is_inside(lo, it, closed=not exact) for it in window))
    cuts = {Fraction(end) for it in window for end in it[:2] if end is not None and lo < end < hi}
    inside = Fraction(0)
    for left, right in pairwise(sorted({lo, hi} | cuts)):
        if any(is_inside((left + right) / 2, it, closed=True) for it in window):
            inside += right - left
    return inside / (hi - lo)


def is_inside(x: Fraction, interval: Interval, *, closed: bool) -> bool:
    """Return whether x is in an interval; `closed` includes its open ends."""
    lo, hi, open_lo, open_hi = interval
    above = lo is None or x > lo or (x == lo and (closed or not open_lo))
    below = hi is None or x < hi or (x == hi and (closed or not open_hi))
    return above and below


def is_absent(positive: Instant, candidates: list[Candidate], threshold: Fraction) -> bool:
    """Return whether the probability of absence reaches the threshold."""
    return probability(positive, candidates) >= threshold
