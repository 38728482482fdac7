"""Sets per second of the whole path, from a backlog in Kafka, with one group and with several."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.plotting import make_axes
from benchmarks.report import Picture, Report
from benchmarks.stack import Stopwatch, bench, consumed, job_process, wait_for
from benchmarks.swoop.alone import Alone
from benchmarks.swoop.measuring import DifferentAnswersError
from benchmarks.swoop.path_texts import BACKLOG
from benchmarks.swoop.recorded import (
    PARTITIONS,
    TOPIC,
    generate_sets,
    make_resources,
    make_stream,
    read_texts,
    window_us_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from matplotlib.figure import Figure

    from benchmarks.stack import Bench
    from benchmarks.swoop.alone import Steps
    from benchmarks.swoop.recorded import Source

PRESENT = "topk.current"
GROUPS = (1, 2)
_WAIT_SECONDS = 600


class Load(NamedTuple):
    """Sizes of a run.

    Attributes
    ----------
    window : int
        Number of valid sets.
    batch : int
        Max number of sets of a batch.
    warm, measured : int
        Number of sets before the measurement and in it.
    """

    window: int = 10_000
    batch: int = 20_000
    warm: int = 60_000
    measured: int = 160_000

    @property
    def sets(self) -> int:
        """Number of all sets."""
        return self.warm + self.measured


QUICK = Load(2_000, 5_000, 10_000, 20_000)


class BacklogPoint(NamedTuple):
    """Measurements of a condition.

    Attributes
    ----------
    source : str
        Name of the sets.
    k, groups : int
        Length of the list, and groups of the grid.
    sets : int
        Number of measured sets.
    wall, cpu : float
        Seconds of the measured sets.
    alone : Steps
        Processor time of a set without Kafka and Spark.
    """

    source: str
    k: int
    groups: int
    sets: int
    wall: float
    cpu: float
    alone: Steps


def measure_backlogs(*, quick: bool) -> list[BacklogPoint]:
    """Measure generated sets and messages, each with one group and with two.

    Raises
    ------
    DifferentAnswersError
        The last lists of both differ.
    """
    load = QUICK if quick else Load()
    generated = generate_sets(load.sets)
    wanted = [(generated, 50)]
    if not quick:
        messages = read_texts(load.sets)
        wanted += [(generated, 1_000), (messages, 50), (messages, 1_000)]
    points = []
    for source, k in wanted:
        lists = []
        for groups in GROUPS:
            point, present = measure_backlog(source, k, groups, load)
            points.append(point)
            lists.append(present)
        if lists[0] != lists[1] or not lists[0]:
            raise DifferentAnswersError(f"{source.name}, k = {k}: lists of 1 and 2 groups differ")
    return points


def measure_backlog(
    source: Source, k: int, groups: int, load: Load
) -> tuple[BacklogPoint, list[dict[str, Any]]]:
    """Measure a condition; return the measurements and the last list.

    The job starts when all records are in Kafka. The measurement begins between two batches, when
    the job has evaluated the sets of the warm-up.
    """
    window_us = window_us_of(load.window)
    with bench() as on:
        on.create_topics({TOPIC: PARTITIONS})
        on.produce(TOPIC, source.records(0, load.sets))
        on.register(*make_resources(make_stream(source, groups), k, window_us))
        job = job_process(on, max_events_per_batch=load.batch)
        job.start()
        try:
            wait_for(job, partial(has_consumed, on, load.warm), _WAIT_SECONDS)
            watch, before = Stopwatch(job), consumed(on)
            wait_for(job, partial(has_consumed, on, load.sets), _WAIT_SECONDS)
            wall, cpu = watch.read()
        finally:
            job.stop(60)
        present = on.read_values(on.topics.channel_topic(PRESENT))[-1]["items"]
    alone = Alone(source, k, window_us, groups)
    # The first batch fills the window, and compiles the kernels.
    alone.take(load.batch)
    steps = alone.measure(load.batch, 1)
    point = BacklogPoint(source.name, k, groups, load.sets - before, wall, cpu, steps)
    return point, present


def has_consumed(on: Bench, sets: int) -> bool:
    """Return whether the slots have evaluated a number of sets."""
    return consumed(on) >= sets


def report_backlogs(points: Sequence[BacklogPoint]) -> Report:
    """Build the table and the plot."""
    one = {(it.source, it.k): it.cpu / it.sets for it in points if it.groups == 1}
    rows = []
    for it in points:
        cost = it.cpu / it.sets
        alone = (it.alone.reading, it.alone.slots, it.alone.operator, it.alone.merging)
        rows.append(
            [
                _title(it),
                f"{it.sets:,}",
                f"{it.sets / it.wall:,.0f}",
                f"{it.sets / it.cpu:,.0f}",
                f"{cost / one[it.source, it.k]:.2f}",
                f"{cost * 1e6:.1f} µs",
                *(f"{part * 1e6:.1f} µs" for part in alone),
                f"{it.alone.operator / cost:.0%}",
            ]
        )
    columns = (
        *("sets, k, groups", "sets", "sets/s", "sets / CPU s", "CPU, ratio", "CPU of a set"),
        *("reading", "slots", "operator", "merging", "operator of all"),
    )
    picture = Picture("swoop-path", "CPU time of a set in the whole path", _draw(points))
    return Report("SWOOP: the whole path", BACKLOG, columns, rows, [picture])


def _title(point: BacklogPoint) -> str:
    return f"{point.source}, {point.k:,}, {point.groups}"


def _draw(points: Sequence[BacklogPoint]) -> Figure:
    figure, (axis,) = make_axes("CPU time of a set, µs", "")
    mine = points[::-1]
    titles = [_title(it) for it in mine]
    operator = [it.alone.operator * 1e6 for it in mine]
    bars = axis.barh(titles, [it.cpu / it.sets * 1e6 for it in mine], label="whole path")
    axis.barh(titles, operator, height=0.4, color="#e69f00", label="operator alone")
    axis.bar_label(bars, fmt="{:.0f}", padding=3)
    axis.margins(x=0.15)
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return figure
