"""Exact decision whether a satisfaction probability reaches the threshold.

Problem. For A and B uniform on intervals of lengths l_A and l_B, and s = max_B - max_A, decide
P(lower ≤ T_B - T_A ≤ upper) ≥ ct over the rationals (spec: every algorithm finds the same
satisfied pairs on every machine).

Definitions. u = lower - s + l_B and v = s - upper + l_A are the *depths* by which the window's
two ends cut into the support of T_B - T_A; m ≤ M are the two lengths. Twice the area of the
l_A x l_B rectangle below a diagonal at depth w is

    K(w) = 0                      w ≤ 0
           w²                     w ≤ m
           m (2w - m)             w ≤ M
           2mM - (m + M - w)²     w ≤ m + M
           2mM                    above,

so that P = 1 - (K(u) + K(v)) / 2mM (LL10 Theorem 1, integrated) and

    satisfied  ⟺  q (K(u) + K(v)) ≤ (q - p) 2mM      for ct = p / q.

Only the last branch of K is a difference of large numbers, and its value is at least half of its
first term (for short lengths, K(w) = w² - (w - m)² - (w - M)² has no rounding error). The float64
error is less than 2**-49 times the sum of both sides; inside this bound the integers themselves
are compared (docs/proofs.md, P-EXACT). If one length is zero, K(w) = min(w, M), out of M; if both
are zero, K(w) = 1 if w > 0, out of 1.

Reference. LL10 section 3; filtered predicates: Fortune and Van Wyk, "Efficient exact arithmetic
for computational geometry", 1993.

Cost. O(1): about ten float operations, and about fifty integer operations on a near tie.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numba import njit

from correlation.timing.intervals.integral import measure_cut

if TYPE_CHECKING:
    from correlation.timing.intervals.window import WindowScalars

# Rounding error of both sides relative to their sum: twice the bound of P-EXACT.
ROUNDING_BOUND = 2.0**-49
# Up to this length (33 s) every square is an integer that float64 holds exactly.
_PLAIN_LENGTH = 2**25
# Integers are split into digits of 24 bits, so that products of two digit pairs fit int64.
_DIGIT_BITS = 24
_DIGIT_MASK = 2**_DIGIT_BITS - 1

_measure_cut_kernel = njit(cache=True)(measure_cut)


@njit(cache=True)
def _decide_depths_kernel(u: int, v: int, a: int, b: int, window: WindowScalars) -> bool:
    """Return whether P ≥ ct at depths u and v; the caller checks floor and ceiling."""
    small = min(a, b)
    large = max(a, b)
    # Filter: float64, certain outside the rounding bound.
    if small == 0:
        if large == 0:
            return u <= 0 and v <= 0
        whole = float(large)
        lost = float(min(max(u, 0), large)) + float(min(max(v, 0), large))
    else:
        whole = 2.0 * float(small) * float(large)
        if large <= _PLAIN_LENGTH:
            lost = _square_cut_kernel(u, small, large) + _square_cut_kernel(v, small, large)
        else:
            lost = _measure_cut_kernel(u, small, large, whole)
            lost += _measure_cut_kernel(v, small, large, whole)
    allowed = window.slack * whole
    margin = allowed - lost
    doubt = ROUNDING_BOUND * (allowed + lost)
    if margin >= doubt:
        return True
    if margin < -doubt:
        return False
    decision: bool = _compare_exactly_kernel(u, v, small, large, window)
    return decision


@njit(cache=True)
def _square_cut_kernel(w: int, small: int, large: int) -> float:
    """Compute K(w) without branches; exact for 0 < small ≤ large ≤ 2**25 (squares < 2**53)."""
    depth = float(min(max(w, 0), small + large))
    over_small = max(depth - float(small), 0.0)
    over_large = max(depth - float(large), 0.0)
    return depth * depth - over_small * over_small - over_large * over_large


@njit(cache=True)
def _compare_exactly_kernel(u: int, v: int, small: int, large: int, window: WindowScalars) -> bool:
    """Return whether q (K(u) + K(v)) ≤ (q - p) 2mM, in integers; large > 0."""
    u0, u1, u2 = _split_cut_kernel(u, small, large)
    v0, v1, v2 = _split_cut_kernel(v, small, large)
    t0, t1, t2 = _split_cut_kernel(small + large, small, large)
    lost = _carry_digits_kernel(u0 + v0, u1 + v1, u2 + v2)
    whole = _carry_digits_kernel(t0, t1, t2)
    # The difference, digit by digit; the last carry has its sign.
    carry = 0
    rest = 0
    for i in range(4):
        carry += window.whole * lost[i] - window.slack_part * whole[i]
        rest |= carry & _DIGIT_MASK
        carry >>= _DIGIT_BITS
    return carry < 0 or (carry == 0 and rest == 0)


@njit(cache=True)
def _split_cut_kernel(w: int, small: int, large: int) -> tuple[int, int, int]:
    """Compute K(w) as k0 + k1 2**24 + k2 2**48, not carried: |k| < 2**51; large > 0."""
    if w <= 0:
        return 0, 0, 0
    if small == 0:
        columns = _multiply_kernel(min(w, large), 1)
    elif w <= small:
        columns = _multiply_kernel(w, w)
    elif w <= large:
        columns = _multiply_kernel(small, 2 * w - small)
    else:
        rest = max(small + large - w, 0)
        t0, t1, t2 = _multiply_kernel(small, 2 * large)
        r0, r1, r2 = _multiply_kernel(rest, rest)
        columns = (t0 - r0, t1 - r1, t2 - r2)
    return columns


@njit(cache=True)
def _multiply_kernel(x: int, y: int) -> tuple[int, int, int]:
    """Compute x y in columns of 24 bits, not carried; 0 ≤ x, y < 2**48."""
    x0 = x & _DIGIT_MASK
    x1 = x >> _DIGIT_BITS
    y0 = y & _DIGIT_MASK
    y1 = y >> _DIGIT_BITS
    return x0 * y0, x0 * y1 + x1 * y0, x1 * y1


@njit(cache=True)
def _carry_digits_kernel(k0: int, k1: int, k2: int) -> tuple[int, int, int, int]:
    """Return four digits of a non-negative sum, the lower three in [0, 2**24)."""
    k1 += k0 >> _DIGIT_BITS
    k2 += k1 >> _DIGIT_BITS
    return k0 & _DIGIT_MASK, k1 & _DIGIT_MASK, k2 & _DIGIT_MASK, k2 >> _DIGIT_BITS
