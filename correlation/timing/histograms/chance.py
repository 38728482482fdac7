"""Widths of the s-windows of two streams with templates.

Definitions. The declared templates of a stream are equally frequent; a stream without templates has
intervals, as timing.chance assumes. The s-window of two shapes may be several intervals: its width
is the sum of their widths. If the events of a stream carry histograms of their own, the frequencies
of the histograms are unknown and a mean width cannot be computed.

Cost. An s-window for each pair of shapes, with at most `_EDGE_PAIR_LIMIT` pairs of edges in total.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from correlation.resources.histogram import Histogram
from correlation.timing.histograms.integer_sets import unite
from correlation.timing.histograms.s_windows import s_windows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from correlation.resources.streams import Stream
    from correlation.timing.histograms.integer_sets import Intervals
    from correlation.timing.intervals.window import TimingWindow

# Limits the run time to about two seconds.
_EDGE_PAIR_LIMIT = 100_000


def measure_widths(
    window: TimingWindow,
    a: Stream,
    b: Stream,
    lengths_a: Sequence[int],
    lengths_b: Sequence[int],
    *,
    either_order: bool,
) -> NDArray[np.float64] | None:
    """Compute the widths of the s-windows of the shapes of two streams.

    Parameters
    ----------
    window : TimingWindow
        The condition.
    a, b : Stream
        The streams, which declare their templates.
    lengths_a, lengths_b : sequence of int
        Sample lengths for a stream without templates, in µs.
    either_order : bool
        Whether a pair counts in either order (self-correlation).

    Returns
    -------
    ndarray of float64, shape (shapes of a, shapes of b), or None
        Widths, in µs; None if the events of a stream carry histograms of their own, or if the
        shapes are too many.
    """
    if a.histograms or b.histograms:
        return None
    us, vs = _list_shapes(a, lengths_a), _list_shapes(b, lengths_b)
    edges_a, edges_b = (sum(len(it.edges_us) for it in shapes) for shapes in (us, vs))
    if edges_a * edges_b > _EDGE_PAIR_LIMIT:
        return None
    widths = [[_measure(u, v, window, either_order=either_order) for v in vs] for u in us]
    return np.array(widths, np.float64)


def _list_shapes(stream: Stream, lengths: Sequence[int]) -> list[Histogram]:
    if stream.templates:
        return [template.histogram for template in stream.templates]
    return [Histogram.from_interval(-length, 0) for length in lengths]


def _measure(u: Histogram, v: Histogram, window: TimingWindow, *, either_order: bool) -> int:
    spans: Intervals = s_windows(u, v, window)
    if either_order:
        other = s_windows(v, u, window)
        spans = unite([*spans, *((-high, -low) for low, high in other)])
    return sum(high - low + 1 for low, high in spans)
