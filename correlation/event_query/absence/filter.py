"""Decisions and probabilities of absence in float64, with a bound of the error.

Problem. As in absence.exact, for many positive events.

Algorithm. p_i = P(T_i - T_s in W_i), or with fixed ends that of the union of the boxes. The bounds
1 - Σ p_i ≤ P ≤ min (1 - p_i) (Fréchet) are computed first; 1 - p_i is the trapezoid rule between
the breaks. Then the integral, from the earliest T_s on: between two breaks the integrand is a
product of d linear functions with values in [0, 1], for which the Gauss rule of n ≥ (d + 1) / 2
nodes is exact. Shorter rules suffice where the factors change little: with q = c + b x on a panel
(|x| ≤ 1), A = (16 + 1/16) / 2 and M = Π (c + |b| A), the rule of n nodes has an error of at most
2.7 M 256**-n. A panel that needs more than 32 nodes is halved. The integral ends when the remaining
mass of T_s cannot change the decision.

Theorem (docs/proofs.md, P-ABSENCE-BOUNDS, P-ABSENCE-FILTER). For m candidates, w intervals and N
terms the error is at most (m (11 w + 20) + N + 64) 2**-53. Twice this is the *doubt*: a decision
within it is left open.

Reference. Gauss quadrature on Bernstein ellipses: Trefethen, Approximation Theory and Approximation
Practice, theorem 19.3. Fréchet 1935.

Cost without fixed ends (with them: `factors`). O(Σ_i w b_i) for the bounds; O(K m (w log b + n))
for K breaks, n ≤ 32 and typically 8 to 12. Memory O(K + m) for one positive event. Measured on one
core, bounds and integral: 3 µs for 2 candidates, 0.5 ms for 110, 37 ms for 1,100.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numba import njit
from numpy.typing import NDArray

from correlation.event_query.absence.factors import (
    FIRST,
    LAST,
    PLAIN,
    PackedCases,
    _find_breaks_kernel,
    _find_cut_breaks_kernel,
    _measure_cut_kernel,
    _measure_mass_kernel,
    _measure_miss_kernel,
    _miss_exactly_kernel,
    pack_cases,
)
from correlation.event_query.absence.gathering import Cases
from correlation.event_query.absence.gauss import MAX_NODES, Rules, gauss_rules

STOPPED, ABSENT, DOUBTFUL = range(3)
# Twice the unit of the proved bound, 2**-53.
_UNIT = 2.0**-52
_MORE = 64
# Half the sum of the axes of the Bernstein ellipse with ρ = 16.
_AXIS = (16.0 + 1.0 / 16.0) / 2.0
# ρ² is the gain of one node; the error is below 4 M 256**-n.
_GAIN = 256.0
_TRUNCATED = 2.0**-60
# A factor that changes by less on a piece is taken as constant: the change may be rounding.
_FLAT = 2.0**-50
# Up to this number of nodes it does not pay to look for a shorter rule.
_FEW_NODES = 4


def filter_cases(cases: Cases, threshold: Fraction) -> NDArray[np.uint8]:
    """Decide P ≥ threshold where float64 is certain.

    Parameters
    ----------
    cases : Cases
        k positive events and their candidates.
    threshold : Fraction
        Minimum probability, above 0 and at most 1.

    Returns
    -------
    ndarray of uint8, shape (k,)
        STOPPED (P is below), ABSENT (P reaches it) or DOUBTFUL.
    """
    verdicts = np.empty(len(cases.starts) - 1, np.uint8)
    _filter_cases_kernel(pack_cases(cases), float(threshold), gauss_rules(), verdicts)
    return verdicts


def measure_cases(
    cases: Cases, rows: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute P of some positive events, for reporting.

    Parameters
    ----------
    cases : Cases
        The positive events and their candidates.
    rows : ndarray of int64, shape (n,)
        Positive events.

    Returns
    -------
    (ndarray of float64, ndarray of float64), shapes (n,)
        P in [0, 1], and a bound of its error: below 2**-44 for one interval, 2**-36 for 1,000.
    """
    values, errors = np.empty(len(rows), np.float64), np.empty(len(rows), np.float64)
    _measure_cases_kernel(pack_cases(cases), rows, gauss_rules(), values, errors)
    return values, errors


@njit(cache=True)
def _filter_cases_kernel(
    packed: PackedCases, threshold: float, rules: Rules, verdicts: NDArray[np.uint8]
) -> None:
    for i in range(len(verdicts)):
        verdicts[i] = _filter_case_kernel(packed, i, threshold, rules)


