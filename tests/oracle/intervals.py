"""Oracle for timing correlation over the rationals: slow, obviously right, independent of our code.

A window is a tuple (lower, upper, floor, ceiling, threshold), where None means infinite. An event
is a tuple (earliest, latest).
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

Window = tuple[int | None, int | None, int | None, int | None, Fraction]
Event = tuple[int, int]


def cumulative(a: Event, b: Event, c: int, *, closed: bool = True) -> Fraction:
    """Compute P(T_B - T_A ≤ c), or < c if not closed: LL10 Theorem 1, integrated as in the spec."""
    (a1, b1), (a2, b2) = a, b
    return _cumulative(b1 - a1, b2 - a2, a1 + c - a2, closed)


@lru_cache(maxsize=2**16)
def _cumulative(length_a: int, length_b: int, z: int, closed: bool) -> Fraction:  # noqa: FBT001 - a key of the cache
    """Compute P(T_B - T_A ≤ z), or < z, of two events that begin at 0; kept for the next pair."""
    if length_a and length_b:
        return (_area(z + length_a, length_b) - _area(z, length_b)) / (length_a * length_b)
    if length_b:  # T_B ≤ z
        return min(max(Fraction(z, length_b), Fraction(0)), Fraction(1))
    if length_a:  # T_A ≥ -z
        return min(max(Fraction(z + length_a, length_a), Fraction(0)), Fraction(1))
    return Fraction(z >= 0 if closed else z > 0)


def _area(z: int, length: int) -> Fraction:
    """Compute G(z), the integral of the clipped ramp of slope one and height `length`."""
    if z <= 0:
        return Fraction(0)
    if z <= length:
        return Fraction(z * z, 2)
    return length * z - Fraction(length * length, 2)


def probability(a: Event, b: Event, window: Window) -> Fraction:
    """Compute P(lower ≤ T_B - T_A ≤ upper)."""
    lower, upper, *_ = window
    up_to = Fraction(1) if upper is None else cumulative(a, b, upper)
    below = Fraction(0) if lower is None else cumulative(a, b, lower, closed=False)
    return up_to - below


def is_satisfied(a: Event, b: Event, window: Window) -> bool:
    """Return whether the probability reaches the threshold and the pair is in the hard cuts."""
    _, _, floor, ceiling, threshold = window
    s = b[1] - a[1]
    if (floor is not None and s < floor) or (ceiling is not None and s > ceiling):
        return False
    return probability(a, b, window) >= threshold


def satisfied_pairs(
    base: list[Event],
    target: list[Event],
    groups: list[tuple[int, int, int, int]],
    window: Window,
    *,
    exclude_same: bool,
) -> set[tuple[int, int]]:
    """Find all satisfied pairs by checking every pair of every group."""
    return {
        (i, j)
        for base_lo, base_hi, target_lo, target_hi in groups
        for i in range(base_lo, base_hi)
        for j in range(target_lo, target_hi)
        if not (exclude_same and i == j) and is_satisfied(base[i], target[j], window)
    }
