"""Memory and time of naive evaluation, and of incremental with and without garbage collection."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.plotting import add_legend, draw_lines, make_axes, show_plain_values
from benchmarks.report import Picture, Report
from benchmarks.tsa.naive import Naive
from benchmarks.tsa.running import (
    DifferentResultsError,
    gauge,
    processor_seconds,
    result_ids,
    start_program,
)
from benchmarks.tsa.texts import GROWTH
from benchmarks.tsa.workload import (
    MINUTE_US,
    Workload,
    cut_by_time,
    draw_arrivals,
    make_block,
    make_controls,
    query_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.figure import Figure

    from correlation.engine.blocks import Block

NAIVE, HOARDING, COLLECTING = WAYS = ("naive", "without collection", "with collection")
RATE = 25
STEP_US = MINUTE_US
# Lengths of runs, in minutes.
LENGTHS = (10, 20, 40, 80, 160, 320, 640)
# The time of a naive step grows with the square of the run.
NAIVE_MINUTES = 80
_QUICK_LENGTHS, _QUICK_NAIVE_MINUTES = (8, 16, 32), 16


class Size(NamedTuple):
    """Buffers at the end of a run, and the time of its second half.

    Attributes
    ----------
    buffered, nbytes : int
        Buffered events and their bytes.
    seconds : float
        Processor time per event since the length before, in s.
    """

    buffered: int
    nbytes: int
    seconds: float


class GrowthPoint(NamedTuple):
    """Measurements at one length of the run.

    Attributes
    ----------
    minutes, events, alarms : int
        Length of the run, and its events and alarms.
    sizes : mapping of str to Size
        Measurements of each way that was run.
    """

    minutes: int
    events: int
    alarms: int
    sizes: dict[str, Size]


@dataclass
class _Way:
    """A way of evaluation: `take` evaluates a block and returns a reader of the results' ids."""

    take: Callable[[Block], Callable[[], set[bytes]]]
    read_size: Callable[[], tuple[int, int]]
    seconds: float = 0.0
    found: set[bytes] = field(default_factory=set)

    def run(self, block: Block) -> None:
        """Evaluate a block; the ids of the results are read outside the measured time."""
        readers: list[Callable[[], set[bytes]]] = []
        self.seconds += processor_seconds(lambda: readers.append(self.take(block)))
        self.found |= readers[0]()


def _start_naive() -> _Way:
    naive = Naive()

    def take(block: Block) -> Callable[[], set[bytes]]:
        return partial(naive.ids, naive.take(list(block.events)))

    return _Way(take, lambda: (naive.buffered, naive.nbytes))


def _start_program(*, hoarding: bool) -> _Way:
    program = start_program(keyed=False, hoarding=hoarding)
    sizes = [(0, 0)]

    def take(block: Block) -> Callable[[], set[bytes]]:
        outcome = program.advance(block, lambda: 0)
        sizes[0] = gauge(outcome, "buffered_events"), gauge(outcome, "state_bytes")
        return partial(result_ids, outcome)

    return _Way(take, lambda: sizes[0])


def measure_growth(*, quick: bool) -> list[GrowthPoint]:
    """Run all ways on the same blocks, in turns, so that the load of the machine affects all.

    Raises
    ------
    DifferentResultsError
        When two ways have found different alarms.
    """
    lengths = _QUICK_LENGTHS if quick else LENGTHS
    naive_minutes = _QUICK_NAIVE_MINUTES if quick else NAIVE_MINUTES
    _run(Workload(RATE, 600), (10,), 10)  # compiles
    return _run(Workload(RATE, lengths[-1] * 60), lengths, naive_minutes)


def _run(workload: Workload, lengths: Sequence[int], naive_minutes: int) -> list[GrowthPoint]:
    drawn = draw_arrivals(workload)
    ways = {
        NAIVE: _start_naive(),
        HOARDING: _start_program(hoarding=True),
        COLLECTING: _start_program(hoarding=False),
    }
    controls = make_controls([query_text(keyed=False)])
    points: list[GrowthPoint] = []
    events = 0
    for minute, cut in enumerate(cut_by_time(drawn, STEP_US, lengths[-1] * MINUTE_US), 1):
        block = make_block(drawn, cut, controls, keyed=False)
        controls = []
        for way in ways.values():
            way.run(block)
        events += cut.size
        if minute in lengths:
            points.append(_measured(minute, events, ways, points))
        if minute == naive_minutes:
            del ways[NAIVE]
    return points


def _measured(
    minute: int, events: int, ways: dict[str, _Way], points: Sequence[GrowthPoint]
) -> GrowthPoint:
    found = ways[COLLECTING].found
    for name, way in ways.items():
        if way.found != found:
            raise DifferentResultsError(f"{name}, {minute} min: {len(way.found ^ found)} alarms")
    before = points[-1].events if points else 0
    sizes = {}
    for name, way in ways.items():
        sizes[name] = Size(*way.read_size(), way.seconds / (events - before))
        way.seconds = 0.0
    return GrowthPoint(minute, events, len(found), sizes)


def report_growth(points: Sequence[GrowthPoint]) -> Report:
    """Build the table and the plots."""
    rows = [
        [
            f"{point.minutes:,} min",
            f"{point.events:,}",
            f"{point.alarms:,}",
            *_cells(point, lambda size: f"{size.buffered:,}"),
            *_cells(point, lambda size: f"{size.nbytes / 2**20:.1f} MiB"),
            *_cells(point, lambda size: f"{size.seconds * 1e6:,.2f} µs"),
        ]
        for point in points
    ]
    return Report(
        "TSA: naive, incremental, and with garbage collection",
        GROWTH,
        (
            *("stream time", "events", "alarms"),
            *(f"buffered, {way}" for way in WAYS),
            *(f"bytes, {way}" for way in WAYS),
            *(f"time of an event, {way}" for way in WAYS),
        ),
        rows,
        [
            Picture(
                "tsa-memory",
                "Memory of the buffered events by the length of the run",
                _draw(points, lambda size: size.nbytes / 2**20, "buffered events, MiB"),
            ),
            Picture(
                "tsa-time",
                "Processor time of an event by the length of the run",
                _draw(points, lambda size: size.seconds * 1e6, "processor time of an event, µs"),
            ),
        ],
    )


def _cells(point: GrowthPoint, write: Callable[[Size], str]) -> list[str]:
    return [write(point.sizes[way]) if way in point.sizes else "" for way in WAYS]


def _draw(points: Sequence[GrowthPoint], value: Callable[[Size], float], label: str) -> Figure:
    figure, (axis,) = make_axes("stream time, min", label)
    lines = {
        way: [value(it.sizes[way]) if way in it.sizes else float("nan") for it in points]
        for way in WAYS
    }
    draw_lines(axis, [point.minutes for point in points], lines)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xticks([it.minutes for it in points], [f"{it.minutes:,}" for it in points])
    axis.minorticks_off()
    show_plain_values(axis)
    add_legend(figure, axis)
    return figure
