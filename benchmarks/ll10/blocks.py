"""LL10 Figure 6: execution time by block size."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from benchmarks.kernel import mutual
from benchmarks.ll10.arrivals import Workload
from benchmarks.ll10.measuring import Series, measure
from benchmarks.ll10.texts import FIGURE_6
from benchmarks.plotting import add_legend, draw_lines, make_axes, show_plain_ticks
from benchmarks.report import Picture, Report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.ll10.simulator import Measured

RATE, DEADLINE_MS = 500, 500
THRESHOLDS = ("0.8", "0.5")
SIZES = tuple(range(200, 2_001, 200))
ALGORITHMS = ("lazy", "lazy_lookup", "auto")


class BlockPoint(NamedTuple):
    """Measurements of the algorithms at one threshold and block size.

    Attributes
    ----------
    threshold : str
        ct.
    size : int
        Block size in events of a stream.
    runs : sequence of Measured
        One measurement for each of `ALGORITHMS`.
    """

    threshold: str
    size: int
    runs: Sequence[Measured]


def measure_blocks(*, quick: bool) -> list[BlockPoint]:
    """Run the algorithms that use blocks, at all block sizes."""
    points = []
    for threshold in THRESHOLDS:
        workload = Workload(RATE, 4_000 if quick else 20_000, mutual(DEADLINE_MS, threshold))
        sizes = (200, 2_000) if quick else SIZES
        series = [Series(name, block_events=size) for size in sizes for name in ALGORITHMS]
        runs = measure(workload, series, 1 if quick else 7)
        width = len(ALGORITHMS)
        points += [
            BlockPoint(threshold, size, runs[width * place : width * (place + 1)])
            for place, size in enumerate(sizes)
        ]
    return points


def report_blocks(points: Sequence[BlockPoint]) -> Report:
    """Build the table and plot of Figure 6."""
    figure, axes = make_axes(
        "block, events of a stream", "processor time, ms per s of stream", len(THRESHOLDS)
    )
    sizes = sorted({point.size for point in points})
    for axis, threshold in zip(axes, THRESHOLDS, strict=True):
        mine = [point for point in points if point.threshold == threshold]
        draw_lines(
            axis,
            sizes,
            {
                name: [point.runs[place].busy_seconds * 1e3 for point in mine]
                for place, name in enumerate(ALGORITHMS)
            },
        )
        axis.set_title(f"ct {threshold}", fontsize=10)
        show_plain_ticks(axis, sizes[1::3])
    # Both plots share their limits, which are set after the lines of both are drawn.
    axes[0].set_ylim(bottom=0)
    add_legend(figure, axes[0])
    rows = [
        [
            f"{size:,}",
            *(
                f"{run.busy_seconds * 1e3:.2f}"
                for point in points
                if point.size == size
                for run in point.runs
            ),
        ]
        for size in sizes
    ]
    title = "LL10 Figure 6: execution time against the block size"
    return Report(
        title,
        FIGURE_6,
        ("block", *(f"{name}, ct {ct}" for ct in THRESHOLDS for name in ALGORITHMS)),
        rows,
        [Picture("ll10-6-blocks", title, figure)],
    )
