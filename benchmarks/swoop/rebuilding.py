"""Construction of the stock in bulk against single insertions, and memory."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.report import Report
from benchmarks.swoop.measuring import BASE, BASE_LIMIT, SWOOP, Shape, check_answers, make_operator
from benchmarks.swoop.rates import QUICK_LENGTHS, QUICK_WINDOWS, WINDOWS
from benchmarks.swoop.texts import REBUILDING
from benchmarks.swoop.workload import draw_sets

if TYPE_CHECKING:
    from collections.abc import Sequence

_LENGTHS = (50, 1_000)


class RebuildPoint(NamedTuple):
    """Measurements at one window and k.

    Attributes
    ----------
    shape : Shape
        What is joined.
    bulk_seconds, single_seconds : float
        Processor time to build the stock in bulk, and by inserting the sets of the window.
    stock, nbytes : int
        Size of the stock, and memory of all arrays after the insertions.
    base_nbytes : int
        Memory of the pairs of `base`; 0: not measured.
    """

    shape: Shape
    bulk_seconds: float
    single_seconds: float
    stock: int
    nbytes: int
    base_nbytes: int


def measure_rebuilding(*, quick: bool) -> list[RebuildPoint]:
    """Build the stock in both ways, which must agree."""
    points = []
    for window in QUICK_WINDOWS if quick else WINDOWS:
        stream = draw_sets(window)
        base_nbytes = 0
        if window <= BASE_LIMIT:
            base = make_operator(BASE, stream, Shape(window, 1))
            base.fill(window)
            base_nbytes = 16 * base.stock_size
        for k in QUICK_LENGTHS if quick else _LENGTHS:
            shape = Shape(window, k)
            bulk, single = (make_operator(SWOOP, stream, shape) for _ in range(2))
            # The first call of a kernel loads it.
            make_operator(SWOOP, stream, shape).fill(10)
            begin = time.process_time()
            bulk.fill(window)
            middle = time.process_time()
            single.insert(window)
            end = time.process_time()
            check_answers(bulk.list_pairs(), single.list_pairs(), f"{shape}")
            points.append(
                RebuildPoint(
                    shape,
                    middle - begin,
                    end - middle,
                    single.stock_size,
                    single.nbytes,
                    base_nbytes,
                )
            )
    return points


def report_rebuilding(points: Sequence[RebuildPoint]) -> Report:
    """Build the table."""
    return Report(
        "SWOOP: construction in bulk, and memory",
        REBUILDING,
        (
            *("window, k", "in bulk", "by insertion", "ratio"),
            *("stock", "most pairs, k a set", "memory", "memory of base's pairs"),
        ),
        [
            [
                f"{point.shape.window:,}, {point.shape.k:,}",
                f"{point.bulk_seconds:,.3g} s",
                f"{point.single_seconds:,.3g} s",
                f"{point.single_seconds / max(point.bulk_seconds, 1e-9):,.1f}",
                f"{point.stock:,}",
                f"{point.shape.window * point.shape.k:,}",
                f"{point.nbytes / 2**20:,.1f} MiB",
                f"{point.base_nbytes / 2**20:,.0f} MiB" if point.base_nbytes else "",
            ]
            for point in points
        ],
    )
