"""Set rates of the five similarities, by window and k."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.plotting import (
    add_legend,
    draw_lines,
    make_axes,
    show_plain_ticks,
    show_plain_values,
)
from benchmarks.report import Picture, Report
from benchmarks.swoop.measuring import BASE, MERGING, REFILL, SCASE, SWOOP, Shape, choose_operators
from benchmarks.swoop.rates import (
    LENGTHS,
    WINDOWS,
    RatePoint,
    format_rate,
    format_ratio,
    measure_point,
    plan_for,
)
from benchmarks.swoop.texts import SIMILARITY
from benchmarks.swoop.workload import draw_sets
from correlation.topk.similarities import COSINE, DICE, HAMMING, JACCARD, OVERLAP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

_SIMILARITIES = (JACCARD, COSINE, DICE, OVERLAP, HAMMING)
_NAMES = (SWOOP, REFILL, SCASE, BASE)


def measure_similarities(*, quick: bool) -> list[RatePoint]:
    """Run the operators at each window and k for each similarity."""
    points = []
    for window in (500,) if quick else WINDOWS:
        plan = plan_for(window, quick=quick)
        stream = draw_sets(window + plan.sets)
        names = [name for name in choose_operators(window) if name != MERGING]
        # Each similarity compiles the kernels once more.
        points += [
            measure_point("random", stream, Shape(window, k, similarity), plan, names)
            for k in ((10,) if quick else LENGTHS)
            for similarity in (_SIMILARITIES[::4] if quick else _SIMILARITIES)
        ]
    return points


def report_similarities(points: Sequence[RatePoint]) -> Report:
    """Build the table and the plot."""
    return Report(
        "SWOOP: similarities",
        SIMILARITY,
        (
            *("window, k, similarity", *_NAMES),
            *(f"swoop / {name}" for name in _NAMES[1:]),
            *("met", "counted", "candidates", "stock"),
        ),
        [
            [
                f"{point.shape.window:,}, {point.shape.k:,}, {point.shape.similarity.name}",
                *(format_rate(point, name) for name in _NAMES),
                *(format_ratio(point, name) for name in _NAMES[1:]),
                *(f"{value:,.1f}" for value in point.runs[SWOOP].work),
                f"{point.runs[SWOOP].stock:,}",
            ]
            for point in points
        ],
        [
            Picture(
                "swoop-similarities",
                "Set rate of swoop by window and similarity, one plot for each k",
                _draw(points),
            )
        ],
    )


def _draw(points: Sequence[RatePoint]) -> Figure:
    lengths = sorted({point.shape.k for point in points})
    windows = sorted({point.shape.window for point in points})
    names = list(dict.fromkeys(point.shape.similarity.name for point in points))
    figure, axes = make_axes("window, sets", "sets/s", len(lengths))
    for axis, k in zip(axes, lengths, strict=True):
        axis.set_title(f"k = {k:,}", fontsize=10)
        axis.set_xscale("log")
        axis.set_yscale("log")
        rates = {
            name: [
                point.runs[SWOOP].rate
                for point in points
                if (point.shape.k, point.shape.similarity.name) == (k, name)
            ]
            for name in names
        }
        draw_lines(axis, windows, rates)
        show_plain_ticks(axis, windows, rotated=True)
    show_plain_values(axes[0])
    add_legend(figure, axes[0], len(names))
    return figure
