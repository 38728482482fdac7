"""The operator that computes its stock again when it runs dry, by the number of spare pairs."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.report import Report
from benchmarks.swoop.measuring import REFILL, SWOOP, Shape, check_answers
from benchmarks.swoop.refill import REFILLS, Refill
from benchmarks.swoop.texts import SPARES
from benchmarks.swoop.window import Operator, Swoop, take_sets
from benchmarks.swoop.workload import add_bursts, draw_sets, read_messages
from correlation.topk.similarities import JACCARD

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

STREAMS = ("stable", "bursts", "messages")
# Spare pairs as parts of k.
PARTS = (0, 0.1, 1, 4)
_WINDOW, _K, _SETS, _PIECE = 10_000, 50, 40_000, 100


class SparePoint(NamedTuple):
    """Measurements of one operator on one stream.

    Attributes
    ----------
    stream : str
        One of STREAMS.
    name : str
        The operator.
    rate : float
        Sets per second of processor time, over all sets.
    max_ms : float
        Maximum processor time of 100 sets.
    refills : int or None
        Number of computations from scratch; None: the operator has none.
    """

    stream: str
    name: str
    rate: float
    max_ms: float
    refills: int | None


def measure_spares(*, quick: bool) -> list[SparePoint]:
    """Run the operator with different numbers of spare pairs."""
    window, k, sets = (500, 10, 2_000) if quick else (_WINDOW, _K, _SETS)
    shape = Shape(window, k)
    points = []
    for name in STREAMS:
        if name == "messages":
            stream = take_sets(read_messages(distinct=True), 0, window + sets)
        else:
            stream = draw_sets(window + sets)
        if name == "bursts":
            stream = add_bursts(stream, every=2 * window, size=2 * k)
        makers: dict[str, Callable[[], Operator]] = {
            SWOOP: partial(Swoop, stream, k, window - 1, JACCARD)
        }
        for part in PARTS:
            makers[f"{REFILL}, {part * k:g} spare"] = partial(
                Refill, stream, k, window - 1, JACCARD, spare=int(part * k)
            )
        points += _run(name, makers, shape, sets)
    return points


def _run(
    stream: str, makers: dict[str, Callable[[], Operator]], shape: Shape, sets: int
) -> list[SparePoint]:
    points, wanted = [], None
    for name, make in makers.items():
        # The first call of a kernel loads it.
        operator = make()
        operator.insert(1)
        operator = make()
        operator.fill(shape.window)
        seconds = np.empty(sets // _PIECE)
        for place in range(len(seconds)):
            begin = time.process_time()
            operator.insert(_PIECE)
            seconds[place] = time.process_time() - begin
        wanted = operator.list_pairs() if wanted is None else wanted
        check_answers(operator.list_pairs(), wanted, f"{stream}, {name}")
        refills = int(operator.totals[REFILLS]) if isinstance(operator, Refill) else None
        points.append(
            SparePoint(stream, name, sets / seconds.sum(), 1e3 * float(seconds.max()), refills)
        )
    return points


def report_spares(points: Sequence[SparePoint]) -> Report:
    """Build the table."""
    return Report(
        "SWOOP: a stock that is computed again when it runs dry",
        SPARES,
        ("stream, operator", "sets/s", "max of 100 sets", "from scratch"),
        [
            [
                f"{point.stream}, {point.name}",
                f"{point.rate:,.0f}",
                f"{point.max_ms:,.2f} ms",
                "" if point.refills is None else f"{point.refills:,}",
            ]
            for point in points
        ],
    )
