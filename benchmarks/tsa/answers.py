"""When the answers come, in stream time: the whole path against Spark's outer join and a filter.

An evening, a night and a morning. By day smokes are frequent and most are reported. By night the
house is empty: reports are missing, and each of the few smokes is an alarm. Events are sent in
steps of stream time; an answer belongs to the step after which it can be read. At the end of each
step the sources of Coincide's streams send a heartbeat. Spark has no input for them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import orjson

from benchmarks.path import baseline_process, read_state
from benchmarks.plotting import make_axes
from benchmarks.report import Picture, Report
from benchmarks.spark_join import IDLE
from benchmarks.stack import bench, consumed, counted, job_process, wait_for, wait_until_warm
from benchmarks.tsa.against import OURS, Join, read_alarms
from benchmarks.tsa.path_texts import ANSWERS
from benchmarks.tsa.running import DifferentResultsError
from benchmarks.tsa.workload import (
    DEADLINE_US,
    DELAY_US,
    MINUTE_US,
    REPORTED_US,
    STREAMS,
    Arrivals,
    arrivals_in_order,
    cut_by_time,
    query_resource,
    query_text,
    stream_resources,
)
from correlation.engine.heartbeats import Heartbeat, heartbeat_to_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from matplotlib.figure import Figure

    from benchmarks.stack import Bench
    from benchmarks.tsa.workload import Cut
    from cli.stack.processes import ChildProcess

HOUR_US = 60 * MINUTE_US
STEP_US = 20 * MINUTE_US
# Smokes per hour, and share of the smokes that are not reported.
_BY_DAY, _BY_NIGHT = (60, 0.1), (3, 1.0)
# Colours and markers of the ways, in their order.
_SHOWN = (("#0072b2", "D"), ("#000000", "o"), ("#e69f00", "s"))
_WAIT_SECONDS = 600
_MAX = {"spark.sql.streaming.multipleWatermarkPolicy": "max"}
JOINS = (
    Join("outer-min", "Spark's join", 25_000),
    Join("outer-max", "Spark's join, watermark policy max", 25_000, _MAX),
)


class Hours(NamedTuple):
    """Begin and end of the night, and end of the run, in hours of stream time."""

    night: int
    morning: int
    end: int


class Night(NamedTuple):
    """Both streams.

    Attributes
    ----------
    hours : Hours
        Times of the run.
    streams : (Arrivals, Arrivals)
        Smokes and reports.
    alarms : mapping of str to int
        Time of each smoke without a report, by its id, in µs.
    """

    hours: Hours
    streams: tuple[Arrivals, Arrivals]
    alarms: dict[str, int]

    def due(self) -> set[str]:
        """Return the ids of the alarms that are known at the end."""
        until_us = self.hours.end * HOUR_US - DEADLINE_US - DELAY_US
        return {name for name, at_us in self.alarms.items() if at_us < until_us}


class Answers(NamedTuple):
    """Stream time at which each alarm of one way could be read, by the id of its smoke, in µs."""

    title: str
    seen_us: dict[str, int]


def draw_night(hours: Hours) -> Night:
    """Draw the events; each smoke has its own area."""
    rng = np.random.default_rng(2013)
    times, silent = [], []
    for hour in range(hours.end):
        rate, share = _BY_NIGHT if hours.night <= hour < hours.morning else _BY_DAY
        times.append(rng.integers(hour * HOUR_US, (hour + 1) * HOUR_US, rate))
        silent.append(rng.random(rate) < share)
    smoke, is_silent = np.concatenate(times), np.concatenate(silent)
    area = np.arange(len(smoke))
    reported = np.flatnonzero(~is_silent)
    report = smoke[reported] + rng.integers(*REPORTED_US, len(reported))
    span_us = hours.end * HOUR_US
    smokes = arrivals_in_order("smoke", smoke, area, span_us, rng)
    reports = arrivals_in_order("report", report, reported, span_us, rng)
    alarms = {
        smokes.ids(row, row + 1)[0].decode(): int(smokes.time_us[row])
        for row in np.flatnonzero(is_silent[smokes.area]).tolist()
    }
    return Night(hours, (smokes, reports), alarms)


def measure_answers(*, quick: bool) -> tuple[Night, list[Answers]]:
    """Play the same night to all ways, one after the other.

    Raises
    ------
    DifferentResultsError
        When an answer is wrong, or when Coincide has not answered all that was due.
    """
    night = draw_night(Hours(1, 2, 3) if quick else Hours(2, 10, 12))
    with bench() as on:
        answers = [_play_job(on, night)]
        answers += [_play_join(on, night, join) for join in (JOINS[:1] if quick else JOINS)]
    for it in answers:
        wrong = it.seen_us.keys() - night.alarms.keys()
        missing = night.due() - it.seen_us.keys() if it.title == OURS else set()
        if wrong or missing:
            raise DifferentResultsError(f"{it.title}: wrong {wrong}, missing {missing}")
    return night, answers


def _play_job(on: Bench, night: Night) -> Answers:
    topics = tuple(f"events-{name}" for name in STREAMS)
    on.create_topics(dict.fromkeys(topics, 1))
    on.register(*stream_resources(), query_resource(query_text(keyed=False)))
    process = job_process(on)

    def send_heartbeats(cut: Cut, end_us: int) -> None:
        beats = [
            heartbeat_to_record(Heartbeat(name, 0, end_us, offset))
            for name, offset in zip(STREAMS, cut.ends, strict=True)
        ]
        on.produce(on.topics.heartbeats, [(None, orjson.dumps(it), None) for it in beats])

    def is_done(sent: int, end_us: int) -> bool:
        if consumed(on) < sent or _watermark_us(on) < end_us - DELAY_US:
            return False
        # The job writes metrics and alarms of a batch in several transactions.
        return len(read_alarms(on)) >= counted(on, "alarms_total")

    process.start()
    try:
        wait_until_warm(on, process)
        seen = _play(on, process, topics, night, send_heartbeats, is_done, partial(read_alarms, on))
    finally:
        process.stop(60)
    return Answers(OURS, seen)


def _watermark_us(on: Bench) -> int:
    """Return the watermark of both streams in the slot that has advanced furthest."""
    found = [
        min(record["watermarks"][name]["watermark"] or 0 for name in STREAMS)
        for record in on.slot_records().values()
        if STREAMS[0] in record.get("watermarks", ())
    ]
    return max(found, default=0)


def _play_join(on: Bench, night: Night, join: Join) -> Answers:
    topics = (f"{join.name}-smoke", f"{join.name}-report")
    on.create_topics(dict.fromkeys((*topics, join.name), 1))
    arguments = [*topics, join.name, str(DEADLINE_US), str(DELAY_US)]
    process = baseline_process(
        on, "benchmarks.tsa.outer_join", arguments, join.name, join.batch, join.properties
    )

    def is_done(sent: int, _: int) -> bool:
        rows, state = read_state(process)
        return rows >= sent and state == IDLE

    def read() -> list[tuple[str, int]]:
        return [(it["id"], it["latest"]) for it in on.read_values(join.name)]

    process.start()
    try:
        seen = _play(on, process, topics, night, lambda *_: None, is_done, read)
    finally:
        process.stop(60)
    return Answers(join.title, seen)


def _play(
    on: Bench,
    process: ChildProcess,
    topics: Sequence[str],
    night: Night,
    finish_step: Callable[[Cut, int], None],
    is_done: Callable[[int, int], bool],
    read: Callable[[], Iterable[tuple[str, int]]],
) -> dict[str, int]:
    """Send the events step by step; return the end of the step in which each alarm appears."""
    seen: dict[str, int] = {}
    sent = 0
    cuts = cut_by_time(night.streams, STEP_US, night.hours.end * HOUR_US)
    for number, cut in enumerate(cuts, 1):
        end_us = number * STEP_US
        for topic, stream, begin, end in zip(topics, night.streams, *cut, strict=True):
            on.produce(topic, stream.records(begin, end))
        sent += cut.size
        finish_step(cut, end_us)
        wait_for(process, partial(is_done, sent, end_us), _WAIT_SECONDS)
        for name, _ in read():
            seen.setdefault(name, end_us)
    return seen


def report_answers(night: Night, answers: Sequence[Answers]) -> Report:
    """Build the table and the plot."""
    rows = []
    for period in ("day", "night"):
        due = sorted(name for name in night.due() if _period(night, name) == period)
        for it in answers:
            delays = [
                (it.seen_us[name] - night.alarms[name]) / MINUTE_US
                for name in due
                if name in it.seen_us
            ]
            rows.append(
                [
                    f"{period}: {it.title}",
                    f"{len(due)}",
                    f"{len(due) - len(delays)}",
                    *(f"{np.quantile(delays, q):,.0f} min" for q in (0.5, 1.0)),
                ]
            )
    return Report(
        "TSA: when the answers come",
        ANSWERS,
        ("", "alarms", "not before the end", "delay, median", "worst"),
        rows,
        [
            Picture(
                "tsa-answers",
                "Stream time from a smoke to its alarm, by the time of the smoke",
                _draw(night, answers),
            )
        ],
    )


def _period(night: Night, name: str) -> str:
    hour = night.alarms[name] // HOUR_US
    return "night" if night.hours.night <= hour < night.hours.morning else "day"


def _draw(night: Night, answers: Sequence[Answers]) -> Figure:
    figure, (axis,) = make_axes("stream time of the smoke, h", "until the alarm, h of stream time")
    for it, (colour, marker) in zip(answers, _SHOWN, strict=False):
        names = sorted(it.seen_us.keys() & night.due(), key=night.alarms.__getitem__)
        hours = [night.alarms[name] / HOUR_US for name in names]
        delays = [(it.seen_us[name] - night.alarms[name]) / HOUR_US for name in names]
        axis.plot(
            hours, delays, label=it.title, color=colour, marker=marker, markersize=4, linestyle=""
        )
    axis.axvspan(night.hours.night, night.hours.morning, color="#eeeeee", zorder=0)
    axis.set_ylim(bottom=0)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure
