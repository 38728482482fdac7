"""The probability that no candidate stops a positive event, over the rationals.

Problem. For a positive event at T_s and independent candidates at T_1 … T_m with windows W_i,
compute P = E over T_s of Π_i q_i(T_s) with q_i(t) = 1 - P(T_i - t in W_i), and decide P ≥ ct.

Definitions. Times are counted from the earliest T_s, in a unit that divides all of them. The
*whole* of an instant is an integer of which all its densities are multiples. For a continuous T_i
with density changes α at edges e, whole_i P(T_i ≤ y) = Σ α max(y - e, 0). So N_i = whole_i q_i is
piecewise linear with integer coefficients, and its breakpoints are integers: edges minus ends. With
fixed ends, whole_i P(T_i - t in W_i) is a sum over the disjoint parts of the boxes' intervals of
T_i, whose ends are fixed or move with t; N_i may also change where a fixed end is one of T_s.

Algorithm (docs/proofs.md, P-ABSENCE). A sweep over the breakpoints keeps the coefficients of
Π_i N_i in integers. When N_i changes, the product is divided by its old value, without remainder,
and multiplied by the new value. Each piece is integrated by its antiderivative; all terms have the
denominator whole_s lcm(1 … m + 1) Π_i whole_i. An exact T_s needs no integral.

Reference. Spec section 5; the steps of a density are those of timing.histograms.exact.

Cost. O(m) products of integers of O(m (bits of whole_i)) bits per change of a factor. Measured on
one core for windows with one finite end: 1 ms for 30 intervals of 1 s, 0.1 s for 300, 0.1 s for 30
histograms of 100 buckets; a second finite end doubles it. The column interface computes it for
doubtful cases only (P-ABSENCE-FILTER). A factor of w boxes and b edges has O(w (w + b)) breaks,
each of which takes O(w log w + w b).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from correlation.event_query.absence.windows import Box, Interval, Window, merge_intervals
from correlation.resources.histogram import WHOLE_MASS, Histogram


class Candidate(NamedTuple):
    """A negated event that may stop the positive event.

    Attributes
    ----------
    time : Histogram
        Its instant.
    window : tuple of Interval and Box
        Window of T_r - T_s.
    """

    time: Histogram
    window: Window


class _Steps(NamedTuple):
    """A continuous distribution: changes of its density at edges, in units of 1 / whole."""

    changes: list[tuple[int, int]]
    whole: int


class _Plane(NamedTuple):
    """A box of continuous T_r and T_s: all of its six ends are finite."""

    lo: int
    hi: int
    first: int
    last: int
    begin: int
    end: int


class _End(NamedTuple):
    """An end `at` + `slope` t of an interval of T_r; `slope` is 0 or 1."""

    at: int
    slope: int

    def twice(self, sum_us: int) -> int:
        """Return twice the value at half of a sum, the middle of a piece."""
        return 2 * self.at + self.slope * sum_us


class _Factor(NamedTuple):
    """N(t) = a + b t up to its first change; later changes of a and b by time."""

    a: int
    b: int
    changes: dict[int, tuple[int, int]]
    whole: int


def absence_probability(positive: Histogram, candidates: Iterable[Candidate]) -> Fraction:
    """Compute the probability that no candidate stops a positive event.

    Parameters
    ----------
    positive : Histogram
        T_s.
    candidates : iterable of Candidate
        The candidates of all negated aliases; their instants are independent of each other and of
        T_s.

    Returns
    -------
    Fraction
        P.
    """
    return Fraction(*_weigh(positive, list(candidates)))


def _weigh(positive: Histogram, candidates: Sequence[Candidate]) -> tuple[int, int]:
    """Return P as numerator and denominator, not in lowest terms."""
    if positive.length_us == 0:
        return _weigh_at(positive.earliest_us, candidates)
    origin, unit = positive.earliest_us, _common_unit(positive, candidates)
    factors = []
    for it in candidates:
        factor = _make_factor(it, origin, unit, positive.length_us // unit)
        if factor.changes or factor.b or factor.a != factor.whole:
            factors.append(factor)
    return _sweep(_make_steps(positive, origin, unit), factors)


def _weigh_at(time_us: int, candidates: Iterable[Candidate]) -> tuple[int, int]:
    """Return P as numerator and denominator if T_s is exact."""
    part = whole = 1
    for it in candidates:
        window = _plain(it.window, lambda box: box.at_positive(time_us))
        if it.time.length_us == 0:
            if any(interval.holds(it.time.earliest_us - time_us) for interval in window):
                return 0, 1
            continue
        steps = _make_steps(it.time, time_us, 1)
        missed = steps.whole
        for lo, hi in merge_intervals(window):
            missed -= steps.whole if hi is None else _count_below(steps, hi)
            missed += 0 if lo is None else _count_below(steps, lo)
        part, whole = part * missed, whole * steps.whole
    return part, whole


def _common_unit(positive: Histogram, candidates: Iterable[Candidate]) -> int:
    """Return a divisor of all differences of edges and of all ends."""
    origin = positive.earliest_us
    unit = math.gcd(*(edge - origin for edge in positive.edges_us))
    for it in candidates:
        unit = math.gcd(unit, *(edge - origin for edge in it.time.edges_us))
        for part in it.window:
            difference, *fixed = part if isinstance(part, Box) else (part,)
            unit = math.gcd(unit, *(end for end in difference[:2] if end is not None))
            unit = math.gcd(
                unit, *(end - origin for ends in fixed for end in ends[:2] if end is not None)
            )
    return unit


def _plain(window: Window, resolve: Callable[[Box], tuple[Interval, ...]]) -> tuple[Interval, ...]:
    """Return a window whose boxes are resolved to intervals."""
    return tuple(
        interval for it in window for interval in (resolve(it) if isinstance(it, Box) else (it,))
    )


def _make_steps(time: Histogram, origin: int, unit: int) -> _Steps:
    edges = [(edge - origin) // unit for edge in time.edges_us]
    lengths = [high - low for low, high in pairwise(edges)]
    common = math.lcm(*lengths)
    densities = [mass * (common // by) for mass, by in zip(time.masses, lengths, strict=True)]
    whole = WHOLE_MASS * common
    shared = math.gcd(whole, *densities)
    levels = [0, *(it // shared for it in densities), 0]
    changes = [high - low for low, high in pairwise(levels)]
    return _Steps(list(zip(edges, changes, strict=True)), whole // shared)


def _count_below(steps: _Steps, t: int) -> int:
    """Compute P(T ≤ t) in units of 1 / whole."""
    return sum(change * (t - edge) for edge, change in steps.changes if edge < t)


def _make_factor(candidate: Candidate, origin: int, unit: int, length: int) -> _Factor:
    """Return N of a candidate for 0 < t < length."""
    time, window = candidate
    if time.length_us and any(isinstance(it, Box) for it in window):
        return _make_cut_factor(candidate, origin, unit, length)
    # Changes of a and of b of whole P(T ≤ y), as a function of y, by edge.
    if time.length_us == 0:
        point = (time.earliest_us - origin) // unit
        whole, jumps = 1, [(point, 1, 0)]
    else:
        steps = _make_steps(time, origin, unit)
        whole, jumps = steps.whole, [(edge, 0, by) for edge, by in steps.changes]
    start = [whole, 0]
    changes: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    plain = _plain(window, lambda box: box.at_negated(time.earliest_us))
    for lo, hi in merge_intervals(plain):
        if hi is None:
            start[0] -= whole
        for end, sign in ((lo, 1), (hi, -1)):
            if end is None:
                continue
            for edge, jump, slope in jumps:
                at = edge - end // unit
                if at < length:
                    change = changes[at] if at > 0 else start
                    change[0] += sign * (jump - slope * at)
                    change[1] += sign * slope
    kept = {at: (a, b) for at, (a, b) in changes.items() if a or b}
    return _Factor(start[0], start[1], kept, whole)


def _make_cut_factor(candidate: Candidate, origin: int, unit: int, length: int) -> _Factor:
    """Return N of a continuous candidate with boxes for 0 < t < length."""
    steps = _make_steps(candidate.time, origin, unit)
    edges = [edge for edge, _ in steps.changes]
    planes = [
        plane
        for it in candidate.window
        for plane in _planes(it, origin, unit, (edges[0], edges[-1], length))
    ]
    breaks = sorted({0, length, *(it for it in _breaks(planes, edges) if 0 < it < length)})
    # Coefficients of N on each piece.
    lines = [_line(planes, steps, *piece) for piece in pairwise(breaks)]
    changes = {
        at: (after[0] - before[0], after[1] - before[1])
        for at, (before, after) in zip(breaks[1:], pairwise(lines), strict=False)
        if before != after
    }
    return _Factor(*lines[0], changes, steps.whole)


def _planes(
    part: Interval | Box, origin: int, unit: int, bounds: tuple[int, int, int]
) -> Iterator[_Plane]:
    """Yield a part of a window with ends in units, cut to the times of T_r and T_s."""
    first, last, length = bounds
    box = part if isinstance(part, Box) else Box(part)
    lows = (first - length, first, 0)
    highs = (last, last, length)
    ends = []
    for interval, zero, low, high in zip(box, (0, origin, origin), lows, highs, strict=True):
        lo, hi = interval[:2]
        ends.append(low if lo is None else max((lo - zero) // unit, low))
        ends.append(high if hi is None else min((hi - zero) // unit, high))
    plane = _Plane(*ends)
    if plane.lo < plane.hi and plane.first < plane.last and plane.begin < plane.end:
        yield plane


def _breaks(planes: Sequence[_Plane], edges: Sequence[int]) -> Iterator[int]:
    """Yield the times of T_s at which the coefficients of N may change."""
    points = {*edges, *(end for it in planes for end in (it.first, it.last))}
    for it in planes:
        yield from (it.begin, it.end)
        for point in points:
            if it.first <= point <= it.last:
                yield from (point - it.lo, point - it.hi)


def _line(planes: Sequence[_Plane], steps: _Steps, left: int, right: int) -> tuple[int, int]:
    """Return a and b of N = a + b t between two neighbouring breaks."""
    middle = left + right
    found = []
    for it in planes:
        if it.begin <= left and right <= it.end:
            low = max(_End(it.lo, 1), _End(it.first, 0), key=lambda end: end.twice(middle))
            high = min(_End(it.hi, 1), _End(it.last, 0), key=lambda end: end.twice(middle))
            if low.twice(middle) < high.twice(middle):
                found.append((low, high))
    a, b = steps.whole, 0
    reached: _End | None = None
    for low, high in sorted(found, key=lambda ends: ends[0].twice(middle)):
        if reached is not None and high.twice(middle) <= reached.twice(middle):
            continue
        begin = low if reached is None else max(low, reached, key=lambda end: end.twice(middle))
        for end, sign in ((begin, 1), (high, -1)):
            for edge, change in steps.changes:
                if 2 * edge < end.twice(middle):
                    a += sign * change * (end.at - edge)
                    b += sign * change * end.slope
        reached = high
    return a, b


def _sweep(positive: _Steps, factors: Sequence[_Factor]) -> tuple[int, int]:
    """Integrate the density of T_s times the product of the factors."""
    now = [(it.a, it.b) for it in factors]
    product = _Product(len(factors))
    for a, b in now:
        product.multiply(a, b)
    events: dict[int, list[int]] = defaultdict(list)
    for i, it in enumerate(factors):
        for at in it.changes:
            events[at].append(i)
    densities = dict(positive.changes)
    total = density = 0
    for left, right in pairwise(sorted(events.keys() | densities.keys())):
        density += densities.get(left, 0)
        for i in events.get(left, ()):
            by = factors[i].changes[left]
            product.divide(*now[i])
            now[i] = now[i][0] + by[0], now[i][1] + by[1]
            product.multiply(*now[i])
        if density:
            total += density * product.integrate(left, right)
    return total, positive.whole * product.scale * math.prod(it.whole for it in factors)


class _Product:
    """Product of up to `degree` linear polynomials a + b t with integer coefficients."""

    def __init__(self, degree: int) -> None:
        self.scale = math.lcm(*range(1, degree + 2))
        self._coefficients = [1]
        self._constant = 1
        self._zeros = 0

    def multiply(self, a: int, b: int) -> None:
        """Multiply by a + b t."""
        if b:
            old = self._coefficients
            new = [a * it for it in old]
            new.append(0)
            for k, it in enumerate(old, start=1):
                new[k] += b * it
            self._coefficients = new
        elif a:
            self._constant *= a
        else:
            self._zeros += 1

    def divide(self, a: int, b: int) -> None:
        """Divide by a + b t, which was a factor; the remainder is 0."""
        if b:
            old = self._coefficients
            new = [0] * (len(old) - 1)
            above = 0
            for k in range(len(new) - 1, -1, -1):
                above = (old[k + 1] - a * above) // b
                new[k] = above
            self._coefficients = new
        elif a:
            self._constant //= a
        else:
            self._zeros -= 1

    def integrate(self, left: int, right: int) -> int:
        """Compute the integral from left to right times `scale`."""
        if self._zeros:
            return 0
        upper = lower = 0
        for k in range(len(self._coefficients) - 1, -1, -1):
            term = self._coefficients[k] * (self.scale // (k + 1))
            upper = upper * right + term
            lower = lower * left + term
        return self._constant * (upper * right - lower * left)
