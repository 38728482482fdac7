"""Pruned against unpruned joins, by threshold and window."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.kernel import best_seconds
from benchmarks.plotting import add_legend, draw_lines, make_axes, show_plain_values
from benchmarks.ptj.joins import WAYS, join, kept_us, pair_codes, prepare
from benchmarks.ptj.texts import COMPARISON
from benchmarks.ptj.workload import (
    DELAY_US,
    RATE,
    WINDOWS_MS,
    draw_stream,
    draw_templates,
    mutual,
)
from benchmarks.report import Picture, Report

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.figure import Figure

THRESHOLDS = (
    *("0.05", "0.1", "0.2", "0.3", "0.4", "0.5"),
    *("0.6", "0.7", "0.8", "0.9", "0.95", "0.99"),
)


class JoinPoint(NamedTuple):
    """All ways at one window and threshold.

    Attributes
    ----------
    window_ms : int
        d.
    threshold : str
        δ.
    pairs : int
        Satisfied.
    reached : int
        Pairs in the plain window.
    computed : mapping of str to int
        Probabilities that each way computed.
    seconds : mapping of str to float
        Processor time of each way.
    grid_seconds : float
        To compute the satisfaction times of all pairs of templates, once.
    kept : mapping of str to float
        Events of a stream that have to be kept.
    """

    window_ms: int
    threshold: str
    pairs: int
    reached: int
    computed: dict[str, int]
    seconds: dict[str, float]
    grid_seconds: float
    kept: dict[str, float]


class WaysDifferError(Exception):
    """Raised when a pruned join found other pairs than the plain one."""


def measure_joins(*, quick: bool) -> list[JoinPoint]:
    """Join the same streams in all ways."""
    rng = np.random.default_rng(2006)
    count, events = (10, 1_000) if quick else (60, 2_500)
    us, vs = draw_templates(count, rng), draw_templates(count, rng)
    streams = draw_stream(events, us, rng), draw_stream(events, vs, rng)
    points = []
    for window_ms in WINDOWS_MS:
        for threshold in ("0.05", "0.5", "0.95") if quick else THRESHOLDS:
            begin = time.process_time()
            prepared = prepare(us, vs, mutual(window_ms, threshold))
            grid_seconds = time.process_time() - begin
            found = {way: join(way, prepared, *streams) for way in WAYS}
            codes = {way: pair_codes(its, events) for way, its in found.items()}
            for way in WAYS:
                if not np.array_equal(codes[way], codes["plain"]):
                    raise WaysDifferError(f"{way}: d {window_ms} ms, δ {threshold}")
            seconds = best_seconds(
                *(partial(join, way, prepared, *streams) for way in WAYS),
                repeats=1 if quick else 3,
            )
            points.append(
                JoinPoint(
                    window_ms,
                    threshold,
                    len(codes["plain"]),
                    found["plain"].looked_at,
                    {way: its.computed for way, its in found.items()},
                    dict(zip(WAYS, seconds, strict=True)),
                    grid_seconds,
                    {way: kept_us(prepared, way, DELAY_US) * RATE / 1e6 for way in WAYS},
                )
            )
    return points


def report_joins(points: Sequence[JoinPoint]) -> Report:
    """Make the table and the plots."""
    rows = [
        [
            f"{point.window_ms:,} ms, {point.threshold}",
            f"{point.pairs:,}",
            *(f"{_share(point, way):.1f}%" for way in WAYS),
            *(f"{point.seconds[way] * 1e3:,.1f} ms" for way in WAYS),
            f"{point.grid_seconds * 1e3:,.0f} ms",
            f"{point.kept['plain']:,.0f}",
            f"{point.kept['templates']:,.0f}",
        ]
        for point in points
    ]
    return Report(
        "PTJ: pruned against unpruned joins",
        COMPARISON,
        (
            *("d, δ", "pairs"),
            *(f"computed, {way}" for way in WAYS),
            *(f"time, {way}" for way in WAYS),
            *("satisfaction times, once", "kept, plain", "kept, Theorem 4"),
        ),
        rows,
        [
            Picture(
                "ptj-computed",
                "Share of the pairs in the window whose probability is computed, by threshold",
                _draw(points, _share, "probabilities computed, % of the plain window"),
            ),
            Picture(
                "ptj-time",
                "Processor time of the joins by threshold",
                _draw(
                    points,
                    lambda point, way: point.seconds[way] * 1e3,
                    "processor time of the join, ms",
                    is_log=True,
                ),
            ),
        ],
    )


def _share(point: JoinPoint, way: str) -> float:
    return 100 * point.computed[way] / point.reached


def _draw(
    points: Sequence[JoinPoint],
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
            {way: [value(point, way) for point in mine] for way in WAYS},
        )
        axis.set_title(f"d = {window_ms:,} ms", fontsize=10)
        if is_log:
            axis.set_yscale("log")
            show_plain_values(axis)
        else:
            axis.set_ylim(-4, 104)
    add_legend(figure, axes[0])
    return figure
