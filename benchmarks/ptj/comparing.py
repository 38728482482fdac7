"""Compare the timing joins of all algorithms, by threshold and window."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.plotting import add_legend, draw_lines, make_axes, show_plain_values
from benchmarks.ptj.joins import ONE_BY_ONE, WAYS, Found, Join
from benchmarks.ptj.texts import COMPARISON
from benchmarks.ptj.workload import (
    RATE,
    WINDOWS_MS,
    draw_stream,
    draw_templates,
    mutual,
)
from benchmarks.report import Picture, Report

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.figure import Figure

    from benchmarks.ptj.workload import Stream

# Ways whose computed shares are shown; simple computes all pairs, indexed and auto none.
COMPUTED = ("ssort", ONE_BY_ONE, "lazy")
THRESHOLDS = ("0.05", "0.2", "0.5", "0.8", "0.95", "0.99")


class JoinPoint(NamedTuple):
    """Measurements of all ways at one window and threshold.

    Attributes
    ----------
    window_ms : int
        d.
    threshold : str
        δ.
    pairs : int
        Number of satisfied pairs.
    missed : mapping of str to int
        Number of pairs that each way decided by quantiles or by a probability.
    seconds : mapping of str to float
        Processor time of each way.
    learn_seconds : float
        Time to compute the s-windows of all pairs of templates once.
    kept : mapping of str to float
        Number of events of a stream that must be kept.
    """

    window_ms: int
    threshold: str
    pairs: int
    missed: dict[str, int]
    seconds: dict[str, float]
    learn_seconds: float
    kept: dict[str, float]


class WaysDifferError(Exception):
    """Two ways found different pairs."""


def measure_joins(*, quick: bool) -> list[JoinPoint]:
    """Join the same streams in every way."""
    rng = np.random.default_rng(2006)
    count, events = (40, 300) if quick else (60, 2_500)
    us, vs = draw_templates(count, rng), draw_templates(count, rng)
    drawn = draw_stream(events, us, rng), draw_stream(events, vs, rng)
    points = []
    for window_ms in WINDOWS_MS:
        for threshold in ("0.05", "0.95") if quick else THRESHOLDS:
            window = mutual(window_ms, threshold)
            joins = {way: Join(way, (us, vs), window) for way in WAYS}
            learn_seconds = joins["lazy"].learn()
            found = run_joins(joins, drawn, repeats=1 if quick else 3)
            points.append(
                JoinPoint(
                    window_ms,
                    threshold,
                    len(found["simple"].pairs),
                    {way: it.missed for way, it in found.items()},
                    {way: it.seconds for way, it in found.items()},
                    learn_seconds,
                    {way: join.kept_us * RATE / 1e6 for way, join in joins.items()},
                )
            )
    return points


def run_joins(
    joins: Mapping[str, Join], drawn: tuple[Stream, Stream], *, repeats: int
) -> dict[str, Found]:
    """Run joins in turns; return the fastest run of each join.

    Raises
    ------
    WaysDifferError
        When a join finds different pairs.
    """
    best: dict[str, Found] = {}
    first = None
    for _ in range(repeats):
        for way, join in joins.items():
            found = join.run(drawn)
            first = found.pairs if first is None else first
            if not np.array_equal(found.pairs, first):
                raise WaysDifferError(way)
            if way not in best or found.seconds < best[way].seconds:
                best[way] = found
    return best


def report_joins(points: Sequence[JoinPoint]) -> Report:
    """Build the table and the plots."""
    rows = [
        [
            f"{point.window_ms:,} ms, {point.threshold}",
            f"{point.pairs:,}",
            *(f"{_share(point, way):.1f}%" for way in COMPUTED),
            *(f"{point.seconds[way] * 1e3:,.0f} ms" for way in WAYS),
            f"{point.learn_seconds * 1e3:,.0f} ms",
            f"{point.kept[ONE_BY_ONE]:,.0f}",
            f"{point.kept['lazy']:,.0f}",
        ]
        for point in points
    ]
    return Report(
        "PTJ: joins with and without s-windows",
        COMPARISON,
        (
            *("d, δ", "pairs"),
            *(f"computed, {way}" for way in COMPUTED),
            *(f"time, {way}" for way in WAYS),
            *("s-windows, once", "kept, supports", "kept, Theorem 4"),
        ),
        rows,
        [
            Picture(
                "ptj-computed",
                "Share of all pairs of events that are decided by quantiles or a probability",
                _draw(points, COMPUTED, _share, "decided one by one, % of all pairs"),
            ),
            Picture(
                "ptj-time",
                "Processor time of the joins by threshold",
                _draw(
                    points,
                    WAYS,
                    lambda point, way: point.seconds[way] * 1e3,
                    "processor time of the join, ms",
                    is_log=True,
                ),
            ),
        ],
    )


def _share(point: JoinPoint, way: str) -> float:
    return 100 * point.missed[way] / point.missed["simple"]


def _draw(
    points: Sequence[JoinPoint],
    ways: Sequence[str],
    value: Callable[[JoinPoint, str], float],
    label: str,
    *,
    is_log: bool = False,
) -> Figure:
    figure, axes = make_axes("confidence threshold δ", label, len(WINDOWS_MS))
    for axis, window_ms in zip(axes, WINDOWS_MS, strict=True):
        mine = [point for point in points if point.window_ms == window_ms]
        draw_lines(
            axis,
            [float(point.threshold) for point in mine],
            {way: [value(point, way) for point in mine] for way in ways},
        )
        axis.set_title(f"d = {window_ms:,} ms", fontsize=10)
        if is_log:
            axis.set_yscale("log")
            show_plain_values(axis)
        else:
            axis.set_ylim(-4, 104)
    add_legend(figure, axes[0])
    return figure
