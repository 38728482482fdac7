"""Decisions and probabilities of pairs of rows of two segments.

Cost. As in `intervals.satisfaction` and `intervals.probability` if both segments hold intervals,
otherwise as in `histograms.filter`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from correlation.timing.histograms.classes import side_of
from correlation.timing.histograms.filter import satisfied_shapes, shape_probability
from correlation.timing.intervals.probability import probability
from correlation.timing.intervals.satisfaction import satisfied

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from correlation.buffers.columns import Int64s
    from correlation.buffers.segment import Segment
    from correlation.timing.histograms.shapes import Shapes
    from correlation.timing.intervals.window import TimingWindow


def satisfied_rows(
    a: Segment, a_rows: Int64s, b: Segment, b_rows: Int64s, window: TimingWindow
) -> NDArray[np.bool_]:
    """Decide exactly which pairs of events satisfy a window.

    Parameters
    ----------
    a, b : Segment
        The segments that hold the events of A and of B.
    a_rows, b_rows : int64[n]
        The pairs.
    window : TimingWindow
        The condition, including its floor and ceiling.
    """
    if a.shape is None and b.shape is None:
        return satisfied(
            a.latest[a_rows] - a.earliest[a_rows],
            b.latest[b_rows] - b.earliest[b_rows],
            b.latest[b_rows] - a.latest[a_rows],
            window,
        )
    return satisfied_shapes(*_histogram_pairs(a, a_rows, b, b_rows), window)


def probability_rows(
    a: Segment, a_rows: Int64s, b: Segment, b_rows: Int64s, window: TimingWindow
) -> NDArray[np.float64]:
    """Compute the satisfaction probability of pairs of events, for reporting.

    Parameters
    ----------
    a, a_rows, b, b_rows
        As in `satisfied_rows`.
    window : TimingWindow
        The condition; threshold, floor and ceiling are ignored.
    """
    if a.shape is None and b.shape is None:
        return probability(
            a.earliest[a_rows], a.latest[a_rows], b.earliest[b_rows], b.latest[b_rows], window
        )
    return shape_probability(*_histogram_pairs(a, a_rows, b, b_rows), window)


def _histogram_pairs(
    a: Segment, a_rows: Int64s, b: Segment, b_rows: Int64s
) -> tuple[Shapes, Int64s, Shapes, Int64s, Int64s]:
    """Return shapes and classes of either side, and s."""
    side_a, side_b = side_of(a), side_of(b)
    return (
        side_a.classes.shapes,
        side_a.codes[a_rows],
        side_b.classes.shapes,
        side_b.codes[b_rows],
        b.latest[b_rows] - a.latest[a_rows],
    )
