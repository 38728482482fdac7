"""Set rates of the five similarities."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.plotting import add_legend, draw_lines, make_axes, show_plain_values
from benchmarks.report import Picture, Report
from benchmarks.swoop.measuring import REFILL, SCASE, SWOOP, Shape
from benchmarks.swoop.rates import RatePoint, measure_point, plan_for
from benchmarks.swoop.texts import SIMILARITY
from benchmarks.swoop.workload import draw_sets
from correlation.topk.similarities import COSINE, DICE, HAMMING, JACCARD, OVERLAP

if TYPE_CHECKING:
    from collections.abc import Sequence

_SIMILARITIES = (JACCARD, COSINE, DICE, OVERLAP, HAMMING)
_NAMES = (SWOOP, REFILL, SCASE)


def measure_similarities(*, quick: bool) -> list[RatePoint]:
    """Run the operators at one window and k for each similarity."""
    window, k = (500, 10) if quick else (10_000, 50)
    plan = plan_for(window, quick=quick)
    stream = draw_sets(window + plan.sets)
    # Each similarity compiles the kernels once more.
    return [
        measure_point("random", stream, Shape(window, k, similarity), plan, _NAMES)
        for similarity in (_SIMILARITIES[::4] if quick else _SIMILARITIES)
    ]


def report_similarities(points: Sequence[RatePoint]) -> Report:
    """Build the table and the plot."""
    figure, (axis,) = make_axes("similarity", "sets/s")
    axis.set_yscale("log")
    places = list(range(len(points)))
    draw_lines(axis, places, {name: [point.runs[name].rate for point in points] for name in _NAMES})
    axis.set_xticks(places, [point.shape.similarity.name for point in points])
    show_plain_values(axis)
    add_legend(figure, axis)
    return Report(
        "SWOOP: similarities",
        SIMILARITY,
        (
            *("similarity", *_NAMES, "swoop / refill", "swoop / scase"),
            *("met", "counted", "candidates", "stock"),
        ),
        [
            [
                point.shape.similarity.name,
                *(f"{point.runs[name].rate:,.0f}" for name in _NAMES),
                *(
                    f"{point.runs[SWOOP].rate / point.runs[name].rate:,.3g}"
                    for name in (REFILL, SCASE)
                ),
                *(f"{value:,.1f}" for value in point.runs[SWOOP].work),
                f"{point.runs[SWOOP].stock:,}",
            ]
            for point in points
        ],
        [Picture("swoop-similarities", "Set rate by similarity", figure)],
    )
