"""Quantiles of shapes, which decide most pairs without a probability.

Problem. For two shapes and s = max_B - max_A, decide P(lower ≤ T_B - T_A ≤ upper) ≥ ct from a few
quantiles of either shape, or find that they cannot decide.

Definitions. For a shape and a mass m, *below* is an offset x from the latest time with
P(T ≤ x) ≥ m, and *above* an offset x with P(T ≥ x) ≥ m. Two masses are used: *lost*, with
lost² > 1 - ct, and *kept*, with kept² ≥ ct.

Algorithm. T_A and T_B are independent, so the probabilities of a bound on T_A and a bound on T_B
multiply. If above_B - below_A > upper for the mass lost, the probability beyond the upper end
exceeds 1 - ct: violated. If below_B - above_A ≤ upper for the mass kept, the probability up to the
upper end is ≥ ct: satisfied, provided that the lower end does not cut. The lower end is mirrored
(docs/proofs.md, P-QUANTILES).

Cost. O(n) per shape of n buckets, once per search; O(1) per pair; 48 bytes per shape in use.
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

# Columns of `Quantiles`: whether the row is computed, and offsets from the latest time, in µs.
KNOWN, EARLIEST, BELOW_LOST, ABOVE_LOST, BELOW_KEPT, ABOVE_KEPT = range(6)
# The float64 error of an offset is less than 1, and truncation adds at most 1.
_MARGIN_US = 2


class Quantiles(NamedTuple):
    """The quantiles of the shapes of a search, computed on first use.

    Attributes
    ----------
    lost, kept : int
        The two masses, in units of 10**-10.
    bases, targets : ndarray of int64, shape (c, 6)
        Quantiles of the classes of either side, see the columns above.
    """

    lost: int
    kept: int
    bases: NDArray[np.int64]
    targets: NDArray[np.int64]


def make_quantiles(bases: int, targets: int, window: WindowScalars) -> Quantiles:
    """Build the arrays for the quantiles of all shapes.

    Parameters
    ----------
    bases, targets : int
        Number of classes of either side.
    window : WindowScalars
        The condition; only its threshold is used.
    """
    square = WHOLE_MASS * WHOLE_MASS
    # The min m with m² > 1 - ct, and with m² ≥ ct.
    lost = isqrt(square * window.slack_part // window.whole) + 1
    kept_square = -(-square * (window.whole - window.slack_part) // window.whole)
    kept = isqrt(kept_square - 1) + 1
    # np.zeros: the operating system allocates only the pages in use.
    room = (np.zeros((classes, ABOVE_KEPT + 1), np.int64) for classes in (bases, targets))
    return Quantiles(lost, kept, *room)


@njit(cache=True)
def _know_quantiles_kernel(
    found: NDArray[np.int64], shapes: Shapes, i: int, lost: int, kept: int
) -> None:
    """Compute the quantiles of a shape unless they are known."""
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
    """Return SATISFIED, VIOLATED, or DOUBTFUL if quantiles cannot decide.

    The quantiles of both shapes must be known; the caller checks floor and ceiling.
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
