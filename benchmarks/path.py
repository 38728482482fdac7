"""The whole path, Kafka to Spark to Kafka, against Spark's own stream-stream join.

The same topics and data for both; both run warm (one batch of events first) before the measured
events are sent. CPU seconds are those of driver, JVM and Python workers together, the broker's and
the producer's not among them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks.report import Report
from benchmarks.stack import (
    Bench,
    Stopwatch,
    bench,
    consumed,
    job_process,
    wait_for,
    wait_until_warm,
)
from benchmarks.workload import (
    DELAY_US,
    KEYS,
    RATE,
    WINDOW_US,
    Records,
    make_records,
    resources,
)
from cli.jars import default_folder, home_of
from cli.processes import ChildProcess

WARM_SECONDS = 10


class Workload(NamedTuple):
    """How many join keys, how long after A B happens, and the stream time that is measured."""

    name: str
    keys: int
    lower_us: int
    upper_us: int
    seconds: int
    join_batch: int


WORKLOADS = (
    Workload("few pairs: 8,000 keys, within 1 s", 8_000, -WINDOW_US, WINDOW_US, 600, 400_000),
    Workload("many pairs: 400 keys, within 1 s", KEYS, -WINDOW_US, WINDOW_US, 90, 400_000),
    Workload(
        "a wait: 400 keys, 30 to 31 s later", KEYS, 30 * WINDOW_US, 31 * WINDOW_US, 90, 400_000
    ),
)


def _last_line(process: ChildProcess) -> int:
    lines = [line for line in process.log_path.read_text().splitlines() if line.isdigit()]
    return int(lines[-1]) if lines else 0


def measure_join(
    on: Bench, workload: Workload, warm: list[Records], measured: list[Records]
) -> tuple[float, float]:
    """Run Spark's join; gives wall and CPU seconds of the measured events."""
    process = ChildProcess(
        "join",
        [
            *(sys.executable, "-m", "benchmarks.spark_join", "join-a", "join-b", "join-pairs"),
            *(str(workload.lower_us), str(workload.upper_us), str(DELAY_US)),
        ],
        on.folder / "join.log",
        {
            "COINCIDE_BOOTSTRAP": on.bootstrap,
            "COINCIDE_CHECKPOINT": str(on.folder / "join"),
            "COINCIDE_JARS": str(home_of(default_folder(), "spark")),
            "COINCIDE_MAX_EVENTS_PER_BATCH": str(workload.join_batch),
        },
    )
    return _measure(
        process, on, ("join-a", "join-b"), (warm, measured), lambda: _last_line(process)
    )


def measure_job(
    on: Bench, workload: Workload, warm: list[Records], measured: list[Records]
) -> tuple[float, float]:
    """Run the job; gives wall and CPU seconds of the measured events."""
    on.register(*resources(workload.lower_us, workload.upper_us))
    process = job_process(on)
    topics = ("events-a", "events-b")
    return _measure(process, on, topics, (warm, measured), lambda: consumed(on))


def _measure(
    process: ChildProcess,
    on: Bench,
    topics: tuple[str, str],
    phases: tuple[list[Records], list[Records]],
    count: Callable[[], int],
) -> tuple[float, float]:
    """Send the phases one after the other; gives wall and CPU seconds of the last one."""
    process.start()
    try:
        if process.name == "job":
            wait_until_warm(on, process)
        sent = 0
        reading = (0.0, 0.0)
        for phase in phases:
            watch = Stopwatch(process)
            for topic, records in zip(topics, phase, strict=True):
                on.produce(topic, records)
                sent += len(records)
            wait_for(process, partial(_has_counted, count, sent), 1_800)
            reading = watch.read()
        return reading
    finally:
        process.stop(60)


def _has_counted(count: Callable[[], int], expected: int) -> bool:
    return count() >= expected


def compare(workload: Workload) -> list[list[str]]:
    """Measure both on the same events, one after the other."""
    rng = np.random.default_rng(2010)
    spans = ((0, WARM_SECONDS), (WARM_SECONDS, WARM_SECONDS + workload.seconds))
    warm, measured = (
        [make_records(name, *span, rng, workload.keys) for name in "ab"] for span in spans
    )
    events = sum(map(len, measured))
    with bench() as on:
        on.create_topics(dict.fromkeys(("events-a", "events-b", "join-a", "join-b"), 2))
        on.create_topics({"join-pairs": 2})
        job_wall, job_cpu = measure_job(on, workload, warm, measured)
        job_pairs = on.count_committed(on.topics.alarms)
        join_wall, join_cpu = measure_join(on, workload, warm, measured)
        join_pairs = on.count_committed("join-pairs")
    return [
        [
            f"{workload.name}: {name}",
            f"{events:,}",
            f"{pairs:,}",
            f"{wall:.1f} s",
            f"{cpu:.1f} s",
            f"{events / cpu:,.0f}",
            f"{join_cpu / cpu:.1f}",
        ]
        for name, pairs, wall, cpu in (
            ("Coincide", job_pairs, job_wall, job_cpu),
            ("Spark's join", join_pairs, join_wall, join_cpu),
        )
    ]


def run() -> list[Report]:
    """Measure all workloads."""
    return [
        Report(
            "The whole path against Spark's stream-stream join",
            f"{RATE} events/s a stream, ct 0.7, lengths 20 to 200 ms, sent "
            "as fast as Kafka takes them. Spark's join reports the pairs whose latest times are "
            "within the window and computes no probability. Pairs include those of the warm-up.",
            ("", "events", "pairs", "wall", "CPU", "events / CPU s", "ratio"),
            [row for workload in WORKLOADS for row in compare(workload)],
        )
    ]


if __name__ == "__main__":
    for found in run():
        found.show()
