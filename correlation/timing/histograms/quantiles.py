"""Quantiles of shapes, by which most pairs are decided without a probability.

Problem. Tell for two shapes and s = max_B - max_A whether P(lower ≤ T_B - T_A ≤ upper) ≥ ct, or
that some numbers about either shape cannot tell.

Definitions. Of a shape and a mass m: *below* is an offset x from the latest time with
P(T ≤ x) ≥ m, *above* one with P(T ≥ x) ≥ m. Two masses count: *lost*, whose square is greater than
1 - ct, and *kept*, whose square is at least ct.

Algorithm. T_A and T_B are independent: what each of them does with a mass, both do with the
product. If above_B - below_A > upper with the mass lost, more than 1 - ct lies beyond the upper
end: violated. If below_B - above_A ≤ upper with the mass kept, at least ct lies on this side of it:
satisfied, if the lower end does not cut at all. The lower end is mirrored (docs/proofs.md,
P-QUANTILES).

Cost. O(n) a shape of n buckets, once a search; O(1) a pair; 48 bytes a shape that is asked for.
"""

from __future__ import annotations

from math import isqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from correlation.resources.histogram import WHOLE_MASS
from correlation.timing.intervals.search import DOUBTFUL, SATISFIED, VIOLATED

if TYPE_CHECKING:
    from correlation.timing.histograms.shapes import Shapes
    from correlation.timing.intervals.window import WindowScalars

# Columns of `Quantiles`: whether the others are known, and offsets from the latest time, in µs.
KNOWN, EARLIEST, BELOW_LOST, ABOVE_LOST, BELOW_KEPT, ABOVE_KEPT = range(6)
# Float64 is wrong by less than 1 in an offset, and rounding by at most 1.
_MARGIN_US = 2


class Quantiles(NamedTuple):
    """The quantiles of the shapes of a search, found when they are asked for.

    Attributes
    ----------
    lost, kept : int
        The two masses, in units of 10**-10.
    bases, targets : ndarray of int64, shape (c, 6)
        Of the classes of either side, see the columns above.
    """

    lost: int
    kept: int
    bases: NDArray[np.int64]
    targets: NDArray[np.int64]


def make_quantiles(bases: int, targets: int, window: WindowScalars) -> Quantiles:
    """Make room for the quantiles of so many shapes.

    Parameters
    ----------
    bases, targets : int
        Number of classes of either side.
    window : WindowScalars
        Of it the threshold.
    """
    square = WHOLE_MASS * WHOLE_MASS
    # The least m with m² > 1 - ct, and with m² ≥ ct.
    lost = isqrt(square * window.slack_part // window.whole) + 1
    kept_square = -(-square * (window.whole - window.slack_part) // window.whole)
    kept = isqrt(kept_square - 1) + 1
    # Of zeros the system gives only what is touched.
    room = (np.zeros((classes, ABOVE_KEPT + 1), np.int64) for classes in (bases, targets))
    return Quantiles(lost, kept, *room)


@njit(cache=True)
def _know_quantiles_kernel(
    found: NDArray[np.int64], shapes: Shapes, i: int, lost: int, kept: int
) -> None:
    """Find the quantiles of a shape if they are not known."""
    if found[i, KNOWN]:
        return
    first = shapes.starts[i]
    last = shapes.starts[i + 1]
    found[i, KNOWN] = 1
    found[i, EARLIEST] = shapes.edges[first + i]
    found[i, BELOW_LOST] = _find_below_kernel(shapes.edges, shapes.masses, first, i, lost)
    found[i, ABOVE_LOST] = _find_above_kernel(shapes.edges, shapes.masses, last, i, lost)
    found[i, BELOW_KEPT] = _find_below_kernel(shapes.edges, shapes.masses, first, i, kept)
    found[i, ABOVE_KEPT] = _find_above_kernel(shapes.edges, shapes.masses, last, i, kept)


@njit(cache=True)
def _find_below_kernel(
    edges: NDArray[np.int64], masses: NDArray[np.int64], first: int, i: int, mass: int
) -> int:
    """Find an x with P(T ≤ x) ≥ mass of shape i, whose masses begin at `first`."""
    n = first
    while masses[n] < mass:
        mass -= masses[n]
        n += 1
    low = edges[n + i]
    high = edges[n + i + 1]
    inside = float(mass) / float(masses[n]) * float(high - low)
    below: int = min(high, low + int(inside) + _MARGIN_US)
    return below


@njit(cache=True)
def _find_above_kernel(
    edges: NDArray[np.int64], masses: NDArray[np.int64], last: int, i: int, mass: int
) -> int:
    """Find an x with P(T ≥ x) ≥ mass of shape i, whose masses end before `last`."""
    n = last - 1
    while masses[n] < mass:
        mass -= masses[n]
        n -= 1
    low = edges[n + i]
    high = edges[n + i + 1]
    inside = float(mass) / float(masses[n]) * float(high - low)
    above: int = max(low, high - int(inside) - _MARGIN_US)
    return above


@njit(cache=True)
def _decide_by_quantiles_kernel(
    of_a: NDArray[np.int64],
    a: int,
    of_b: NDArray[np.int64],
    b: int,
    s: int,
    window: WindowScalars,
) -> int:
    """SATISFIED, VIOLATED, or DOUBTFUL where quantiles cannot tell; floor and ceiling apart.

    Both shapes' quantiles are known.
    """
    if (
        s + of_b[b, ABOVE_LOST] - of_a[a, BELOW_LOST] > window.upper
        or s + of_b[b, BELOW_LOST] - of_a[a, ABOVE_LOST] < window.lower
    ):
        return VIOLATED
    if s + of_b[b, EARLIEST] >= window.lower:
        within = s + of_b[b, BELOW_KEPT] - of_a[a, ABOVE_KEPT] <= window.upper
        return SATISFIED if within else DOUBTFUL
    if s - of_a[a, EARLIEST] <= window.upper:
        within = s + of_b[b, ABOVE_KEPT] - of_a[a, BELOW_KEPT] >= window.lower
        return SATISFIED if within else DOUBTFUL
    return DOUBTFUL
