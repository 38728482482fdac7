"""Speed of the program alone, without Kafka and Spark, on the running example with 10,000 areas."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import orjson

from benchmarks.plotting import add_legend, draw_lines, make_axes
from benchmarks.report import Picture, Report
from benchmarks.tsa.running import check_results, gauge, result_ids, start_program
from benchmarks.tsa.texts import ALONE
from benchmarks.tsa.workload import (
    DEADLINE_US,
    DELAY_US,
    Arrivals,
    Cut,
    Workload,
    cut_by_size,
    draw_arrivals,
    filling_events,
    make_block,
    make_controls,
    query_text,
    seconds_for,
)
from correlation.buffers.events import Events
from correlation.engine.blocks import Block

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

PHASES = ("unpacking", "evaluation", "snapshot", "records")
KEYLESS, KEYED = "variable", "join key"
# Smokes per second of stream time. Within five minutes an area has 1 smoke, or 30.
RATES = (33, 1_000)
BLOCKS = (1_000, 4_000, 16_000, 64_000, 256_000)
# The window is filled first; this number of events is measured.
MEASURED = 1_024_000
# Block size of the measurements at the other rates.
_USUAL_BLOCK = 64_000
_REPEATS = 3
_QUICK_PART = 10


class AlonePoint(NamedTuple):
    """Measurements of one form of the query, at one rate and block size.

    Attributes
    ----------
    form : str
        Whether the area is a variable of key-less streams, or the join key.
    rate, block : int
        Smokes per second, and events of a block.
    buffered, alarms : int
        Buffered events at the end, and alarms of the whole run.
    events : int
        Number of measured events.
    seconds : mapping of str to float
        Processor time of each phase, of the fastest run.
    """

    form: str
    rate: int
    block: int
    buffered: int
    alarms: int
    events: int
    seconds: dict[str, float]

    @property
    def speed(self) -> float:
        """Events per second of all phases."""
        return self.events / sum(self.seconds.values())


def measure_alone(*, quick: bool) -> list[AlonePoint]:
    """Measure both forms by block size at the high rate, and at the low rate."""
    low, high = (rate // _QUICK_PART for rate in RATES) if quick else RATES
    blocks = BLOCKS[1:3] if quick else BLOCKS
    usual = blocks[-1] if quick else _USUAL_BLOCK
    measured = 32_000 if quick else MEASURED
    repeats = 1 if quick else _REPEATS
    cases = [(low, usual), *((high, block) for block in blocks)]
    return [
        _measure(form, rate, block, measured, repeats)
        for rate, block in cases
        for form in (KEYLESS, KEYED)
    ]


def _measure(form: str, rate: int, block: int, measured: int, repeats: int) -> AlonePoint:
    keyed = form == KEYED
    filling = filling_events(rate)
    drawn = draw_arrivals(Workload(rate, seconds_for(filling + measured, rate), keyed))
    texts = [query_text(keyed=keyed)]
    # Kernels are compiled while the window is filled.
    cuts = [*cut_by_size(drawn, filling, block), *cut_by_size(drawn, measured, block, filling)]
    first = -(-filling // block)
    runs = [_run(texts, drawn, cuts, first, keyed=keyed) for _ in range(repeats)]
    best = min(runs, key=lambda it: sum(it.seconds.values()))
    return best._replace(form=form, rate=rate, block=block)


def _run(
    texts: Sequence[str], drawn: Sequence[Arrivals], cuts: Sequence[Cut], first: int, *, keyed: bool
) -> AlonePoint:
    """Evaluate all blocks; measure those from `first` on."""
    program = start_program(keyed=keyed)
    controls = make_controls(texts)
    found: set[bytes] = set()
    seconds = dict.fromkeys(PHASES, 0.0)
    buffered = 0
    for place, cut in enumerate(cuts):
        block = make_block(drawn, cut, controls, keyed=keyed)
        controls = []
        blobs = [part.to_bytes() for part in block.events]
        marks = [time.process_time()]
        events = [Events.from_bytes(blob) for blob in blobs]
        marks.append(time.process_time())
        outcome = program.advance(Block(block.controls, events, block.progress), lambda: 0)
        marks.append(time.process_time())
        program.snapshot()
        marks.append(time.process_time())
        for result in outcome.results:
            list(result.records(outcome.detected_at_us, orjson.dumps))
        marks.append(time.process_time())
        if place >= first:
            for phase, begin, end in zip(PHASES, marks, marks[1:], strict=False):
                seconds[phase] += end - begin
        found |= result_ids(outcome)
        buffered = gauge(outcome, "buffered_events")
    until_us = known_until_us(drawn, cuts[-1])
    check_results(found, drawn[0], until_us, f"keyed={keyed}")
    events_measured = sum(cut.size for cut in cuts[first:])
    return AlonePoint("", 0, 0, buffered, len(found), events_measured, seconds)


def known_until_us(drawn: Sequence[Arrivals], cut: Cut) -> int:
    """Return the time up to which the alarms are known after a block."""
    smoke, report = (
        int(it.time_us[:end].max()) - DELAY_US - 1 for it, end in zip(drawn, cut.ends, strict=True)
    )
    return min(smoke, report - DEADLINE_US)


def report_alone(points: Sequence[AlonePoint]) -> Report:
    """Build the table and the plot."""
    rows = [
        [
            f"{it.form}, 2 x {it.rate:,}/s, {it.block:,}",
            f"{it.buffered:,}",
            f"{it.alarms:,}",
            *(f"{it.seconds[phase] / it.events * 1e9:,.0f} ns" for phase in PHASES),
            f"{it.speed / 1e6:.2f}",
        ]
        for it in points
    ]
    return Report(
        "TSA: the program alone, 10,000 areas",
        ALONE,
        (
            *("area is, rate, block", "buffered", "alarms"),
            *(f"{phase}, an event" for phase in PHASES),
            "M events/s",
        ),
        rows,
        [
            Picture(
                "tsa-speed",
                "Events per second of the program alone by the size of its blocks",
                _draw([it for it in points if it.rate == max(it.rate for it in points)]),
            )
        ],
    )


def _draw(points: Sequence[AlonePoint]) -> Figure:
    figure, (axis,) = make_axes("events of a block", "M events/s on one core")
    blocks = sorted({it.block for it in points})
    lines = {
        f"area is {'a variable' if form == KEYLESS else 'the join key'}": [
            it.speed / 1e6 for it in points if it.form == form
        ]
        for form in (KEYLESS, KEYED)
    }
    draw_lines(axis, blocks, lines)
    axis.set_xscale("log")
    axis.set_xticks(blocks, [f"{it:,}" for it in blocks])
    axis.minorticks_off()
    axis.set_ylim(bottom=0)
    add_legend(figure, axis)
    return figure
