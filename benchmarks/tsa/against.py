"""Compare the whole path with Spark's own left outer join and a filter: CPU time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from benchmarks.path import baseline_process, count_read, measure_process, measure_resources
from benchmarks.plotting import make_axes
from benchmarks.report import Picture, Report
from benchmarks.stack import bench, wait_for
from benchmarks.tsa.path_texts import AGAINST
from benchmarks.tsa.running import check_results
from benchmarks.tsa.workload import (
    DEADLINE_US,
    DELAY_US,
    SECOND_US,
    STREAMS,
    Arrivals,
    Workload,
    draw_arrivals,
    expected_ids,
    filling_events,
    query_resource,
    query_text,
    seconds_for,
    stream_resources,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matplotlib.figure import Figure

    from benchmarks.stack import Bench
    from benchmarks.workload import Records

# Smokes per second of stream time: within five minutes an area has 1, or 10.
RATES = (33, 330)
MEASURED = 1_000_000
_FINISH_SECONDS = 600
OURS = "Coincide"


class Join(NamedTuple):
    """Settings of Spark's join.

    Attributes
    ----------
    name : str
        Name of its topics and log.
    title : str
        Title in the table.
    batch : int
        Max events of a batch.
    properties : mapping of str to str
        Further properties of Spark.
    """

    name: str
    title: str
    batch: int
    properties: dict[str, str] = {}  # noqa: RUF012 - never changed


# The job's limit, and small batches, as in `benchmarks.path`. The job's session compiles with one
# of Java's two compilers, which starts faster; a long join may gain by both.
_BOTH = {"spark.driver.extraJavaOptions": "-XX:+UseSerialGC"}
JOINS = (
    Join("outer-large", "Spark's join, batches of 400,000", 400_000),
    Join("outer-small", "Spark's join, batches of 25,000", 25_000),
    Join("outer-compiled", "Spark's join, batches of 400,000, both compilers", 400_000, _BOTH),
)


class AgainstPoint(NamedTuple):
    """Measurements of one way at one rate.

    Attributes
    ----------
    title : str
        `OURS`, or the title of a join.
    rate, events : int
        Smokes per second of stream time, and number of measured events.
    alarms : int
        Alarms that were checked, including those of the warm-up.
    wall, cpu : float
        Seconds of the measured events.
    """

    title: str
    rate: int
    events: int
    alarms: int
    wall: float
    cpu: float


class Load(NamedTuple):
    """Records of both streams, and the time up to which all ways must have found the alarms."""

    rate: int
    warm: list[Records]
    measured: list[Records]
    smokes: Arrivals
    until_us: int

    def check(self, title: str, found: Iterable[tuple[str, int]], cost: Cost) -> AgainstPoint:
        """Compare the ids and times of alarms with those expected."""
        ids = {name.encode() for name, at_us in found if at_us <= self.until_us}
        check_results(ids, self.smokes, self.until_us, title)
        return AgainstPoint(title, self.rate, sum(map(len, self.measured)), len(ids), *cost)


Cost = tuple[float, float]


def draw_load(rate: int, measured: int) -> Load:
    """Draw the events; those of the warm-up fill the window."""
    filling = filling_events(rate)
    drawn = draw_arrivals(Workload(rate, seconds_for(filling + measured, rate)))
    middle_us = filling * SECOND_US // (2 * rate)
    middles = [int((it.arrival_us < middle_us).sum()) for it in drawn]
    # With a margin, so that it does not depend on the rules at the end of the streams.
    until_us = min(int(it.time_us.max()) for it in drawn) - DEADLINE_US - 3 * DELAY_US
    return Load(
        rate,
        [it.records(0, middle) for it, middle in zip(drawn, middles, strict=True)],
        [it.records(middle, len(it)) for it, middle in zip(drawn, middles, strict=True)],
        drawn[0],
        until_us,
    )


def measure_against(*, quick: bool) -> list[AgainstPoint]:
    """Measure all ways on the same events, one after the other."""
    points = []
    for rate in RATES[:1] if quick else RATES:
        load = draw_load(rate, 20_000 if quick else MEASURED)
        with bench() as on:
            points.append(_measure_job(on, load))
            points += [_measure_join(on, load, join) for join in (JOINS[:1] if quick else JOINS)]
    return points


def _measure_job(on: Bench, load: Load) -> AgainstPoint:
    topics = (f"events-{STREAMS[0]}", f"events-{STREAMS[1]}")
    on.create_topics(dict.fromkeys(topics, 1))
    resources = [*stream_resources(), query_resource(query_text(keyed=False))]
    cost = measure_resources(on, resources, load.warm, load.measured, topics=topics)
    return load.check(OURS, read_alarms(on), cost)


def read_alarms(on: Bench) -> list[tuple[str, int]]:
    """Return id and time of the smoke of each alarm of the job."""
    smokes = [alarm["events"]["s"] for alarm in on.read_values(on.topics.alarms)]
    return [(it["id"], it["latest"]) for it in smokes]


def _measure_join(on: Bench, load: Load, join: Join) -> AgainstPoint:
    topics = (f"{join.name}-smoke", f"{join.name}-report")
    on.create_topics(dict.fromkeys((*topics, join.name), 1))
    arguments = [*topics, join.name, str(DEADLINE_US), str(DELAY_US)]
    process = baseline_process(
        on, "benchmarks.tsa.outer_join", arguments, join.name, join.batch, join.properties
    )
    wanted = len(expected_ids(load.smokes, load.until_us))

    def read() -> list[tuple[str, int]]:
        return [(it["id"], it["latest"]) for it in on.read_values(join.name)]

    def has_found_all() -> bool:
        return sum(at_us <= load.until_us for _, at_us in read()) >= wanted

    cost = measure_process(
        process,
        on,
        topics,
        (load.warm, load.measured),
        lambda: count_read(process),
        # The last alarms come in a batch after the last events.
        lambda: wait_for(process, has_found_all, _FINISH_SECONDS),
    )
    return load.check(join.title, read(), cost)


def report_against(points: Sequence[AgainstPoint]) -> Report:
    """Build the table and the plot."""
    own = {it.rate: it.cpu for it in points if it.title == OURS}
    rows = [
        [
            f"2 x {it.rate}/s: {it.title}",
            f"{it.events:,}",
            f"{it.alarms:,}",
            f"{it.wall:.1f} s",
            f"{it.cpu:.1f} s",
            f"{it.events / it.cpu:,.0f}",
            f"{it.cpu / own[it.rate]:.1f}",
        ]
        for it in points
    ]
    return Report(
        "TSA: the whole path against Spark's outer join and a filter",
        AGAINST,
        ("", "events", "alarms", "wall", "CPU", "events / CPU s", "CPU, ratio"),
        rows,
        [
            Picture(
                "tsa-spark",
                "Events per CPU second of Coincide and of Spark's outer join",
                _draw(points),
            )
        ],
    )


def _draw(points: Sequence[AgainstPoint]) -> Figure:
    rates = sorted({it.rate for it in points})
    figure, axes = make_axes("events per CPU second", "", len(rates))
    for axis, rate in zip(axes, rates, strict=True):
        mine = [it for it in points if it.rate == rate][::-1]
        bars = axis.barh([it.title for it in mine], [it.events / it.cpu for it in mine])
        axis.bar_label(bars, fmt="{:,.0f}", padding=3)
        axis.margins(x=0.65)
        axis.set_title(f"2 x {rate} events/s", fontsize=10)
    return figure
