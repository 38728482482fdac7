"""LL10 Figures 3 to 5: execution time, response time and buffers by arrival rate."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from benchmarks.kernel import mutual
from benchmarks.ll10.arrivals import Workload
from benchmarks.ll10.measuring import SERIES, Series, measure
from benchmarks.ll10.simulator import BY_ARRIVAL, Measured
from benchmarks.ll10.texts import COSTS, FIGURE_3, FIGURE_4, FIGURE_5
from benchmarks.plotting import (
    add_legend,
    draw_lines,
    make_axes,
    show_plain_ticks,
    show_plain_values,
)
from benchmarks.report import Picture, Report

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.figure import Figure

# The paper lists r12, r24, ... and r1600.
PAPER_RATES = (12, 24, 50, 100, 200, 400, 800, 1_600)
BEYOND_RATES = (16_000, 160_000)
# Beyond the paper's rates, each key has this rate: with one key, 160,000 events a second would
# yield 25 billion pairs a second.
RATE_OF_KEY = 1_600
DEADLINE_MS, THRESHOLD = 500, "0.8"
INTERVAL_US = 250_000
# Min measured stream: four blocks and an interval.
MIN_EVENTS, MIN_US = 4_000, INTERVAL_US
ALL_SERIES = (*SERIES, Series("lazy_lookup", interval_us=INTERVAL_US))


class RatePoint(NamedTuple):
    """Measurements of all series at one rate.

    Attributes
    ----------
    workload : Workload
        The workload.
    runs : sequence of Measured
        One measurement for each of `ALL_SERIES`.
    """

    workload: Workload
    runs: Sequence[Measured]


def measure_rates(*, quick: bool) -> list[RatePoint]:
    """Run all series at all rates."""
    points = []
    for rate in (12, 400, 16_000) if quick else (*PAPER_RATES, *BEYOND_RATES):
        events = max(MIN_EVENTS, rate * MIN_US // 1_000_000)
        # Below 16,000 events/s a run has at least a second, since shorter runs are noise.
        events = max(events, min(5 * rate, 2 * MIN_EVENTS))
        if quick:
            events //= 4
        workload = Workload(
            rate, events, mutual(DEADLINE_MS, THRESHOLD), keys=max(rate // RATE_OF_KEY, 1)
        )
        points.append(RatePoint(workload, measure(workload, ALL_SERIES, 1 if quick else 3)))
    return points


def measure_costs(*, quick: bool) -> list[RatePoint]:
    """Run all series with one key at 1,600 and 16,000 events a second."""
    points = []
    for rate in (1_600,) if quick else (1_600, 16_000):
        workload = Workload(rate, MIN_EVENTS, mutual(DEADLINE_MS, THRESHOLD))
        points.append(RatePoint(workload, measure(workload, SERIES, 1 if quick else 3)))
    return points


def report_rates(points: Sequence[RatePoint]) -> list[Report]:
    """Build the tables and plots of Figures 3, 4 and 5."""
    return [
        _report(
            points,
            "LL10 Figure 3: execution time against the arrival rate",
            FIGURE_3,
            lambda run: run.busy_seconds * 1e3,
            ("ll10-3-execution", "processor time, ms per s of stream"),
        ),
        _report(
            points,
            "LL10 Figure 4: response time against the arrival rate",
            FIGURE_4,
            lambda run: run.response_seconds,
            ("ll10-4-response", "mean response time, s"),
        ),
        _report(
            points,
            "LL10 Figure 5: buffer lengths against the arrival rate",
            FIGURE_5,
            lambda run: run.buffer_events,
            ("ll10-5-buffers", "buffered events a stream, mean"),
        ),
    ]


def _report(
    points: Sequence[RatePoint],
    title: str,
    text: str,
    value: Callable[[Measured], float],
    plot: tuple[str, str],
) -> Report:
    name, label = plot
    return Report(
        title,
        text,
        ("events/s a stream", *(series.name for series in ALL_SERIES)),
        [
            [f"{point.workload.rate:,}", *(_format(value(run)) for run in point.runs)]
            for point in points
        ],
        [Picture(name, f"{title}, all algorithms", _draw(points, value, label))],
    )


def _draw(points: Sequence[RatePoint], value: Callable[[Measured], float], label: str) -> Figure:
    figure, (axis,) = make_axes("events/s a stream", label)
    axis.set_xscale("log")
    axis.set_yscale("log")
    rates = [point.workload.rate for point in points]
    draw_lines(
        axis,
        rates,
        {
            series.name: [value(point.runs[place]) for point in points]
            for place, series in enumerate(ALL_SERIES)
        },
    )
    show_plain_ticks(axis, rates, rotated=True)
    show_plain_values(axis)
    if rates[-1] > PAPER_RATES[-1]:
        axis.axvspan(1.6 * PAPER_RATES[-1], 1.4 * rates[-1], color="#f3f3f3", zorder=0)
        axis.set_xlim(0.75 * rates[0], 1.4 * rates[-1])
        axis.annotate(
            "beyond the paper",
            (0.985, 0.02),
            xycoords="axes fraction",
            ha="right",
            va="bottom",
            color="#555555",
        )
    add_legend(figure, axis)
    return figure


def report_costs(points: Sequence[RatePoint]) -> Report:
    """Build the table of the cost of an event by algorithm, with its causes."""
    rows = []
    for point in points:
        for series, run in zip(SERIES, point.runs, strict=True):
            how = "arrival" if series.algorithm in BY_ARRIVAL else "block"
            rows.append(
                [
                    f"{point.workload.rate:,}/s, {series.algorithm}",
                    how,
                    f"{run.busy_us / run.arrived:.1f} µs",
                    f"{run.pairs / run.arrived:,.0f}",
                    f"{run.evaluated / run.arrived:,.1f}",
                    f"{run.hits / run.arrived:,.1f}",
                ]
            )
    return Report(
        "LL10: what an event costs",
        COSTS,
        (
            *("workload, algorithm", "correlated by", "processor time", "pairs"),
            *("probabilities computed", "look-up hits"),
        ),
        rows,
    )


def _format(value: float) -> str:
    """Format a value with three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"  # noqa: PLR2004 - three digits
