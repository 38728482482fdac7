"""Time between the appearance of a set and the new list, by window, k and operator."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.plotting import draw_by_window
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
from benchmarks.swoop.rates import LENGTHS, QUICK_WINDOWS, WINDOWS
from benchmarks.swoop.texts import LATENCY
from benchmarks.swoop.workload import draw_sets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure
    from numpy.typing import NDArray

BLOCKS, EMPTY = "swoop, blocks of 16", "swoop, empty blocks"
_NAMES = (SWOOP, REFILL, SCASE, BASE)
_BLOCK = 16
_QUICK_LENGTHS = (20,)


class LatencyPoint(NamedTuple):
    """Measurements at one window and k.

    Attributes
    ----------
    window : int
        Number of valid sets.
    k : int
        Length of the list.
    times_us : mapping of str to ndarray of float64
        Time of each call.
    """

    window: int
    k: int
    times_us: dict[str, NDArray[np.float64]]


def measure_latencies(*, quick: bool) -> list[LatencyPoint]:
    """Insert sets one by one, and in small blocks."""
    points = []
    few, many = (10, 96) if quick else (100, 8_000)
    for window in QUICK_WINDOWS if quick else WINDOWS:
        stream = draw_sets(window + many + 1)
        names = [name for name in choose_operators(window) if name in _NAMES]
        counts = {name: [1] * (few if name in {SCASE, BASE} else many) for name in names}
        counts[BLOCKS] = [_BLOCK] * (many // _BLOCK)
        counts[EMPTY] = [0] * few
        for k in _QUICK_LENGTHS if quick else LENGTHS:
            shape = Shape(window, k)
            makers = {name: partial(make_operator, name, stream, shape) for name in names}
            makers[BLOCKS] = makers[EMPTY] = makers[SWOOP]
            points.append(LatencyPoint(window, k, measure_latency(makers, shape, counts)))
    return points


def report_latencies(points: Sequence[LatencyPoint]) -> Report:
    """Build the table and the plot."""
    rows = [
        [
            f"{point.window:,}, {point.k:,}, {name}",
            f"{len(times):,}",
            *(f"{np.percentile(times, part):,.0f} µs" for part in (50, 99, 100)),
        ]
        for point in points
        for name, times in point.times_us.items()
    ]
    return Report(
        "SWOOP: latency",
        LATENCY,
        ("window, k, operator", "calls", "median", "p99", "max"),
        rows,
        [
            Picture(
                "swoop-latency",
                "Median time of a set by window, one plot for each k",
                _draw(points),
            )
        ],
    )


def _draw(points: Sequence[LatencyPoint]) -> Figure:
    plots: dict[int, dict[str, list[float]]] = {}
    for point in points:
        lines = plots.setdefault(point.k, {name: [] for name in _NAMES})
        for name, medians in lines.items():
            times = point.times_us.get(name)
            medians.append(float("nan") if times is None else float(np.median(times)))
    windows = sorted({point.window for point in points})
    return draw_by_window("median time of a set, µs", windows, plots)
