"""The order of the inverted lists: shortest list first, or newest token first."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.plotting import add_legend, draw_lines, make_axes, show_plain_values
from benchmarks.report import Picture, Report
from benchmarks.swoop.measuring import Measured, Plan, Shape, measure
from benchmarks.swoop.rates import plan_for
from benchmarks.swoop.texts import ORDERS
from benchmarks.swoop.window import Swoop, take_sets
from benchmarks.swoop.workload import draw_sets, read_messages
from correlation.topk.similarities import JACCARD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from correlation.topk.join.state import Block

SHORTEST, NEWEST = "shortest", "newest"
STREAMS = ("stable", "drifting", "messages")


class OrderPoint(NamedTuple):
    """Measurements of a stream.

    Attributes
    ----------
    stream : str
        One of STREAMS.
    runs : mapping of str to Measured
        Result of each order, SHORTEST and NEWEST.
    """

    stream: str
    runs: dict[str, Measured]


def measure_orders(*, quick: bool) -> list[OrderPoint]:
    """Run both orders on each stream."""
    window, k = (1_000, 20) if quick else (10_000, 50)
    shape, plan = Shape(window, k), plan_for(window, quick=quick)
    points = []
    for name in STREAMS:
        stream = _make_stream(name, shape, plan)
        makers = {
            order: partial(Swoop, stream, k, window - 1, JACCARD, shortest=order == SHORTEST)
            for order in (SHORTEST, NEWEST)
        }
        points.append(OrderPoint(name, measure(makers, shape, plan)))
    return points


def _make_stream(name: str, shape: Shape, plan: Plan) -> Block:
    count = shape.window + plan.sets
    if name == "messages":
        return take_sets(read_messages(distinct=True), 0, count)
    return draw_sets(count, drifting=name == "drifting")


def report_orders(points: Sequence[OrderPoint]) -> Report:
    """Build the table and the plot."""
    figure, (axis,) = make_axes("stream", "sets/s")
    axis.set_yscale("log")
    places = list(range(len(points)))
    draw_lines(
        axis,
        places,
        {f"{it} first": [point.runs[it].rate for point in points] for it in (SHORTEST, NEWEST)},
    )
    axis.set_xticks(places, [point.stream for point in points])
    show_plain_values(axis)
    add_legend(figure, axis)
    return Report(
        "SWOOP: order of tokens",
        ORDERS,
        ("stream, first list", "sets/s", "met", "counted", "candidates"),
        [
            [f"{point.stream}, {order}", f"{run.rate:,.0f}", *(f"{it:,.1f}" for it in run.work)]
            for point in points
            for order, run in point.runs.items()
        ],
        [Picture("swoop-orders", "Set rate of both orders by stream", figure)],
    )
