"""Measure the timing join by the number of templates of a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.ptj.comparing import run_joins
from benchmarks.ptj.joins import ONE_BY_ONE, Found, Join
from benchmarks.ptj.texts import SIZES
from benchmarks.ptj.workload import draw_stream, draw_templates, mutual
from benchmarks.report import Report
from correlation.timing.histograms.stored_windows import dump_table

if TYPE_CHECKING:
    from collections.abc import Sequence

# The last number is that of Example 5, as are the deadline and the threshold.
TEMPLATES = (60, 200, 500)
_WINDOW_MS, _THRESHOLD = 1_500, "0.8"
_NARROW_MS, _NARROW_THRESHOLD = 100, "0.1"
# A higher rate than in the other tables, so that a block has work to do.
_RATE = 400
WAYS = (ONE_BY_ONE, "at once", "lazy", "auto")


class SizePoint(NamedTuple):
    """Measurements at one number of templates.

    Attributes
    ----------
    templates : int
        Number of templates of each stream.
    window_ms : int
        d.
    found : mapping of str to Found
        Result of each way; *at once* is lazy without s-windows before the first block.
    learn_seconds : float
        Time to compute the s-windows of all pairs of templates.
    table_bytes, stored_bytes : int
        Size of the s-windows in memory and in the cache.
    """

    templates: int
    window_ms: int
    found: dict[str, Found]
    learn_seconds: float
    table_bytes: int
    stored_bytes: int


def measure_sizes(*, quick: bool) -> list[SizePoint]:
    """Join streams with increasing numbers of templates."""
    points = []
    for count in (40, 50) if quick else TEMPLATES:
        rng = np.random.default_rng(count)
        us, vs = draw_templates(count, rng), draw_templates(count, rng)
        events = 300 if quick else 4_800
        drawn = draw_stream(events, us, rng, _RATE), draw_stream(events, vs, rng, _RATE)
        for window in (mutual(_WINDOW_MS, _THRESHOLD), mutual(_NARROW_MS, _NARROW_THRESHOLD)):
            first = {
                way: Join("lazy" if way == "at once" else way, (us, vs), window) for way in WAYS
            }
            # Run first, without s-windows: the other ways share the table of s-windows.
            found = run_joins({"at once": first["at once"]}, drawn, repeats=1)
            fresh = Join("lazy", (us, vs[::-1]), window)
            learn_seconds = fresh.learn()
            first["lazy"].learn()
            known = {way: join for way, join in first.items() if way != "at once"}
            found |= run_joins(known, drawn, repeats=1 if quick else 3)
            table = first["lazy"].book.table
            points.append(
                SizePoint(
                    count,
                    (window.upper_us or 0) // 1000,
                    found,
                    learn_seconds,
                    table.cells * 16 + table.spans().nbytes,
                    len(dump_table(table)),
                )
            )
    return points


def report_sizes(points: Sequence[SizePoint]) -> Report:
    """Build the table."""
    rows = []
    for point in points:
        looked_at = point.found[ONE_BY_ONE].looked_at
        cells = point.templates**2
        rows.append(
            [
                f"{point.templates:,}, {point.window_ms:,} ms",
                f"{len(point.found[ONE_BY_ONE].pairs):,}",
                f"{looked_at:,}",
                *(f"{point.found[way].missed:,}" for way in WAYS[:2]),
                *(f"{point.found[way].seconds / looked_at * 1e9:.0f} ns" for way in WAYS),
                f"{point.learn_seconds:,.2f} s",
                f"{point.learn_seconds / cells * 1e6:.1f} µs",
                f"{point.table_bytes / 2**20:.1f} MiB",
                f"{point.stored_bytes / 2**20:.1f} MiB",
            ]
        )
    return Report(
        "PTJ: up to 500 templates a stream",
        SIZES,
        (
            *("templates, d", "pairs", "not outside"),
            *("computed, one by one", "computed, at once"),
            *(f"time of each, {way}" for way in WAYS),
            *("all s-windows", "each", "in memory", "stored"),
        ),
        rows,
    )
