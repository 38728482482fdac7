"""LL10 Figure 8: execution time by threshold, for events sorted by time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from benchmarks.kernel import MAX_UNCERTAINTY_US, MIN_UNCERTAINTY_US, mutual
from benchmarks.ll10.arrivals import Workload
from benchmarks.ll10.measuring import SERIES, measure
from benchmarks.ll10.texts import FIGURE_8
from benchmarks.plotting import add_legend, draw_lines, make_axes, show_plain_values
from benchmarks.report import Picture, Report
from correlation.timing.intervals.regions import locate_regions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.ll10.simulator import Measured

RATE, DEADLINE_MS = 1_600, 1_000
THRESHOLDS = ("1.0", "0.7", "0.4", "0.1")


class ThresholdPoint(NamedTuple):
    """Measurements of all algorithms at one threshold.

    Attributes
    ----------
    threshold : str
        ct.
    workload : Workload
        The workload.
    runs : sequence of Measured
        One measurement for each of `SERIES`.
    """

    threshold: str
    workload: Workload
    runs: Sequence[Measured]


def measure_thresholds(*, quick: bool) -> list[ThresholdPoint]:
    """Run all algorithms at all thresholds."""
    points = []
    for threshold in THRESHOLDS:
        workload = Workload(
            RATE, 1_000 if quick else 8_000, mutual(DEADLINE_MS, threshold), delay_us=0
        )
        runs = measure(workload, SERIES, 1 if quick else 5)
        points.append(ThresholdPoint(threshold, workload, runs))
    return points


def report_thresholds(points: Sequence[ThresholdPoint]) -> Report:
    """Build the table and plot of Figure 8."""
    figure, (axis,) = make_axes("confidence threshold ct", "processor time, ms per s of stream")
    axis.set_yscale("log")
    places = range(len(points))
    draw_lines(
        axis,
        places,
        {
            series.name: [point.runs[place].busy_seconds * 1e3 for point in points]
            for place, series in enumerate(SERIES)
        },
    )
    axis.set_xticks(list(places), [point.threshold for point in points])
    show_plain_values(axis)
    add_legend(figure, axis)
    title = "LL10 Figure 8: execution time against the threshold, sorted input"
    lookup = [series.name for series in SERIES].index("lazy_lookup")
    rows = []
    for point in points:
        left, right = _probe_widths_ms(point.workload)
        rows.append(
            [
                point.threshold,
                *(f"{run.busy_seconds * 1e3:.3g}" for run in point.runs),
                f"{left:.0f} ms, {right:.0f} ms",
                f"{point.runs[lookup].hit_ratio:.0%}",
            ]
        )
    return Report(
        title,
        FIGURE_8,
        ("ct", *(series.name for series in SERIES), "probe regions, left, right", "hit ratio"),
        rows,
        [Picture("ll10-8-thresholds", title, figure)],
    )


def _probe_widths_ms(workload: Workload) -> tuple[float, float]:
    """Return the widths of the probe regions of a base event of mean length, in ms."""
    lh, ll, rl, rh = locate_regions(
        workload.window,
        (MIN_UNCERTAINTY_US + MAX_UNCERTAINTY_US) // 2,
        MIN_UNCERTAINTY_US,
        MAX_UNCERTAINTY_US,
    )
    return (ll - lh) / 1e3, (rh - rl) / 1e3
