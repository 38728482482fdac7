"""PTJ Figure 3: the ranges in which partners of one event are satisfied, violated or probed."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.plotting import add_legend, make_axes
from benchmarks.ptj.texts import FIGURE_3
from benchmarks.ptj.workload import draw_templates, mutual
from benchmarks.report import Picture, Report
from correlation.timing.histograms.classes import Classes
from correlation.timing.histograms.filter import shape_probability
from correlation.timing.histograms.pieces import (
    CERTAIN,
    Pieces,
    split_by_supports,
    split_by_windows,
)
from correlation.timing.histograms.shapes import Shapes, pack_shapes
from correlation.timing.histograms.windows import WindowBook

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from correlation.resources.histogram import Histogram
    from correlation.timing.intervals.window import TimingWindow

# Example 5.
WINDOW_MS, THRESHOLD, DETECTED_MS, TEMPLATES = 1_500, "0.8", 5_000, 500
_PLACES = 181
_SHOWN = 200


class Partition(NamedTuple):
    """The ranges of one base event.

    Attributes
    ----------
    length_ms : float
        Length of the base event.
    ends_ms : mapping of str to ndarray, shape (4,)
        Ends of the probed and satisfied ranges by "support" and by "ranges", as latest times of
        partners, milliseconds.
    places_ms : ndarray of float
        Latest times of partners, milliseconds.
    lowest, highest : ndarray of float
        Min and max probability over all templates at these times.
    dots : ndarray of float, shape (k, 2)
        Latest time, milliseconds, and probability of some partners.
    """

    length_ms: float
    ends_ms: dict[str, NDArray[np.float64]]
    places_ms: NDArray[np.float64]
    lowest: NDArray[np.float64]
    highest: NDArray[np.float64]
    dots: NDArray[np.float64]


def measure_partition(*, quick: bool) -> Partition:
    """Compute the ranges and the probabilities around them."""
    rng = np.random.default_rng(2006)
    base = draw_templates(1, rng)
    partners = draw_templates(50 if quick else TEMPLATES, rng)
    window = mutual(WINDOW_MS, THRESHOLD)
    shapes = pack_shapes(base), pack_shapes(partners)
    ends = _find_ends(window, base, partners)
    first, *_, last = ends["support"].tolist()
    s_ms = np.linspace(first - 200, last + 200, _PLACES)
    index = np.arange(len(partners))
    chances = np.array(
        [_chances(shapes, window, index, np.full(len(index), round(s * 1e3))) for s in s_ms]
    )
    some = rng.integers(0, len(partners), _SHOWN)
    some_s = rng.integers(round(s_ms[0] * 1e3), round(s_ms[-1] * 1e3), _SHOWN)
    return Partition(
        base[0].length_us / 1e3,
        {way: DETECTED_MS + its for way, its in ends.items()},
        DETECTED_MS + s_ms,
        chances.min(axis=1),
        chances.max(axis=1),
        np.column_stack([DETECTED_MS + some_s / 1e3, _chances(shapes, window, some, some_s)]),
    )


def _find_ends(
    window: TimingWindow, base: list[Histogram], partners: list[Histogram]
) -> dict[str, NDArray[np.float64]]:
    """Split the partners' times like a search, in milliseconds relative to the base event."""
    a, b = Classes(pack_shapes(base), 0), Classes(pack_shapes(partners), 0)
    book = WindowBook(window, base, partners)
    book.table.settle(2**62)
    grid = book.find_grid(a, b, base_is_a=True)
    if grid is None:
        raise ValueError("no s-window is known")
    scalars = window.scalars()
    return {
        "support": _list_ends(split_by_supports(a, b, scalars)),
        "ranges": _list_ends(split_by_windows(a, b, grid.columns, scalars)),
    }


def _list_ends(pieces: Pieces) -> NDArray[np.float64]:
    """Return the first probed, first certain, last certain and last probed time."""
    (certain,) = np.flatnonzero(pieces.how == CERTAIN).tolist()
    first, last = pieces.reach
    return np.array([first, pieces.low[certain], pieces.high[certain], last]) / 1e3


def _chances(
    shapes: tuple[Shapes, Shapes],
    window: TimingWindow,
    index: NDArray[np.int64],
    s: NDArray[np.int64],
) -> NDArray[np.float64]:
    return shape_probability(shapes[0], np.zeros(len(index), np.int64), shapes[1], index, s, window)


def report_partition(partition: Partition) -> Report:
    """Build the table and the plot."""
    rows = []
    for way, name in (("support", "Equations 4 to 6"), ("ranges", "Theorem 3")):
        first, sure, stop, last = partition.ends_ms[way]
        has_sure = sure <= stop
        rows.append(
            [
                name,
                f"{first:,.1f} to {sure:,.1f} ms",
                f"{sure:,.1f} to {stop:,.1f} ms" if has_sure else "none",
                f"{stop:,.1f} to {last:,.1f} ms",
                f"{(sure - first) + (last - stop):,.1f} ms",
            ]
        )
    return Report(
        "PTJ Figure 3: partitions of the partners of one event",
        FIGURE_3,
        ("ranges by", "probed, left", "satisfied", "probed, right", "probed, together"),
        rows,
        [Picture("ptj-3-partitions", "Probability against a partner's time", _draw(partition))],
    )


def _draw(partition: Partition) -> Figure:
    figure, (axis,) = make_axes("latest time of the partner, ms", "satisfaction probability")
    axis.fill_between(
        partition.places_ms,
        partition.lowest,
        partition.highest,
        color="#56b4e9",
        alpha=0.35,
        linewidth=0,
        label="any template",
    )
    x, y = partition.dots.T
    axis.plot(x, y, ".", color="#0072b2", markersize=3, label="some partners")
    axis.axhline(float(Fraction(THRESHOLD)), color="#000000", linewidth=1, label=f"δ = {THRESHOLD}")
    _draw_ends(axis, partition.ends_ms["support"], "#e69f00", "--", "Equations 4 to 6")
    _draw_ends(axis, partition.ends_ms["ranges"], "#d55e00", "-", "Theorem 3")
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    add_legend(figure, axis, 3)
    return figure


def _draw_ends(axis: Axes, ends: NDArray[np.float64], colour: str, style: str, label: str) -> None:
    for place, end in enumerate(ends):
        axis.axvline(
            end,
            color=colour,
            linestyle=style,
            linewidth=1.2,
            label=label if place == 0 else None,
        )