@njit(cache=True)
def _measure_cases_kernel(
    packed: PackedCases,
    rows: NDArray[np.int64],
    rules: Rules,
    values: NDArray[np.float64],
    errors: NDArray[np.float64],
) -> None:
    for k in range(len(rows)):
        i = rows[k]
        if packed.positives[i, FIRST] == packed.positives[i, LAST]:
            value, doubt = _multiply_case_kernel(packed, i)
        else:
            # Comparisons with NaN are false: the integral does not end early.
            value, doubt, _ = _integrate_case_kernel(packed, i, np.nan, rules)
        values[k] = min(value, 1.0)
        errors[k] = doubt


@njit(cache=True)
def _bound_error_kernel(packed: PackedCases, i: int, terms: int) -> float:
    """Return twice the proved bound of the error of a sum of `terms` terms."""
    count = packed.starts[i + 1] - packed.starts[i]
    return float(count * (11 * packed.ends.shape[1] + 20) + terms + _MORE) * _UNIT


@njit(cache=True)
def _judge_kernel(low: float, high: float, doubt: float, threshold: float) -> int:
    """Return the verdict on P in [low, high] with errors of at most `doubt`."""
    if low - doubt >= threshold:
        return ABSENT
    if high + doubt < threshold:
        return STOPPED
    return DOUBTFUL


@njit(cache=True)
def _filter_case_kernel(packed: PackedCases, i: int, threshold: float, rules: Rules) -> int:
    first = packed.starts[i]
    last = packed.starts[i + 1]
    if first == last:
        return ABSENT
    if packed.positives[i, FIRST] == packed.positives[i, LAST]:
        value, doubt = _multiply_case_kernel(packed, i)
        return _judge_kernel(value, value, doubt, threshold)
    cut = packed.ends.shape[2] > PLAIN
    lowest = 1.0
    lost = 0.0
    terms = 0
    for c in range(first, last):
        if cut:
            missed, pieces = _expect_cut_kernel(packed, i, c)
        else:
            missed, pieces = _expect_miss_kernel(packed, i, c)
        terms += pieces + 1
        lowest = min(lowest, missed)
        lost += 1.0 - missed
    verdict = _judge_kernel(1.0 - lost, lowest, _bound_error_kernel(packed, i, terms), threshold)
    if verdict == DOUBTFUL and last - first > 1:
        _, _, verdict = _integrate_case_kernel(packed, i, threshold, rules)
    return verdict


@njit(cache=True)
def _multiply_case_kernel(packed: PackedCases, i: int) -> tuple[float, float]:
    """Compute P of an exact T_s, and twice the bound of its error."""
    candidates, steps, ends = packed.candidates, packed.steps, packed.ends
    time = packed.positives[i, LAST]
    value = 1.0
    for c in range(packed.starts[i], packed.starts[i + 1]):
        value *= _measure_miss_kernel(candidates, c, steps, ends, time)
    return value, _bound_error_kernel(packed, i, 0)


@njit(cache=True)
def _expect_miss_kernel(packed: PackedCases, i: int, c: int) -> tuple[float, int]:
    """Compute 1 - p of a candidate, and the number of pieces."""
    breaks = _find_breaks_kernel(packed, i, c, c + 1)
    positives, candidates, _, steps, ends = packed
    exact = candidates[c, FIRST] == candidates[c, LAST]
    missed = 0.0
    before = 0.0 if exact else _measure_miss_kernel(candidates, c, steps, ends, breaks[0])
    for k in range(len(breaks) - 1):
        left = breaks[k]
        right = breaks[k + 1]
        mass = _measure_mass_kernel(positives, i, steps, left, right)
        if exact:
            missed += mass * _miss_exactly_kernel(candidates, c, ends, left, right)
        else:
            after = _measure_miss_kernel(candidates, c, steps, ends, right)
            missed += mass * (0.5 * (before + after))
            before = after
    return missed, len(breaks) - 1


@njit(cache=True)
def _expect_cut_kernel(packed: PackedCases, i: int, c: int) -> tuple[float, int]:
    """Compute 1 - p of a candidate with fixed ends, and the number of pieces.

    q may jump at a break.
    """
    breaks = _find_cut_breaks_kernel(packed, i, c, c + 1)
    positives, candidates, _, steps, ends = packed
    exact = candidates[c, FIRST] == candidates[c, LAST]
    missed = 0.0
    for k in range(len(breaks) - 1):
        piece = (breaks[k], breaks[k + 1])
        mass = _measure_mass_kernel(positives, i, steps, piece[0], piece[1])
        if exact:
            missed += mass * _miss_exactly_kernel(candidates, c, ends, piece[0], piece[1])
        else:
            begin = _measure_cut_kernel(candidates, c, steps, ends, piece, piece[0])
            end = _measure_cut_kernel(candidates, c, steps, ends, piece, piece[1])
            missed += mass * (0.5 * (begin + end))
    return missed, len(breaks) - 1


