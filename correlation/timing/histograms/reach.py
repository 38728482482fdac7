"""Reach: min and max distance of satisfied pairs of two streams, for all shapes of their events.

Problem. Compute the min and max s = max_B - max_A of any satisfied pair. They determine the keep
values (PTJ Theorem 4's sliding window; LL10), and the segments that may meet.

Definitions. U = max - T. The lower end alone requires P(s + U_A - U_B ≥ lower) ≥ ct: if U_A grows
or U_B shrinks in the usual stochastic order, the min s falls. The upper end is mirrored. Therefore
only the *early* shapes of one stream (large U) and the *late* shapes of the other (small U) matter:

    stream of                     early shapes             late shapes
    intervals of lengths ρ to π   interval of length π     interval of length ρ
    declared templates            all templates            all templates
    histograms of single events   point with U = π         point with U = 0

Both conditions are necessary in any window (docs/proofs.md, P-HISTOGRAM-KEEP). For histograms of
single events the bounds are the support bounds lower - π_A and upper + π_B; bounds tighter by a
microsecond would be wrong for some of these histograms.

Reference. Mok, Woo and Lee 2006, Theorem 4; LL10 section 4.3.

Algorithm. The pairs of shapes are visited in a pseudo-random order to find the min s. A pair that
violates the lower end one microsecond below the current min is skipped, at the cost of one float64
evaluation. For the few others, on average the logarithm of the number of pairs, the end is computed
exactly.

Cost. O(n + m) for each pair of such shapes with n and m buckets, once. If the buckets exceed
`_MAX_STEPS`, the support bounds are used.
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

# Max buckets visited: about a second, once for each window and threshold.
_MAX_STEPS = 40_000_000
# Max ends computed exactly: half a second; only contrived shapes need more.
_MAX_EXACT = 1000
# Step through the pairs of shapes that separates neighbours.
_STRIDE = 2_654_435_761
_POINT = Histogram.from_interval(0, 0)


class _Extreme(NamedTuple):
    """A shape whose U is increased by an offset."""

    shape: Histogram
    offset: int


class _Extremes(NamedTuple):
    """The early and the late shapes of a stream."""

    early: tuple[_Extreme, ...]
    late: tuple[_Extreme, ...]


def stream_reach(window: TimingWindow, a: Stream, b: Stream) -> tuple[int, int]:
    """Compute the min and max s of any satisfied pair of two streams.

    Parameters
    ----------
    window : TimingWindow
        The condition.
    a, b : Stream
        The streams, which declare the lengths and shapes of their events.

    Returns
    -------
    min_s, max_s : int
        Every satisfied pair has min_s ≤ max_B - max_A ≤ max_s; both are finite. If min_s > max_s,
        no pair can be satisfied.
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
    if shapes_a * buckets_b + shapes_b * buckets_a <= _MAX_STEPS:
        found = _bound(
            window, _find_extremes(a, any_shape=any_a), _find_extremes(b, any_shape=any_b)
        )
    if found is None:
        any_shape = (_find_extremes(it, any_shape=True) for it in (a, b))
        found = _bound(window, *any_shape)
    if found is None:
        raise AssertionError("two shapes of each side require at most two exact ends")
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


# Cached: plan, explanation and operator compute the same bounds.
@lru_cache(maxsize=256)
def _bound(window: TimingWindow, a: _Extremes, b: _Extremes) -> tuple[int, int] | None:
    """Compute both bounds; None if too many ends must be computed exactly."""
    scalars = window.scalars()
    min_s = _find_min(a.early, b.late, window)
    # In the mirrored window the max s becomes the min s.
    mirrored_min_s = _find_min(b.early, a.late, window.mirrored())
    if min_s is None or mirrored_min_s is None:
        return None
    return max(min_s, scalars.floor), min(-mirrored_min_s, scalars.ceiling)


def _find_min(
    early: tuple[_Extreme, ...], late: tuple[_Extreme, ...], window: TimingWindow
) -> int | None:
    """Find the min s at which any two shapes satisfy the lower end alone."""
    shapes = pack_shapes([it.shape for it in early]), pack_shapes([it.shape for it in late])
    offsets = np.array([it.offset for it in early], np.int64)
    count = len(early) * len(late)
    stride = _STRIDE % count or 1
    while math.gcd(stride, count) > 1:
        stride += 1
    min_s, place = UNBOUNDED_US, 0
    for _ in range(_MAX_EXACT):
        u, v = divmod(place * stride % count, len(late))
        end = one_sided_ends(early[u].shape, late[v].shape, window)[0]
        min_s = min(min_s, end - early[u].offset)
        place = int(_pass_over_kernel(*shapes, offsets, window.scalars(), stride, place + 1, min_s))
        if place == count:
            return min_s
    return None


@njit(cache=True)
def _pass_over_kernel(
    early: Shapes,
    late: Shapes,
    offsets: NDArray[np.int64],
    window: WindowScalars,
    stride: int,
    begin: int,
    min_s: int,
) -> int:
    """Find the first pair of shapes whose end may be below `min_s`, from `begin` on."""
    width = len(late.starts) - 1
    count = len(offsets) * width
    for k in range(begin, count):
        place = k * stride % count
        u = place // width
        v = place - u * width
        s = min_s - 1 + offsets[u]
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
