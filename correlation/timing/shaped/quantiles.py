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

Cost. O(n) a shape of n buckets, once for each threshold; O(1) a pair; 40 bytes a shape.
"""

from __future__ import annotations

from math import isqrt
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from correlation.histogram import WHOLE_MASS
from correlation.timing.histogram_filter import DOUBTFUL, SATISFIED, VIOLATED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from correlation.timing.shapes import Shapes
    from correlation.timing.window import WindowScalars

# Columns: offsets from the latest time, in µs.
EARLIEST, BELOW_LOST, ABOVE_LOST, BELOW_KEPT, ABOVE_KEPT = range(5)
# Of no shape.
NO_QUANTILES: NDArray[np.int64] = np.zeros((0, 5), np.int64)
# Float64 is wrong by less than 1 in an offset, and rounding by at most 1.
_MARGIN_US = 2


def find_quantiles(shapes: Shapes, window: WindowScalars) -> NDArray[np.int64]:
    """Find the quantiles of shapes.

    Parameters
    ----------
    shapes : Shapes
        c of them.
    window : WindowScalars
        Of it the threshold.

    Returns
    -------
    ndarray of int64, shape (c, 5)
        See the columns above.
    """
    square = WHOLE_MASS * WHOLE_MASS
    lost = isqrt(square * window.slack_part // window.whole) + 1
    # The least whole number that is not below what a square root of it must reach.
    kept = isqrt(-(-square * (window.whole - window.slack_part) // window.whole) - 1) + 1
    found = np.empty((len(shapes.starts) - 1, NO_QUANTILES.shape[1]), np.int64)
    _find_quantiles_kernel(shapes.starts, shapes.edges, shapes.masses, lost, kept, found)
    return found


@njit(cache=True)
def _find_quantiles_kernel(
    starts: NDArray[np.int64],
    edges: NDArray[np.int64],
    masses: NDArray[np.int64],
    lost: int,
    kept: int,
    found: NDArray[np.int64],
) -> None:
    for i in range(len(found)):
        first = starts[i]
        last = starts[i + 1]
        found[i, EARLIEST] = edges[first + i]
        found[i, BELOW_LOST] = _find_below_kernel(edges, masses, first, i, lost)
        found[i, ABOVE_LOST] = _find_above_kernel(edges, masses, last, i, lost)
        found[i, BELOW_KEPT] = _find_below_kernel(edges, masses, first, i, kept)
        found[i, ABOVE_KEPT] = _find_above_kernel(edges, masses, last, i, kept)


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
    """SATISFIED, VIOLATED, or DOUBTFUL where quantiles cannot tell; floor and ceiling apart."""
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