@njit(cache=True)
def _integrate_case_kernel(
    packed: PackedCases, i: int, threshold: float, rules: Rules
) -> tuple[float, float, int]:
    """Compute P, twice the bound of its error, and the verdict; a decision ends the integral."""
    positives, candidates, starts, steps, ends = packed
    first = starts[i]
    count = starts[i + 1] - first
    cut = ends.shape[2] > PLAIN
    if cut:
        breaks = _find_cut_breaks_kernel(packed, i, first, first + count)
    else:
        breaks = _find_breaks_kernel(packed, i, first, first + count)
    before = np.empty(count, np.float64)
    for k in range(count):
        before[k] = _measure_miss_kernel(candidates, first + k, steps, ends, breaks[0])
    begins = np.empty(count, np.float64)
    afters = np.empty(count, np.float64)
    total, rest, doubt = 0.0, 1.0, 0.0
    terms = 0
    verdict = DOUBTFUL
    for p in range(len(breaks) - 1):
        left = breaks[p]
        right = breaks[p + 1]
        # Factors that change on the piece, the product of the others, and a bound of all.
        constant = 1.0
        highest = 1.0
        degree = 0
        for k in range(count):
            if candidates[first + k, FIRST] == candidates[first + k, LAST]:
                constant *= _miss_exactly_kernel(candidates, first + k, ends, left, right)
                continue
            if cut:
                c = first + k
                before[k] = _measure_cut_kernel(candidates, c, steps, ends, (left, right), left)
                after = _measure_cut_kernel(candidates, c, steps, ends, (left, right), right)
            else:
                after = _measure_miss_kernel(candidates, first + k, steps, ends, right)
            if abs(after - before[k]) <= _FLAT:
                constant *= after
            else:
                begins[degree] = before[k]
                afters[degree] = after
                degree += 1
                highest *= max(before[k], after)
            before[k] = after
        mass = _measure_mass_kernel(positives, i, steps, left, right)
        rest -= mass
        terms += 1
        if mass * constant * highest > _TRUNCATED * mass:
            mean, panels = _average_kernel(begins[:degree], afters[:degree], rules)
            total += mass * (constant * mean)
            terms += panels
        doubt = _bound_error_kernel(packed, i, terms)
        verdict = _judge_kernel(total, total + max(rest, 0.0), doubt, threshold)
        if verdict != DOUBTFUL:
            break
    return total, doubt, verdict


@njit(cache=True)
def _average_kernel(
    begins: NDArray[np.float64], ends: NDArray[np.float64], rules: Rules
) -> tuple[float, int]:
    """Compute the mean of Π (begin (1 - λ) + end λ) over λ in [0, 1], and the number of panels."""
    mean = 0.0
    panels = 0
    width = 1.0
    place = 0
    up = np.empty(MAX_NODES, np.float64)
    down = np.empty(MAX_NODES, np.float64)
    products = np.empty(MAX_NODES, np.float64)
    while width <= 1.0:
        nodes = _count_nodes_kernel(begins, ends, place * width, (place + 1) * width)
        if nodes > MAX_NODES:
            width *= 0.5
            place *= 2
            continue
        start = nodes * (nodes - 1) // 2
        for k in range(nodes):
            up[k] = (place + rules.nodes[start + k]) * width
            down[k] = 1.0 - up[k]
            products[k] = rules.weights[start + k] * width
        # The inner loop has no dependencies between its steps.
        for j in range(len(begins)):
            begin = begins[j]
            end = ends[j]
            for k in range(nodes):
                products[k] *= begin * down[k] + end * up[k]
        part = 0.0
        for k in range(nodes):
            part += products[k]
        mean += part
        panels += 1
        place += 1
        # The next panel, as wide as its place permits; after the last one, width is 2.
        while place % 2 == 0 or width == 1.0:
            place //= 2
            width *= 2.0
            if width > 1.0:
                break
    return mean, panels


@njit(cache=True)
def _count_nodes_kernel(
    begins: NDArray[np.float64], ends: NDArray[np.float64], left: float, right: float
) -> int:
    """Return a number of nodes with an error below `_TRUNCATED`; above `MAX_NODES` if too many."""
    degree = len(begins)
    exact = degree // 2 + 1
    if exact <= _FEW_NODES:
        return exact
    middle = 0.5 * (left + right)
    half = 0.5 * (right - left)
    largest = 1.0
    for j in range(degree):
        slope = ends[j] - begins[j]
        largest *= begins[j] + slope * middle + abs(slope) * half * _AXIS
    nodes = 1
    allowed = 0.25 * _TRUNCATED * _GAIN
    while nodes <= MAX_NODES and nodes < exact and largest > allowed:
        nodes += 1
        allowed *= _GAIN
    return nodes
