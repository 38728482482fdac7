"""The satisfaction probability of one pair, in float64; also read without numpy and numba.

Problem, definitions and equation: as in intervals.exact, P = 1 - (K(u) + K(v)) / 2mM. The kernels
of intervals.exact and intervals.probability are these functions, compiled: a reader of alarms that
calls them gets the probabilities of the job, to the last bit.

Reference. LL10 Theorem 1, integrated (spec section 3).

Cost. O(1). Absolute error below 2**-50.
"""

from __future__ import annotations


def measure_cut(w: int, small: int, large: int, whole: float) -> float:
    """Compute K(w) in float64; 0 < small ≤ large."""
    if w <= 0:
        return 0.0
    if w <= small:
        return float(w) * float(w)
    if w <= large:
        return float(small) * float(2 * w - small)
    rest = small + large - w
    if rest <= 0:
        return whole
    return whole - float(rest) * float(rest)


def pair_probability(u: int, v: int, a: int, b: int) -> float:
    """Compute P(lower ≤ T_B - T_A ≤ upper) of a pair.

    Parameters
    ----------
    u, v : int
        Depths: lower - min_B + max_A and max_B - upper - min_A, in µs.
    a, b : int
        Lengths of the two intervals, in µs, not negative.
    """
    small = min(a, b)
    large = max(a, b)
    if large == 0:
        return 1.0 if u <= 0 and v <= 0 else 0.0
    if small == 0:
        lost = float(min(max(u, 0), large)) + float(min(max(v, 0), large))
        return max(0.0, 1.0 - lost / float(large))
    whole = 2.0 * float(small) * float(large)
    lost = measure_cut(u, small, large, whole)
    lost += measure_cut(v, small, large, whole)
    return max(0.0, 1.0 - lost / whole)
