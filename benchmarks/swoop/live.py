"""Time from the sending of a set to the receipt of the changes that it causes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.report import Report
from benchmarks.response import Reader, send_steadily
from benchmarks.stack import Stopwatch, wait_for
from benchmarks.swoop.backlog import GROUPS
from benchmarks.swoop.path_texts import LIVE
from benchmarks.swoop.recorded import (
    PARTITIONS,
    changes_topic,
    generate_sets,
    make_stream,
    window_us_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from benchmarks.swoop.phases import Job
    from benchmarks.swoop.recorded import Source
    from benchmarks.workload import Records

# Enough pairs enter for a p99 within seconds.
K = 1_000
RATES = (200, 1_000)
_PERCENTILES = (50, 90, 99, 100)
_SECOND_US = 1_000_000


class Phases(NamedTuple):
    """Number of sets of the window, and seconds of the warm-up and of the measurement."""

    window: int = 10_000
    warm: int = 6
    measured: int = 15


QUICK = Phases(1_000, 3, 5)


class LivePoint(NamedTuple):
    """Measurements of a rate.

    Attributes
    ----------
    rate, groups : int
        Sets per second, and groups of the grid.
    entered : int
        Number of pairs that entered because of a set.
    busy : float
        CPU seconds of the job per second.
    found, received : list of float
        p50, p90, p99 and maximum of the time until the change was found, and until it was received,
        in seconds.
    """

    rate: int
    groups: int
    entered: int
    busy: float
    found: list[float]
    received: list[float]


def measure_live(job: Job, *, quick: bool) -> list[LivePoint]:
    """Measure each rate with one group and with two."""
    phases = QUICK if quick else Phases()
    rates = RATES[:1] if quick else RATES
    count = phases.window + (phases.warm + phases.measured + 1) * max(rates)
    source = generate_sets(count)
    return [measure_rate(job, source, rate, groups, phases) for rate in rates for groups in GROUPS]


def measure_rate(job: Job, source: Source, rate: int, groups: int, phases: Phases) -> LivePoint:
    """Fill the window, then send sets at a rate, each with the time at which it is sent."""
    spacing_us, on = _SECOND_US // rate, job.on
    stream = make_stream(f"live-{rate}-{groups}", source, groups, "live")
    window_us = window_us_of(phases.window, spacing_us)
    changes = changes_topic(stream)

    def draw(first: int, count: int, now_us: int) -> Iterator[tuple[str, None, bytes, int]]:
        for number in range(first, first + count):
            value = source.record(number, now_us + number - first)
            yield stream.topic, None, value, number % PARTITIONS

    job.begin(stream, K, window_us, [])
    job.wait_until_read(stream.name)
    with Reader(on, changes, entered_us) as reader:
        on.produce(stream.topic, _past_records(source, phases.window, spacing_us))
        first = send_steadily(on, phases.warm, rate, draw, phases.window)
        job.wait_until_consumed(stream.name, first)
        begin_us = time.time_ns() // 1_000
        watch = Stopwatch(job.process)
        sent = send_steadily(on, phases.measured, rate, draw, first)
        wall, cpu = watch.read()
        job.wait_until_consumed(stream.name, sent)
        job.end(stream)
        wait_for(job.process, lambda: reader.count >= on.count_committed(changes), 60)
    entered = sum(row[0] >= begin_us for row in reader.rows)
    percentiles = reader.percentiles(begin_us, _PERCENTILES)
    return LivePoint(rate, groups, entered, cpu / wall, *percentiles)


def _past_records(source: Source, window: int, spacing_us: int) -> Records:
    """Return the sets of a window, with the times of a steady rate until now."""
    now_us = time.time_ns() // 1_000
    return [
        (None, source.record(it, now_us - (window - it) * spacing_us), it % PARTITIONS)
        for it in range(window)
    ]


def entered_us(change: Mapping[str, Any]) -> int | None:
    """Return the time of the set because of which a pair entered; None for other changes."""
    if (change["change"], change["reason"]) != ("entered", "set"):
        return None
    time_us: int = change["newer"]["time"]
    return time_us


def report_live(points: Sequence[LivePoint]) -> Report:
    """Build the table."""
    titles = ("p50", "p90", "p99", "max")
    return Report(
        "SWOOP: response time of the whole path",
        LIVE,
        (
            *("sets/s, groups", "pairs", "CPU", *(f"found, {it}" for it in titles)),
            *(f"received, {it}" for it in titles),
        ),
        [
            [
                f"{it.rate:,}, {it.groups}",
                f"{it.entered:,}",
                f"{it.busy:.0%}",
                *(f"{seconds:.2f} s" for seconds in (*it.found, *it.received)),
            ]
            for it in points
        ],
    )
