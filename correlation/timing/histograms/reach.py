"""How far apart satisfied pairs of two streams can be, whatever shapes their events carry.

Problem. The least and the greatest s = max_B - max_A of any satisfied pair: what may be forgotten
(PTJ Theorem 4's sliding window; LL10's keep values), and which segments may meet.

Definitions. U = max - T. The lower end alone asks P(s + U_A - U_B ≥ lower) ≥ ct: the greater U_A
and the less U_B are, in the usual stochastic order, the less s may be. The upper end is mirrored.
So only the *early* shapes of one stream (U great) and the *late* ones of the other (U small) count:

    intervals of lengths ρ to π   early: the interval of length π     late: that of length ρ
    declared templates            each of them                        each of them
    own histograms                U = π for certain                   U = 0 for certain

Both conditions are necessary in any window (docs/proofs.md, P-HISTOGRAM-KEEP). Own histograms leave
the support bounds lower - π_A and upper + π_B; a microsecond less would be wrong for some of them.

Reference. Mok, Woo and Lee 2006, Theorem 4; LL10 section 4.3.

Algorithm. The least s of all pairs of shapes is found by going through them in an order that is as
good as random. A pair that violates the lower end at one microsecond less than the least so far is
passed over, which takes one evaluation in float64; of the few others, the logarithm of their number
on average, the end is computed exactly.

Cost. O(n + m) for each pair of such shapes with n and m buckets, once; of more buckets than
`_MOST_STEPS` allows the bounds of own histograms are taken.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from correlation.resources.histogram import Histogram
from correlation.timing.histograms.filter import _judge_lost_kernel, _measure_greater_kernel
from correlation.timing.histograms.s_windows import one_sided_ends
from correlation.timing.histograms.shapes import pack_shapes
from correlation.timing.intervals.satisfaction import bounds
from correlation.timing.intervals.search import VIOLATED
from correlation.timing.intervals.window import UNBOUNDED_US

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from correlation.resources.streams import Stream
    from correlation.timing.histograms.shapes import Shapes
    from correlation.timing.intervals.window import TimingWindow, WindowScalars

# Buckets walked through: about a second, once for each window and threshold.
_MOST_STEPS = 40_000_000
# Ends computed exactly: half a second; more would take shapes made for it.
_MOST_EXACT = 1000
# A step through the pairs of shapes that leaves no two neighbours together.
_STRIDE = 2_654_435_761
_POINT = Histogram.from_interval(0, 0)


class _Extreme(NamedTuple):
    """U = offset + that of the shape."""

    shape: Histogram
    offset: int


class _Extremes(NamedTuple):
    """The shapes of a stream that count."""

    early: tuple[_Extreme, ...]
    late: tuple[_Extreme, ...]


def stream_reach(window: TimingWindow, a: Stream, b: Stream) -> tuple[int, int]:
    """Compute the least and the greatest s of any satisfied pair of two streams.

    Parameters
    ----------
    window : TimingWindow
        The condition.
    a, b : Stream
        Declare the lengths and shapes of their events.

    Returns
    -------
    least, greatest : int
        Every satisfied pair has least ≤ max_B - max_A ≤ greatest; both finite. If least exceeds
        greatest no pair can be satisfied.
    """
    if not (a.has_shapes or b.has_shapes):
        return bounds(
            window,
            a.min_uncertainty_us,
            a.max_uncertainty_us,
            b.min_uncertainty_us,
            b.max_uncertainty_us,
        )
    any_a, any_b = a.histograms, b.histograms
    (shapes_a, buckets_a), (shapes_b, buckets_b) = _count(a), _count(b)
    found = None
    if shapes_a * buckets_b + shapes_b * buckets_a <= _MOST_STEPS:
        found = _bound(
            window, _find_extremes(a, any_shape=any_a), _find_extremes(b, any_shape=any_b)
        )
    if found is None:
        any_shape = (_find_extremes(it, any_shape=True) for it in (a, b))
        found = _bound(window, *any_shape)
    if found is None:
        raise AssertionError("two shapes of either side take two exact ends")
    return found


def _count(stream: Stream) -> tuple[int, int]:
    """Count the shapes of a stream and their buckets."""
    sizes = [len(template.histogram.masses) for template in stream.templates]
    return len(sizes) + 1, sum(sizes) + 1


def _find_extremes(stream: Stream, *, any_shape: bool) -> _Extremes:
    if any_shape:
        return _Extremes((_Extreme(_POINT, stream.max_uncertainty_us),), (_Extreme(_POINT, 0),))
    templates = tuple(_Extreme(template.histogram, 0) for template in stream.templates)
    longest, shortest = (
        _Extreme(Histogram.from_interval(-length, 0), 0)
        for length in (stream.max_uncertainty_us, stream.min_uncertainty_us)
    )
    return _Extremes((longest, *templates), (shortest, *templates))


# Asked for again by plan, explanation and operator.
@lru_cache(maxsize=256)
def _bound(window: TimingWindow, a: _Extremes, b: _Extremes) -> tuple[int, int] | None:
    """Find both ends; None where too many have to be computed exactly."""
    scalars = window.scalars()
    least = _find_min(a.early, b.late, window)
    # Mirrored, the greatest s is the least one.
    most = _find_min(b.early, a.late, window.mirrored())
    if least is None or most is None:
        return None
    return max(least, scalars.floor), min(-most, scalars.ceiling)


def _find_min(
    early: tuple[_Extreme, ...], late: tuple[_Extreme, ...], window: TimingWindow
) -> int | None:
    """Find the least s at which any two shapes satisfy the lower end alone."""
    shapes = pack_shapes([it.shape for it in early]), pack_shapes([it.shape for it in late])
    offsets = np.array([it.offset for it in early], np.int64)
    count = len(early) * len(late)
    stride = _STRIDE % count or 1
    while math.gcd(stride, count) > 1:
        stride += 1
    least, place = UNBOUNDED_US, 0
    for _ in range(_MOST_EXACT):
        u, v = divmod(place * stride % count, len(late))
        end = one_sided_ends(early[u].shape, late[v].shape, window)[0]
        least = min(least, end - early[u].offset)
        place = int(_pass_over_kernel(*shapes, offsets, window.scalars(), stride, place + 1, least))
        if place == count:
            return least
    return None


@njit(cache=True)
def _pass_over_kernel(
    early: Shapes,
    late: Shapes,
    offsets: NDArray[np.int64],
    window: WindowScalars,
    stride: int,
    begin: int,
    least: int,
) -> int:
    """Pass over pairs of shapes whose end is at least `least`; return the first other one."""
    width = len(late.starts) - 1
    count = len(offsets) * width
    for k in range(begin, count):
        place = k * stride % count
        u = place // width
        v = place - u * width
        s = least - 1 + offsets[u]
        first, last = early.starts[u], early.starts[u + 1]
        edges_a = early.edges[first + u : last + u + 1]
        masses_a = early.masses[first:last]
        buckets = last - first
        first, last = late.starts[v], late.starts[v + 1]
        edges_b = late.edges[first + v : last + v + 1]
        masses_b = late.masses[first:last]
        lost = _measure_greater_kernel(edges_a, masses_a, edges_b, masses_b, window.lower - s)
        if _judge_lost_kernel(lost, buckets + last - first, window) != VIOLATED:
            return k
    return count
