"""Set rates of the five similarities, by window and k."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.plotting import draw_by_window
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
    plots: dict[int, dict[str, list[float]]] = {}
    for point in points:
        lines = plots.setdefault(point.shape.k, {})
        lines.setdefault(point.shape.similarity.name, []).append(point.runs[SWOOP].rate)
    return draw_by_window("sets/s", sorted({it.shape.window for it in points}), plots)
