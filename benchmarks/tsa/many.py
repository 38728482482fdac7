"""Cost of many queries on one pair of streams, in the program alone."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.plotting import add_legend, draw_lines, make_axes, show_plain_ticks
from benchmarks.report import Picture, Report
from benchmarks.tsa.running import start_program
from benchmarks.tsa.texts import MANY
from benchmarks.tsa.workload import (
    Workload,
    area_name,
    cut_by_size,
    draw_arrivals,
    filling_events,
    make_block,
    make_controls,
    query_text,
    seconds_for,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

    from benchmarks.tsa.workload import Arrivals, Cut

COUNTS = (1, 10, 100)
DEADLINES, EQUAL, ONE_AREA = KINDS = ("deadlines", "equal", "one area each")
RATE = 1_000
_BLOCK = 64_000
_MEASURED = 512_000
# The deadlines, in seconds: every smoke is due once for each of them.
_DEADLINES_S = (150, 450)


class ManyPoint(NamedTuple):
    """Measurements of a number of queries.

    Attributes
    ----------
    kind : str
        Difference of the queries: their deadline, their area, or none.
    queries : int
        Number of queries.
    alarms, combinations : int
        Alarms of all queries, and combinations that they looked at.
    seconds : float
        Processor time of the program per event, in s.
    """

    kind: str
    queries: int
    alarms: int
    combinations: int
    seconds: float


def query_texts(kind: str, count: int) -> list[str]:
    """Return queries with deadlines of 150 to 450 s, equal ones, or each on one area.

    A single query is the running example, or the first area.
    """
    if kind == EQUAL:
        return [query_text(keyed=False)] * count
    if kind == ONE_AREA:
        return [query_text(keyed=False, area=area_name(number)) for number in range(count)]
    first, last = _DEADLINES_S
    deadlines = [first + (last - first) * place // max(count - 1, 1) for place in range(count)]
    if count == 1:
        deadlines = [(first + last) // 2]
    return [query_text(keyed=False, deadline=f"{it} s") for it in deadlines]


def measure_many(*, quick: bool) -> list[ManyPoint]:
    """Evaluate 1 to 100 queries on the same blocks."""
    counts = COUNTS[:2] if quick else COUNTS
    rate = RATE // 10 if quick else RATE
    measured = 32_000 if quick else _MEASURED
    block = 8_000 if quick else _BLOCK
    # The longest deadline is kept for longer than the usual one.
    filling = 2 * filling_events(rate)
    drawn = draw_arrivals(Workload(rate, seconds_for(filling + measured, rate)))
    cuts = [*cut_by_size(drawn, filling, block), *cut_by_size(drawn, measured, block, filling)]
    first = -(-filling // block)
    repeats = 1 if quick else 3
    return [
        min(
            (_run(kind, count, drawn, cuts, first) for _ in range(repeats)),
            key=lambda it: it.seconds,
        )
        for kind in KINDS
        for count in counts
    ]


def _run(
    kind: str, count: int, drawn: Sequence[Arrivals], cuts: Sequence[Cut], first: int
) -> ManyPoint:
    program = start_program(keyed=False)
    controls = make_controls(query_texts(kind, count))
    seconds, alarms, combinations = 0.0, 0, 0
    for place, cut in enumerate(cuts):
        block = make_block(drawn, cut, controls, keyed=False)
        controls = []
        begin = time.process_time()
        outcome = program.advance(block, lambda: 0)
        program.snapshot()
        if place >= first:
            seconds += time.process_time() - begin
        alarms, combinations = (
            sum(value for it, _, value in outcome.metrics["counters"] if it == name)
            for name in ("alarms_total", "query_combinations_total")
        )
    measured = sum(cut.size for cut in cuts[first:])
    return ManyPoint(kind, count, alarms, combinations, seconds / measured)


def report_many(points: Sequence[ManyPoint]) -> Report:
    """Build the table and the plot."""
    rows = [
        [
            f"{it.queries}, {it.kind}",
            f"{it.alarms:,}",
            f"{it.combinations:,}",
            f"{it.seconds * 1e9:,.0f} ns",
            f"{1e-6 / it.seconds:.2f}",
            f"{_ratio(it, points):.1f}",
        ]
        for it in points
    ]
    return Report(
        "TSA: many queries on one pair of streams",
        MANY,
        ("queries", "alarms", "combinations", "time of an event", "M events/s", "ratio to one"),
        rows,
        [
            Picture(
                "tsa-queries",
                "Processor time of many queries, divided by that of one query",
                _draw(points),
            )
        ],
    )


def _ratio(point: ManyPoint, points: Sequence[ManyPoint]) -> float:
    one = next(it for it in points if it.kind == point.kind and it.queries == 1)
    return point.seconds / one.seconds


def _draw(points: Sequence[ManyPoint]) -> Figure:
    figure, (axis,) = make_axes("queries", "processor time, divided by that of one query")
    counts = sorted({it.queries for it in points})
    lines = {kind: [_ratio(it, points) for it in points if it.kind == kind] for kind in KINDS}
    draw_lines(axis, counts, lines)
    axis.set_xscale("log")
    show_plain_ticks(axis, counts)
    axis.set_ylim(bottom=0)
    add_legend(figure, axis)
    return figure
