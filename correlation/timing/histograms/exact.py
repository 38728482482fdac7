"""The probability of a window between two histograms, over the rationals.

Problem. For independent T_A, T_B distributed as two histograms, compute
P(lower ≤ T_B - T_A ≤ upper) as a fraction, and decide whether it is ≥ ct.

Definitions. The density of a histogram is a step function: it changes by α_k at edge t_k. The
*whole* is the least common multiple of the bucket lengths times the power of ten of the masses; all
α_k are integers over the whole. A point is one edge with all of the mass.

Algorithm. Merge the edges of both (PTJ Definition 3: the adjusted histograms share the intervals
I_1 … I_l, with masses x_k and y_k). Inside an interval both are uniform, so (PTJ Theorem 1)

    P(X > Y) = Σ_k x_k (Σ_{j<k} y_j + y_k / 2).

Both ends of the window are closed, hence
P(lower ≤ T_B - T_A ≤ upper) = 1 - P(T_A + lower > T_B) - P(T_B > T_A + upper). It has the
denominator 2 whole_A whole_B and is compared with ct without division (docs/proofs.md,
P-HISTOGRAM).

Reference. Mok, Woo and Lee 2006, Definitions 2 and 3, Lemma 1, Theorem 1.

Cost. O((n + m) log (n + m)) integer operations for n and m buckets.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from correlation.resources.histogram import WHOLE_MASS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from correlation.resources.histogram import Histogram
    from correlation.timing.intervals.window import TimingWindow, WindowScalars


class Steps(NamedTuple):
    """A distribution in integers.

    Attributes
    ----------
    edges : tuple of int
        Times at which the density changes, ascending, microseconds; one time for a point.
    changes : tuple of int
        Changes of the density, in units of 1 / whole per microsecond; (1,) for a point.
    whole : int
        Probability 1 in units of 1 / whole.
    """

    edges: tuple[int, ...]
    changes: tuple[int, ...]
    whole: int

    @property
    def is_point(self) -> bool:
        """Whether all of the mass is at one time."""
        return len(self.edges) == 1


def exact_probability(a: Histogram, b: Histogram, window: TimingWindow) -> Fraction:
    """Compute the satisfaction probability of a pair.

    Parameters
    ----------
    a, b : Histogram
        The two timestamps.
    window : TimingWindow
        The condition; its threshold, floor and ceiling are ignored.

    Returns
    -------
    Fraction
        P(lower ≤ T_B - T_A ≤ upper).
    """
    steps_a, steps_b = to_steps(a), to_steps(b)
    lost = _count_lost(steps_a, steps_b, window.lower_us, window.upper_us)
    return 1 - Fraction(lost, 2 * steps_a.whole * steps_b.whole)


def is_satisfied(a: Histogram, b: Histogram, window: TimingWindow) -> bool:
    """Decide whether a pair satisfies a window.

    Parameters
    ----------
    a, b : Histogram
        The two timestamps.
    window : TimingWindow
        The condition, including its floor and ceiling.
    """
    s = b.latest_us - a.latest_us
    if window.floor_us is not None and s < window.floor_us:
        return False
    if window.ceiling_us is not None and s > window.ceiling_us:
        return False
    return decide_steps(to_steps(a), to_steps(b), 0, window.scalars())


def to_steps(histogram: Histogram) -> Steps:
    """Return the steps of a histogram's density."""
    return scale_steps(histogram.edges_us, histogram.masses)


def scale_steps(edges: Sequence[int], masses: Sequence[int]) -> Steps:
    """Return the steps of the density of buckets.

    Parameters
    ----------
    edges : sequence of n + 1 int
        Ascending edges; two equal edges for a point (n = 1).
    masses : sequence of n int
        Masses in units of 10**-10.
    """
    if edges[0] == edges[-1]:
        return Steps((edges[0],), (1,), 1)
    lengths = [high - low for low, high in pairwise(edges)]
    unit = math.lcm(*lengths)
    densities = [mass * (unit // length) for mass, length in zip(masses, lengths, strict=True)]
    whole = WHOLE_MASS * unit
    shared = math.gcd(whole, *densities)
    densities = [0, *(density // shared for density in densities), 0]
    changes = tuple(high - low for low, high in pairwise(densities))
    return Steps(tuple(edges), changes, whole // shared)


def decide_steps(a: Steps, b: Steps, s: int, window: WindowScalars) -> bool:
    """Return whether P(lower ≤ s + T_B - T_A ≤ upper) ≥ ct; the caller checks floor and ceiling."""
    # An infinite end is beyond the difference of any two times: nothing is lost there.
    lost = count_greater(a, b, window.lower - s) + count_greater(b, a, s - window.upper)
    return window.whole * lost <= window.slack_part * 2 * a.whole * b.whole


def _count_lost(a: Steps, b: Steps, lower: int | None, upper: int | None) -> int:
    """Compute P(T_B - T_A outside [lower, upper]), in units of 1 / (2 a.whole b.whole)."""
    below = 0 if lower is None else count_greater(a, b, lower)
    above = 0 if upper is None else count_greater(b, a, -upper)
    return below + above


def count_greater(x: Steps, y: Steps, c: int) -> int:
    """Compute P(X + c > Y), in units of 1 / (2 x.whole y.whole)."""
    if x.is_point and y.is_point:
        return 2 * (x.edges[0] + c > y.edges[0])
    if x.is_point:
        return 2 * _count_below(y, x.edges[0] + c)
    if y.is_point:
        return 2 * (x.whole - _count_below(x, y.edges[0] - c))
    change_x = {edge + c: change for edge, change in zip(x.edges, x.changes, strict=True)}
    change_y = dict(zip(y.edges, y.changes, strict=True))
    total = below = density_x = density_y = 0
    for left, right in pairwise(sorted(change_x.keys() | change_y.keys())):
        density_x += change_x.get(left, 0)
        density_y += change_y.get(left, 0)
        mass = density_y * (right - left)
        total += density_x * (right - left) * (2 * below + mass)
        below += mass
    return total


def _count_below(x: Steps, t: int) -> int:
    """Compute P(X < t), in units of 1 / x.whole; X must not be a point."""
    return sum(
        change * (t - edge) for edge, change in zip(x.edges, x.changes, strict=True) if edge < t
    )
