"""Time between the appearance of a set and the new list, by window and operator."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.plotting import (
    add_legend,
    draw_lines,
    make_axes,
    show_plain_ticks,
    show_plain_values,
)
from benchmarks.report import Picture, Report
from benchmarks.swoop.measuring import (
    BASE,
    REFILL,
    SCASE,
    SWOOP,
    Shape,
    choose_operators,
    make_operator,
    measure_latency,
)
from benchmarks.swoop.rates import QUICK_WINDOWS, WINDOWS
from benchmarks.swoop.texts import LATENCY
from benchmarks.swoop.workload import draw_sets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

BLOCKS, EMPTY = "swoop, blocks of 16", "swoop, empty blocks"
_BLOCK = 16
_K, _QUICK_K = 50, 20


class LatencyPoint(NamedTuple):
    """Measurements at one window.

    Attributes
    ----------
    window : int
        Number of valid sets.
    times_us : mapping of str to ndarray of float64
        Time of each call.
    """

    window: int
    times_us: dict[str, NDArray[np.float64]]


def measure_latencies(*, quick: bool) -> list[LatencyPoint]:
    """Insert sets one by one, and in small blocks."""
    points = []
    few, many = (10, 96) if quick else (100, 8_000)
    for window in QUICK_WINDOWS if quick else WINDOWS:
        shape = Shape(window, _QUICK_K if quick else _K)
        stream = draw_sets(window + many + 1)
        names = [name for name in choose_operators(window) if name in {SWOOP, REFILL, SCASE, BASE}]
        makers = {name: partial(make_operator, name, stream, shape) for name in names}
        makers[BLOCKS] = makers[EMPTY] = makers[SWOOP]
        counts = {name: [1] * (few if name in {SCASE, BASE} else many) for name in names}
        counts[BLOCKS] = [_BLOCK] * (many // _BLOCK)
        counts[EMPTY] = [0] * few
        points.append(LatencyPoint(window, measure_latency(makers, shape, counts)))
    return points


def report_latencies(points: Sequence[LatencyPoint]) -> Report:
    """Build the table and the plot."""
    names = (SWOOP, REFILL, SCASE, BASE)
    windows = [point.window for point in points]
    figure, (axis,) = make_axes("window, sets", "median time of a set, µs")
    axis.set_xscale("log")
    axis.set_yscale("log")
    draw_lines(
        axis,
        windows,
        {
            name: [
                float(np.median(point.times_us[name])) if name in point.times_us else float("nan")
                for point in points
            ]
            for name in names
        },
    )
    show_plain_ticks(axis, windows)
    show_plain_values(axis)
    add_legend(figure, axis)
    rows = [
        [
            f"{point.window:,}, {name}",
            f"{len(times):,}",
            *(f"{np.percentile(times, part):,.0f} µs" for part in (50, 99, 100)),
        ]
        for point in points
        for name, times in point.times_us.items()
    ]
    return Report(
        "SWOOP: latency",
        LATENCY,
        ("window, operator", "calls", "median", "p99", "max"),
        rows,
        [Picture("swoop-latency", "Median time of a set by window", figure)],
    )
