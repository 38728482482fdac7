"""Where the time of a batch goes: stages of the whole path, phases of Spark, and a flame graph."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks.path import WARM_SECONDS, WORKLOADS, Workload
from benchmarks.report import Picture, Report
from benchmarks.response import draw_events, live_resources, send_steadily
from benchmarks.stack import Bench, bench, consumed, job_process, wait_for, wait_until_warm
from benchmarks.stages.flame import draw_flames
from benchmarks.stages.samples import Samples, sampled
from benchmarks.stages.stages import STAGES, seconds_by_stage
from benchmarks.workload import RATE, make_records, resources

_TOPICS = ("events-a", "events-b")
_STEADY_WARM_SECONDS, _STEADY_SECONDS = 15, 40
_POLL_SECONDS = 0.2
# Spark's phases of a batch, in their order, and what they do.
_PHASES = {
    "latestOffset": "ask for the newest offsets",
    "walCommit": "store the offsets",
    "getBatch": "describe the records",
    "queryPlanning": "plan the tasks",
    "addBatch": "run the tasks: read, pack, evaluate, write",
    "commitOffsets": "store that the batch is complete",
    "triggerExecution": "whole batch",
}


class Measured(NamedTuple):
    """A measurement: its name, the number of events of both streams, and the CPU time."""

    name: str
    events: int
    samples: Samples


def measure_backlog(workload: Workload) -> Measured:
    """Measure the job while it reads events that wait in Kafka."""
    rng = np.random.default_rng(2010)
    spans = ((0, WARM_SECONDS), (WARM_SECONDS, WARM_SECONDS + workload.seconds))
    phases = [[make_records(name, *it, rng, workload.keys) for name in "ab"] for it in spans]
    with bench() as on:
        on.create_topics(dict.fromkeys(_TOPICS, 2))
        on.register(*resources(workload.lower_us, workload.upper_us))
        job = job_process(on)
        job.start()
        try:
            wait_until_warm(on, job)
            sent = 0
            for records in phases:
                with sampled(job, on.folder) as found:
                    for topic, it in zip(_TOPICS, records, strict=True):
                        on.produce(topic, it)
                        sent += len(it)
                    wait_for(job, partial(_has_consumed, on, sent))
        finally:
            job.stop(60)
    return Measured(workload.name, sum(map(len, phases[-1])), found)


def measure_steadily() -> tuple[Measured, list[Mapping[str, float]]]:
    """Measure the job at a steady rate; also return the durations of phases of its batches."""
    draw = partial(draw_events, np.random.default_rng(2010))
    with bench() as on:
        on.create_topics(dict.fromkeys(_TOPICS, 2))
        on.register(*live_resources())
        job = job_process(on)
        job.start()
        try:
            wait_until_warm(on, job)
            first = send_steadily(on, _STEADY_WARM_SECONDS, RATE, draw, 0)
            # The profiler doubles the durations.
            with ThreadPoolExecutor(1) as pool:
                watching = pool.submit(_watch_phases, on)
                first = send_steadily(on, _STEADY_SECONDS, RATE, draw, first)
                batches = watching.result()
            with sampled(job, on.folder) as found:
                end = send_steadily(on, _STEADY_SECONDS, RATE, draw, first)
        finally:
            job.stop(60)
    return Measured(f"2 x {RATE:,} events/s", 2 * (end - first), found), batches


def _watch_phases(on: Bench) -> list[Mapping[str, float]]:
    """Return the durations of the phases of the batches that the job reports, in seconds."""
    seen = {}
    deadline = time.monotonic() + _STEADY_SECONDS
    while time.monotonic() < deadline:
        record = on.slot_records()[b"job"]
        seen[record["batch"]] = record["durations"]
        time.sleep(_POLL_SECONDS)
    return list(seen.values())


def _has_consumed(on: Bench, expected: int) -> bool:
    return consumed(on) >= expected


def report_stages(measured: list[Measured], flames: Samples) -> Report:
    """Build the table, with a column for each measurement, and the flame graph of one of them."""
    seconds = [seconds_by_stage(it.samples) for it in measured]
    rows = [[stage, *(_share(it, stage) for it in seconds)] for stage in STAGES]
    cpu = [it.samples.cpu for it in measured]
    rows.append(["CPU time", *(f"{it:.1f} s" for it in cpu)])
    rows.append(["events / CPU s", *(f"{it.events / it.samples.cpu:,.0f}" for it in measured)])
    return Report(
        "Where the CPU time of a batch goes",
        "The whole path, Kafka to Spark to Kafka, as in the tables above: events that wait in "
        "Kafka, and a steady rate. Shares of the CPU time of all processes of the job. Threads are "
        "those of Linux; the time of Python's threads is divided by samples of their stacks, 100 "
        "a second, which slow the job down. In the flame graph a function is as wide as its share "
        "of the time of the workers' Python threads, with few pairs; the functions that it calls "
        "are above it.",
        ("stage", *(it.name for it in measured)),
        rows,
        [Picture("path-stages", "Flame graph of the Python workers", draw_flames(flames))],
    )


def report_phases(batches: list[Mapping[str, float]]) -> Report:
    """Build the table of Spark's phases."""
    rows = []
    for phase, work in _PHASES.items():
        durations = [batch.get(phase, 0.0) * 1_000 for batch in batches]
        median, p90 = np.quantile(durations, (0.5, 0.9))
        rows.append([phase, work, f"{median:.0f} ms", f"{p90:.0f} ms"])
    return Report(
        "Phases of a batch",
        f"The steady rate of the table above, without the samples: {len(batches)} batches, as "
        "Spark reports them.",
        ("phase", "what it does", "median", "p90"),
        rows,
    )


def _share(seconds: dict[str, float], stage: str) -> str:
    return f"{seconds[stage] / sum(seconds.values()):.1%}"


def run() -> list[Report]:
    """Measure few and many pairs, and a steady rate."""
    measured = [*map(measure_backlog, WORKLOADS[:2])]
    steady, batches = measure_steadily()
    stages = report_stages([*measured, steady], measured[0].samples)
    return [stages, report_phases(batches)]
