"""Sets per second of the whole path, from a backlog in Kafka, with one group and with several."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from benchmarks.plotting import make_axes
from benchmarks.report import Picture, Report
from benchmarks.stack import Stopwatch, consumed
from benchmarks.swoop.alone import Alone
from benchmarks.swoop.measuring import DifferentAnswersError
from benchmarks.swoop.path_texts import BACKLOG
from benchmarks.swoop.phases import BATCH
from benchmarks.swoop.recorded import generate_sets, make_stream, read_texts, window_us_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from matplotlib.figure import Figure

    from benchmarks.swoop.alone import Steps
    from benchmarks.swoop.phases import Job
    from benchmarks.swoop.recorded import Source

GROUPS = (1, 2)


class Load(NamedTuple):
    """Sizes of a run.

    Attributes
    ----------
    window : int
        Number of valid sets.
    warm, measured : int
        Number of sets before the measurement and in it.
    """

    window: int = 10_000
    warm: int = 40_000
    measured: int = 80_000

    @property
    def sets(self) -> int:
        """Number of all sets."""
        return self.warm + self.measured


# By k: sets take longer with lists of 1,000 pairs.
LOADS = {50: Load(), 1_000: Load(warm=20_000, measured=40_000)}
QUICK = Load(2_000, 20_000, 40_000)


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


def measure_backlogs(job: Job, *, quick: bool) -> list[BacklogPoint]:
    """Measure generated sets and messages, each with one group and with two.

    Raises
    ------
    DifferentAnswersError
        The last lists of both differ.
    """
    loads = {50: QUICK} if quick else LOADS
    most = max(it.sets for it in loads.values())
    sources = [generate_sets(most)] if quick else [generate_sets(most), read_texts(most)]
    if not quick:
        # The JVM compiles its code while the first batches run.
        measure_backlog(job, sources[0]._replace(name="warm-up"), 50, 1, QUICK)
    points = []
    for source in sources:
        for k, load in loads.items():
            lists = []
            for groups in GROUPS:
                point, present = measure_backlog(job, source, k, groups, load)
                points.append(point)
                lists.append(present)
            if lists[0] != lists[1] or not lists[0]:
                raise DifferentAnswersError(f"{source.name}, k = {k}: lists of 1 and 2 groups")
    return points


def measure_backlog(
    job: Job, source: Source, k: int, groups: int, load: Load
) -> tuple[BacklogPoint, list[dict[str, Any]]]:
    """Measure a condition; return the measurements and the last list, without streams.

    All records are in Kafka when the job begins to read them. The measurement begins between two
    batches, when the job has evaluated the sets of the warm-up.
    """
    window_us = window_us_of(load.window)
    stream = make_stream(f"{source.name}-{k}-{groups}", source, groups)
    job.begin(stream, k, window_us, source.records(0, load.sets))
    job.wait_until_consumed(stream.name, load.warm)
    watch, before = Stopwatch(job.process), consumed(job.on, stream.name)
    job.wait_until_consumed(stream.name, load.sets)
    wall, cpu = watch.read()
    present = [_without_streams(it) for it in job.end(stream)]
    alone = Alone(source, k, window_us, groups)
    # The first batch fills the window, and compiles the kernels.
    alone.take(BATCH)
    steps = alone.measure(BATCH, 1)
    return BacklogPoint(source.name, k, groups, load.sets - before, wall, cpu, steps), present


def _without_streams(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item of a list without the names of its streams, which depend on the groups."""
    ids = {name: item[name]["id"] for name in ("older", "newer")}
    return {**item, **ids}


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
