"""Cost of a hundred queries on one pair of streams, through the whole path."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from benchmarks.path import measure_resources
from benchmarks.plotting import make_axes
from benchmarks.report import Picture, Report
from benchmarks.stack import bench
from benchmarks.tsa.against import MEASURED, RATES, draw_load
from benchmarks.tsa.many import DEADLINES, KINDS, query_texts
from benchmarks.tsa.path_texts import SHARING
from benchmarks.tsa.workload import STREAMS, query_resource, stream_resources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

QUERIES = 100


class SharingPoint(NamedTuple):
    """Measurements of a number of queries.

    Attributes
    ----------
    kind : str
        Difference of the queries: see `benchmarks.tsa.many`.
    queries, events, alarms : int
        Number of queries, of measured events, and of alarms with those of the warm-up.
    wall, cpu : float
        Seconds of the measured events.
    """

    kind: str
    queries: int
    events: int
    alarms: int
    wall: float
    cpu: float


def measure_sharing(*, quick: bool) -> list[SharingPoint]:
    """Measure one query, and many queries of each kind, on the same events."""
    load = draw_load(RATES[0], 20_000 if quick else MEASURED)
    events = sum(map(len, load.measured))
    topics = (f"events-{STREAMS[0]}", f"events-{STREAMS[1]}")
    count = 10 if quick else QUERIES
    points = []
    for kind, number in [(DEADLINES, 1), *((kind, count) for kind in KINDS)]:
        queries = [
            query_resource(text, f"query-{place}")
            for place, text in enumerate(query_texts(kind, number))
        ]
        with bench() as on:
            on.create_topics(dict.fromkeys(topics, 1))
            registered = [*stream_resources(), *queries]
            cost = measure_resources(on, registered, load.warm, load.measured, topics=topics)
            alarms = on.count_committed(on.topics.alarms)
        points.append(SharingPoint(kind, number, events, alarms, *cost))
    return points


def report_sharing(points: Sequence[SharingPoint]) -> Report:
    """Build the table and the plot."""
    one = points[0]
    return Report(
        "TSA: many queries through the whole path",
        SHARING,
        ("queries", "events", "alarms", "wall", "CPU", "CPU, ratio"),
        [
            [
                _title(it),
                f"{it.events:,}",
                f"{it.alarms:,}",
                f"{it.wall:.1f} s",
                f"{it.cpu:.1f} s",
                f"{it.cpu / one.cpu:.1f}",
            ]
            for it in points
        ],
        [
            Picture(
                "tsa-sharing",
                "CPU time of many queries, divided by that of one query",
                _draw(points),
            )
        ],
    )


def _title(point: SharingPoint) -> str:
    return "1" if point.queries == 1 else f"{point.queries}, {point.kind}"


def _draw(points: Sequence[SharingPoint]) -> Figure:
    figure, (axis,) = make_axes("CPU time, divided by that of one query", "")
    mine = points[::-1]
    bars = axis.barh([_title(it) for it in mine], [it.cpu / points[0].cpu for it in mine])
    axis.bar_label(bars, fmt="{:.1f}", padding=3)
    axis.margins(x=0.15)
    return figure
