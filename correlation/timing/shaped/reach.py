"""How far apart satisfied pairs of two streams can be, whatever shapes their events carry.

Problem. The least and the greatest s = max_B - max_A of any satisfied pair: what may be forgotten
(PTJ Theorem 4's sliding window; LL10's keep values), and which segments may meet.

Definitions. U = max - T. The lower end alone asks P(s + U_A - U_B ≥ lower) ≥ ct: the greater U_A
and the less U_B are, in the usual stochastic order, the less s may be. The upper end is mirrored.
So only the *early* shapes of one stream (U great) and the *late* ones of the other (U small) count:

    intervals of lengths ρ to π   early: the interval of length π     late: that of length ρ
    declared templates            each of them                        each of them
    own histograms                U = π for certain                   U = 0 for certain

Both conditions are necessary in any window (docs/proofs.md, P-SHAPED-KEEP). Own histograms leave
the support bounds lower - π_A and upper + π_B; a microsecond less would be wrong for some of them.

Reference. Mok, Woo and Lee 2006, Theorem 4; LL10 section 4.3.

Cost. Two quantiles for each pair of such shapes, once; of shapes with more edges than
`_EDGE_PAIR_LIMIT` allows the bounds of own histograms are taken.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from correlation.histogram import Histogram
from correlation.timing.s_windows import one_sided_ends
from correlation.timing.satisfaction import bounds

if TYPE_CHECKING:
    from correlation.streams import Stream
    from correlation.timing.window import TimingWindow

# Edges of the shapes of one stream, times those of the other: about half a second, once for each
# threshold.
_EDGE_PAIR_LIMIT = 30_000
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
        return bounds(window, a.shortest_us, a.longest_us, b.shortest_us, b.longest_us)
    any_a, any_b = a.histograms, b.histograms
    if _count_edges(a) * _count_edges(b) > _EDGE_PAIR_LIMIT:
        any_a = any_b = True
    return _bound(window, _find_extremes(a, any_shape=any_a), _find_extremes(b, any_shape=any_b))


def _count_edges(stream: Stream) -> int:
    return 2 + sum(len(template.histogram.edges_us) for template in stream.templates)


def _find_extremes(stream: Stream, *, any_shape: bool) -> _Extremes:
    if any_shape:
        return _Extremes((_Extreme(_POINT, stream.longest_us),), (_Extreme(_POINT, 0),))
    templates = tuple(_Extreme(template.histogram, 0) for template in stream.templates)
    longest, shortest = (
        _Extreme(Histogram.from_interval(-length, 0), 0)
        for length in (stream.longest_us, stream.shortest_us)
    )
    return _Extremes((longest, *templates), (shortest, *templates))


# Asked for again by plan, explanation and operator.
@lru_cache(maxsize=256)
def _bound(window: TimingWindow, a: _Extremes, b: _Extremes) -> tuple[int, int]:
    least = min(
        one_sided_ends(u.shape, v.shape, window)[0] - u.offset for u in a.early for v in b.late
    )
    greatest = max(
        one_sided_ends(u.shape, v.shape, window)[1] + v.offset for u in a.late for v in b.early
    )
    scalars = window.scalars()
    return max(least, scalars.floor), min(greatest, scalars.ceiling)
