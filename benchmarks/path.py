"""Compare the whole path, Kafka to Spark to Kafka, with Spark's own stream-stream join.

Both read the same topics and data, and both are warmed up with one batch of events. CPU seconds are
the sum of driver, JVM and Python workers, without broker and producer.
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
from cli.stack.jars import default_folder, home_of
from cli.stack.processes import ChildProcess
from correlation.resources.records import Resource

WARM_SECONDS = 10


class Workload(NamedTuple):
    """Number of join keys, distance from A to B, and measured stream time."""

    name: str
    keys: int
    lower_us: int
    upper_us: int
    seconds: int


WORKLOADS = (
    Workload("few pairs: 8,000 keys, within 1 s", 8_000, -WINDOW_US, WINDOW_US, 300),
    Workload("many pairs: 400 keys, within 1 s", KEYS, -WINDOW_US, WINDOW_US, 90),
    Workload("a wait: 400 keys, 30 to 31 s later", KEYS, 30 * WINDOW_US, 31 * WINDOW_US, 90),
)
# Max events of a batch of Spark's join. It compares all events of a key within a batch, whatever
# their times, so it gains by small batches. The values are the job's limit and the best for it.
JOIN_BATCHES = (400_000, 25_000)


def _last_line(process: ChildProcess) -> int:
    lines = [line for line in process.log_path.read_text().splitlines() if line.isdigit()]
    return int(lines[-1]) if lines else 0


def measure_join(
    on: Bench, workload: Workload, batch: int, warm: list[Records], measured: list[Records]
) -> tuple[float, float]:
    """Run Spark's join; return wall and CPU seconds of the measured events."""
    topics = (f"join-a-{batch}", f"join-b-{batch}")
    process = ChildProcess(
        "join",
        [
            *(sys.executable, "-m", "benchmarks.spark_join", *topics, f"join-{batch}"),
            *(str(workload.lower_us), str(workload.upper_us), str(DELAY_US)),
        ],
        on.folder / f"join-{batch}.log",
        {
            "COINCIDE_BOOTSTRAP": on.bootstrap,
            "COINCIDE_CHECKPOINT": str(on.folder / f"join-{batch}"),
            "COINCIDE_JARS": str(home_of(default_folder(), "spark")),
            "COINCIDE_MAX_EVENTS_PER_BATCH": str(batch),
        },
    )
    return _measure(process, on, topics, (warm, measured), lambda: _last_line(process))


def measure_job(
    on: Bench, workload: Workload, warm: list[Records], measured: list[Records]
) -> tuple[float, float]:
    """Run the job; return wall and CPU seconds of the measured events."""
    return measure_resources(on, resources(workload.lower_us, workload.upper_us), warm, measured)


def measure_resources(
    on: Bench, registered: list[Resource], warm: list[Records], measured: list[Records]
) -> tuple[float, float]:
    """Run the job with these streams and conditions; return the seconds of `measure_job`."""
    on.register(*registered)
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
    """Send the phases one after the other; return wall and CPU seconds of the last phase."""
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
    rows = {}
    with bench() as on:
        on.create_topics(dict.fromkeys(("events-a", "events-b"), 2))
        cost = measure_job(on, workload, warm, measured)
        rows["Coincide"] = (on.count_committed(on.topics.alarms), *cost)
        for batch in JOIN_BATCHES:
            names = (f"join-a-{batch}", f"join-b-{batch}", f"join-{batch}")
            on.create_topics(dict.fromkeys(names, 2))
            cost = measure_join(on, workload, batch, warm, measured)
            name = f"Spark's join, batches of {batch:,}"
            rows[name] = (on.count_committed(f"join-{batch}"), *cost)
    _, _, own_cpu = rows["Coincide"]
    return [
        [
            f"{workload.name}: {name}",
            f"{events:,}",
            f"{pairs:,}",
            f"{wall:.1f} s",
            f"{cpu:.1f} s",
            f"{events / cpu:,.0f}",
            f"{cpu / own_cpu:.1f}",
        ]
        for name, (pairs, wall, cpu) in rows.items()
    ]


def run() -> list[Report]:
    """Measure all workloads."""
    return [
        Report(
            "The whole path against Spark's stream-stream join",
            f"{RATE} events/s a stream, ct 0.7, lengths 20 to 200 ms, sent as fast as Kafka "
            "accepts them. Spark's join reports the pairs whose latest times are within the "
            "window and does not compute probabilities. It runs with batches as large as the "
            "job's, and with the batch size that is best for it. Pairs include those of the "
            "warm-up. The last column is CPU time divided by that of Coincide. Aim: 10, met with "
            "batches of the same size, not always with the smaller batches.",
            ("", "events", "pairs", "wall", "CPU", "events / CPU s", "CPU, ratio"),
            [row for workload in WORKLOADS for row in compare(workload)],
        )
    ]


if __name__ == "__main__":
    for found in run():
        found.show()
