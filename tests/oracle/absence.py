"""Oracle for the probability of absence over the rationals: slow, obviously right, independent.

An instant is a list of buckets (lo, hi, p), where p is a fraction. An exact time is one bucket with
lo = hi. A window is a list of intervals (lo, hi, open_lo, open_hi) of T_r - T_s, where None means
infinite. Instead of such an interval a window may have a box: a triple of intervals, those of
T_r - T_s, of T_r and of T_s. A candidate is a pair (instant, window).

P = E over T_s of the product over the candidates of 1 - P(the window holds T_r and T_s). Between
two neighbours among all differences of edges and ends, each factor is linear in T_s: all ends of
T_r count as edges here, and those of T_s are points, too. The product is expanded there and
integrated term by term.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

Bucket = tuple[int, int, Fraction]
Instant = list[Bucket]
Interval = tuple[int | None, int | None, bool, bool]
Box = tuple[Interval, Interval, Interval]
Window = Sequence[Interval | Box]
Candidate = tuple[Instant, Window]
ZERO = Fraction(0)
ALWAYS = (None, None, False, False)


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
        points = {edge for lo, hi, _ in instant for edge in (lo, hi)} | set(ends_of(window, 1))
        breaks |= {point - end for point in points for end in ends_of(window, 0)}
        breaks |= set(ends_of(window, 2))
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


def as_box(part: Interval | Box) -> Box:
    """Return an interval of T_r - T_s as a box."""
    return part if len(part) == 3 else (part, ALWAYS, ALWAYS)


def ends_of(window: Window, axis: int) -> Iterator[int]:
    """Yield the finite ends of T_r - T_s (0), T_r (1) or T_s (2)."""
    for it in window:
        for end in as_box(it)[axis][:2]:
            if end is not None:
                yield end


def stops_at(t: Fraction, instant: Instant, window: Window, *, exact: bool) -> Fraction:
    """Compute P(the window holds T_r and t); open ends count if t is an exact T_s.

    Those of T_r - T_s and of T_r count if T_r is exact, too.
    """
    return sum((p * part(lo, hi, t, window, exact=exact) for lo, hi, p in instant), ZERO)


def part(lo: int, hi: int, t: Fraction, window: Window, *, exact: bool) -> Fraction:
    """Compute the part of T_r from lo to hi at which the window holds; 0 or 1 if lo = hi."""
    if lo == hi:
        return Fraction(any(holds(Fraction(lo), t, it, exact=exact) for it in window))
    points = {t + end for end in ends_of(window, 0)} | {Fraction(it) for it in ends_of(window, 1)}
    cuts = {Fraction(lo), Fraction(hi)} | {it for it in points if lo < it < hi}
    inside = ZERO
    for left, right in pairwise(sorted(cuts)):
        if any(holds((left + right) / 2, t, it, exact=exact) for it in window):
            inside += right - left
    return inside / (hi - lo)


def holds(time: Fraction, t: Fraction, part: Interval | Box, *, exact: bool) -> bool:
    """Return whether an interval or a box of a window holds T_r = time and T_s = t."""
    difference, negated, positive = as_box(part)
    return (
        is_inside(time - t, difference, closed=not exact)
        and is_inside(time, negated, closed=False)
        and is_inside(t, positive, closed=not exact)
    )


def is_inside(x: Fraction, interval: Interval, *, closed: bool) -> bool:
    """Return whether x is in an interval; `closed` includes its open ends."""
    lo, hi, open_lo, open_hi = interval
    above = lo is None or x > lo or (x == lo and (closed or not open_lo))
    below = hi is None or x < hi or (x == hi and (closed or not open_hi))
    return above and below


def is_absent(positive: Instant, candidates: list[Candidate], threshold: Fraction) -> bool:
    """Return whether the probability of absence reaches the threshold."""
    return probability(positive, candidates) >= threshold
