"""Memory, state and lists of the whole path while many windows pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from benchmarks.longrun import folder_bytes, gauges
from benchmarks.plotting import add_legend, draw_lines, make_axes
from benchmarks.report import Picture, Report
from benchmarks.stack import Stopwatch, memory_by_program
from benchmarks.swoop.measuring import DifferentAnswersError
from benchmarks.swoop.path_texts import WINDOWS
from benchmarks.swoop.phases import running_job
from benchmarks.swoop.recorded import (
    PARTITIONS,
    SPACING_US,
    generate_sets,
    make_stream,
    window_us_of,
)
from tests.oracle.topk import TokenSet, ranked_pairs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from matplotlib.figure import Figure

    from benchmarks.swoop.phases import Job
    from benchmarks.swoop.recorded import Source
    from correlation.resources.streams import Stream

K = 50
# Sets that are valid at the end: brute force compares all pairs of them.
JUDGED = 2_000
_JAVA = "java"
_MIB = 2**20
_GAUGES = ("topk_stock_pairs", "topk_valid_sets", "topk_lists", "topk_last_value")
# Ids of the older and the newer set, and their overlap.
Named = tuple[int, int, int]


class Course(NamedTuple):
    """Number of sets of a window, of windows, and of windows after which memory is measured."""

    window: int = 10_000
    windows: int = 400
    step: int = 40


QUICK = Course(4_000, 6, 2)


class WindowsPoint(NamedTuple):
    """Measurements after a number of windows.

    Attributes
    ----------
    windows, sets : int
        Number of windows and of sets that have passed.
    rate : float
        Sets per second since the measurement before.
    java, python : int
        Resident memory of the JVM; of the driver and all workers in Python, in bytes.
    checkpoint : int
        Size of the checkpoint, in bytes.
    gauges : mapping of str to float
        Gauges of the slots.
    """

    windows: int
    sets: int
    rate: float
    java: int
    python: int
    checkpoint: int
    gauges: dict[str, float]


def measure_windows(*, quick: bool) -> list[WindowsPoint]:
    """Let the windows pass at full speed, and compare the last list with brute force.

    Raises
    ------
    DifferentAnswersError
        The lists differ.
    """
    course = QUICK if quick else Course()
    source = generate_sets(course.window * course.windows + PARTITIONS)
    window_us = window_us_of(course.window)
    stream = make_stream("sets", source, 1)
    with running_job() as job:
        job.begin(stream, K, window_us, [])
        job.wait_until_read(stream.name)
        points = [
            _pass_windows(job, stream, source, course, windows)
            for windows in range(course.step, course.windows + 1, course.step)
        ]
        as_of_us = _send_last(job, stream, source, (course.window - JUDGED) * SPACING_US)
        check_list(job.end(stream), source, as_of_us - window_us)
    return points


def _pass_windows(
    job: Job, stream: Stream, source: Source, course: Course, windows: int
) -> WindowsPoint:
    """Send the sets of the next windows, and measure when they are evaluated."""
    sets, step = windows * course.window, course.step * course.window
    records = source.records(sets - step, sets)
    watch = Stopwatch(job.process)
    job.on.produce(stream.topic, records)
    job.wait_until_consumed(stream.name, sets)
    wall, _ = watch.read()
    memory = memory_by_program(job.process.pid or 0)
    java = memory.pop(_JAVA, 0)
    found = gauges(job.on, *_GAUGES)
    return WindowsPoint(
        windows, sets, step / wall, java, sum(memory.values()), folder_bytes(job.on), found
    )


def _send_last(job: Job, stream: Stream, source: Source, later_us: int) -> int:
    """Send a last set to each partition, some time after the others.

    Returns
    -------
    int
        Time up to which sets have taken effect, in µs: those before both sets.
    """
    first = len(source.contents) - PARTITIONS
    times = [it * SPACING_US + later_us for it in range(first, first + PARTITIONS)]
    records = [
        (None, source.record(first + it, time_us), (first + it) % PARTITIONS)
        for it, time_us in enumerate(times)
    ]
    job.on.produce(stream.topic, records)
    job.wait_until_consumed(stream.name, first + PARTITIONS)
    return times[0] - 1


def check_list(items: Iterable[dict[str, Any]], source: Source, valid_from_us: int) -> None:
    """Compare a present list with all pairs of the valid sets.

    Parameters
    ----------
    items : iterable of dict
        The list.
    source : Source
        The sets; the last set of each partition has not taken effect.
    valid_from_us : int
        Sets of this recorded time and later ones are valid, in µs.

    Raises
    ------
    DifferentAnswersError
        The lists differ.
    """
    first = -(-valid_from_us // SPACING_US)
    sets = [
        TokenSet(number, number, frozenset(_tokens(source, number)))
        for number in range(first, len(source.contents) - PARTITIONS)
    ]
    wanted = [
        (it.older.number, it.newer.number, len(it.older.tokens & it.newer.tokens))
        for it in ranked_pairs("jaccard", sets, crossed=False)[:K]
    ]
    if not wanted or _named(items) != wanted:
        raise DifferentAnswersError("the last list is not that of all pairs of the valid sets")


def _tokens(source: Source, number: int) -> list[int]:
    """Return the tokens of a generated set as numbers."""
    names: list[str] = source.contents[number]["tokens"]  # type: ignore[assignment]
    return [int(it.removeprefix("t")) for it in names]


def _named(items: Iterable[dict[str, Any]]) -> list[Named]:
    return [(int(it["older"]["id"]), int(it["newer"]["id"]), it["overlap"]) for it in items]


def report_windows(points: Sequence[WindowsPoint]) -> Report:
    """Build the table and the plot."""
    rows = [
        [
            f"{it.windows}",
            f"{it.sets:,}",
            f"{it.rate:,.0f}",
            f"{it.java / _MIB:,.0f} MiB",
            f"{it.python / _MIB:,.0f} MiB",
            f"{it.checkpoint / _MIB:,.1f} MiB",
            f"{it.gauges['state_bytes'] / 1024:,.0f} KiB",
            f"{it.gauges['buffered_events']:,.0f}",
            f"{it.gauges['topk_valid_sets']:,.0f}",
            f"{it.gauges['topk_stock_pairs']:,.0f}",
            f"{it.gauges['topk_last_value']:.3f}",
        ]
        for it in points
    ]
    columns = (
        *("windows", "sets", "sets/s", "JVM", "Python", "checkpoint", "buffer"),
        *("buffered", "valid sets", "stock", "last similarity"),
    )
    picture = Picture("swoop-windows", "Memory by the number of windows", _draw(points))
    return Report("SWOOP: many windows through the whole path", WINDOWS, columns, rows, [picture])


def _draw(points: Sequence[WindowsPoint]) -> Figure:
    figure, (axis,) = make_axes("windows", "MiB")
    lines = {
        "JVM": [it.java / _MIB for it in points],
        "Python": [it.python / _MIB for it in points],
        "checkpoint": [it.checkpoint / _MIB for it in points],
    }
    draw_lines(axis, [it.windows for it in points], lines)
    axis.set_ylim(bottom=0)
    add_legend(figure, axis)
    return figure
