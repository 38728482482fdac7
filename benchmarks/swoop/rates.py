"""Set rates by window, k and operator, on random sets and on messages, and what a set costs."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.plotting import (
    add_legend,
    draw_by_window,
    draw_lines,
    make_axes,
    show_plain_ticks,
    show_plain_values,
)
from benchmarks.report import Picture, Report
from benchmarks.swoop.measuring import (
    BASE,
    MERGING,
    REFILL,
    SCASE,
    SWOOP,
    Measured,
    Plan,
    Shape,
    choose_operators,
    make_operator,
    measure,
)
from benchmarks.swoop.texts import COSTS, MESSAGES, RATES
from benchmarks.swoop.window import take_sets
from benchmarks.swoop.workload import draw_sets, read_messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from correlation.topk.join.state import Block

WINDOWS, LENGTHS = (1_000, 10_000, 100_000), (10, 50, 1_000)
QUICK_WINDOWS, QUICK_LENGTHS = (200, 1_000), (5, 20)
ALL = (SWOOP, REFILL, SCASE, MERGING, BASE)
# Aims: sets per second of `swoop` by window and k.
AIMS = {
    (10_000, 50): 75_000,
    (100_000, 50): 27_000,
    (10_000, 1_000): 15_000,
    (100_000, 1_000): 7_000,
}


class RatePoint(NamedTuple):
    """Measurements at one window and k.

    Attributes
    ----------
    data : str
        Name of the stream.
    shape : Shape
        What is joined.
    runs : mapping of str to Measured
        Result of each operator.
    repeated : float
        Share of the valid sets that are equal to another valid set.
    equal : int
        Number of pairs of equal sets in the list, at the end of the window that is filled in bulk.
    """

    data: str
    shape: Shape
    runs: dict[str, Measured]
    repeated: float
    equal: int


def plan_for(window: int, *, quick: bool) -> Plan:
    """Return the number of sets to insert at a window."""
    if quick:
        return Plan(5, 50, 3)
    return Plan(20 if window > WINDOWS[0] else 100, 2_000, 9)


def measure_rates(*, quick: bool) -> list[RatePoint]:
    """Run all operators on random sets."""
    points = []
    for window in QUICK_WINDOWS if quick else WINDOWS:
        plan = plan_for(window, quick=quick)
        stream = draw_sets(window + plan.sets)
        for k in QUICK_LENGTHS if quick else LENGTHS:
            names = choose_operators(window)
            points.append(measure_point("random", stream, Shape(window, k), plan, names))
    return points


def measure_messages(*, quick: bool) -> list[RatePoint]:
    """Run all operators but `base` on messages, with and without repeated ones."""
    points = []
    for data in ("all", "distinct"):
        messages = read_messages(distinct=data == "distinct")
        for window in QUICK_WINDOWS if quick else WINDOWS:
            plan = plan_for(window, quick=quick)
            stream = take_sets(messages, 0, window + plan.sets)
            for k in QUICK_LENGTHS if quick else LENGTHS:
                names = (SWOOP, REFILL, SCASE)
                points.append(measure_point(data, stream, Shape(window, k), plan, names))
    return points


def measure_point(
    data: str, stream: Block, shape: Shape, plan: Plan, names: Sequence[str]
) -> RatePoint:
    """Run operators at one window and k."""
    makers = {name: partial(make_operator, name, stream, shape) for name in names}
    sets = [
        bytes(np.sort(stream.tokens[begin:end]))
        for begin, end in zip(
            stream.offsets[: shape.window].tolist(),
            stream.offsets[1 : shape.window + 1].tolist(),
            strict=True,
        )
    ]
    counts = Counter(sets)
    swoop = make_operator(SWOOP, stream, shape)
    swoop.fill(shape.window)
    pairs = swoop.list_pairs()
    equal = sum(
        sets[older] == sets[newer]
        for older, newer in zip(pairs.older.tolist(), pairs.newer.tolist(), strict=True)
    )
    repeated = sum(count for count in counts.values() if count > 1) / shape.window
    return RatePoint(data, shape, measure(makers, shape, plan), repeated, equal)


def report_rates(points: Sequence[RatePoint]) -> Report:
    """Build the table and the plot of random sets."""
    return Report(
        "SWOOP: set rate against window and k",
        RATES,
        (
            *("window, k", *ALL, "aim"),
            *(f"swoop / {name}" for name in (REFILL, SCASE, MERGING, BASE)),
        ),
        [
            [
                _label(point),
                *(format_rate(point, name) for name in ALL),
                f"{AIMS[point.shape[:2]]:,}" if point.shape[:2] in AIMS else "",
                *(format_ratio(point, name) for name in (REFILL, SCASE, MERGING, BASE)),
            ]
            for point in points
        ],
        [Picture("swoop-rates", "Set rate by window, one plot for each k", _draw_rates(points))],
    )


def report_costs(points: Sequence[RatePoint]) -> Report:
    """Build the table of the cost of a set, and its plot."""
    rows = []
    for point in points:
        run = point.runs[SWOOP]
        rows.append(
            [
                _label(point),
                *(f"{1e6 / point.runs[name].rate:,.1f} µs" for name in (SWOOP, REFILL, SCASE)),
                f"{point.runs[SCASE].skyband_us:,.1f} µs",
                *(f"{value:,.1f}" for value in run.work),
                f"{100 * run.work[0] / point.shape.window:.3g}%",
                *(f"{point.runs[name].stock:,}" for name in (SWOOP, REFILL, SCASE)),
            ]
        )
    figure, (axis,) = make_axes("window, sets", "processor time of a set, µs")
    windows = sorted({point.shape.window for point in points})
    lengths = sorted({point.shape.k for point in points})
    axis.set_xscale("log")
    axis.set_yscale("log")
    draw_lines(
        axis,
        windows,
        {
            f"swoop, k = {k:,}": [
                1e6 / point.runs[SWOOP].rate for point in points if point.shape.k == k
            ]
            for k in lengths
        },
    )
    show_plain_ticks(axis, windows)
    show_plain_values(axis)
    add_legend(figure, axis)
    return Report(
        "SWOOP: what a set costs",
        COSTS,
        (
            *("window, k", SWOOP, REFILL, SCASE, "skyband from scratch"),
            *("met", "counted", "candidates", "met of the window"),
            *("stock, swoop", "stock, refill", "stock, scase"),
        ),
        rows,
        [Picture("swoop-costs", "Processor time of a set by window", figure)],
    )


def report_messages(points: Sequence[RatePoint]) -> Report:
    """Build the table of messages."""
    return Report(
        "SWOOP: real messages",
        MESSAGES,
        (
            *("messages, window, k", "repeated", "equal pairs listed", SWOOP, REFILL, SCASE),
            *("swoop / refill", "swoop / scase", "stock"),
        ),
        [
            [
                f"{point.data}, {_label(point)}",
                f"{100 * point.repeated:.0f}%",
                f"{point.equal:,}",
                *(format_rate(point, name) for name in (SWOOP, REFILL, SCASE)),
                *(format_ratio(point, name) for name in (REFILL, SCASE)),
                f"{point.runs[SWOOP].stock:,}",
            ]
            for point in points
        ],
    )


def _label(point: RatePoint) -> str:
    return f"{point.shape.window:,}, {point.shape.k:,}"


def format_rate(point: RatePoint, name: str) -> str:
    """Format the rate of an operator; empty if it was not run."""
    return _format(point.runs[name].rate) if name in point.runs else ""


def format_ratio(point: RatePoint, name: str) -> str:
    """Format the rate of `swoop` divided by that of an operator; empty if it was not run."""
    return _format(point.runs[SWOOP].rate / point.runs[name].rate) if name in point.runs else ""


def _format(value: float) -> str:
    """Format a value with three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"  # noqa: PLR2004 - three digits


def _draw_rates(points: Sequence[RatePoint]) -> Figure:
    plots: dict[int, dict[str, list[float]]] = {}
    for point in points:
        lines = plots.setdefault(point.shape.k, {name: [] for name in ALL})
        for name, rates in lines.items():
            rates.append(point.runs[name].rate if name in point.runs else float("nan"))
    return draw_by_window("sets/s", sorted({it.shape.window for it in points}), plots)
