"""Oracle for histograms over the rationals: slow, obviously right, independent of our code.

A histogram is a list of buckets (lo, hi, p), where p is a fraction. A window is a tuple (lower,
upper, floor, ceiling, threshold), where None means infinite.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

Bucket = tuple[int, int, Fraction]
Histogram = list[Bucket]
Window = tuple[int | None, int | None, int | None, int | None, Fraction]


def moved(h: Histogram, by: int) -> Histogram:
    """Return h + by."""
    return [(lo + by, hi + by, p) for lo, hi, p in h]


def ge(h_i: Histogram, h_j: Histogram) -> Fraction:
    """Compute P(X_i ≥ X_j): PTJ Equation 2, over all pairs of buckets."""
    total = Fraction(0)
    for i1, i2, p in h_i:
        for j1, j2, q in h_j:
            # Only the differences of the times count.
            part = _ge_of_buckets(0, i2 - i1, j1 - i1, j2 - i1)
            if part:
                total += p * q * part
    return total


@lru_cache(maxsize=2**16)
def _ge_of_buckets(i1: int, i2: int, j1: int, j2: int) -> Fraction:  # noqa: PLR0911 - the lemma's
    """Compute P(X_i ≥ X_j) of two uniforms: PTJ Lemma 1, with points as limits.

    Case 5 in the paper has (j2 - j1)². The inverse of case 3 yields (j2 - i1)², which is equal only
    for i1 = j1 and is used here.
    """
    if i1 >= j2:
        return Fraction(1)
    if i2 < j1 or (i2 == j1 and (i1 < i2 or j1 < j2)):
        return Fraction(0)
    if i1 == i2:
        return Fraction(i1 - j1, j2 - j1)
    if j1 == j2:
        return Fraction(i2 - j1, i2 - i1)
    if i2 <= j2 and i1 < j1:
        return Fraction((i2 - j1) ** 2, 2 * (i2 - i1) * (j2 - j1))
    if i2 >= j2 and i1 < j1:
        return Fraction(2 * i2 - j1 - j2, 2 * (i2 - i1))
    if i2 > j2:
        return 1 - Fraction((j2 - i1) ** 2, 2 * (i2 - i1) * (j2 - j1))
    return Fraction(i2 - 2 * j1 + i1, 2 * (j2 - j1))


def probability(a: Histogram, b: Histogram, window: Window) -> Fraction:
    """Compute P(T_A + lower ≤ T_B and T_B ≤ T_A + upper); at most one of the two can fail."""
    lower, upper, *_ = window
    after = Fraction(1) if lower is None else ge(b, moved(a, lower))
    before = Fraction(1) if upper is None else ge(moved(a, upper), b)
    return after + before - 1


def is_satisfied(a: Histogram, b: Histogram, window: Window) -> bool:
    """Return whether the probability reaches the threshold and the pair is in the hard cuts."""
    _, _, floor, ceiling, threshold = window
    s = b[-1][1] - a[-1][1]
    if (floor is not None and s < floor) or (ceiling is not None and s > ceiling):
        return False
    return probability(a, b, window) >= threshold


def cumulative(h: Histogram, t: int, *, closed: bool = True) -> Fraction:
    """Compute P(X ≤ t), or P(X < t) if not closed."""
    total = Fraction(0)
    for lo, hi, p in h:
        if lo == hi:
            total += p if lo < t or (closed and lo == t) else 0
        else:
            total += p * min(max(Fraction(t - lo, hi - lo), Fraction(0)), Fraction(1))
    return total


def dominates(x: Histogram, y: Histogram) -> bool:
    """Return whether P(X ≤ t) ≤ P(Y ≤ t) for all t; both are linear except at edges."""
    edges = {edge for lo, hi, _ in x + y for edge in (lo, hi)}
    return all(
        cumulative(x, edge, closed=closed) <= cumulative(y, edge, closed=closed)
        for edge in edges
        for closed in (True, False)
    )
