"""Start and batches of a job with a thousand conditions and hardly any events."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from statistics import median
from typing import NamedTuple

import numpy as np
import orjson
from confluent_kafka import TopicPartition

from benchmarks.report import Report
from benchmarks.sharing import conditions
from benchmarks.stack import Bench, Stopwatch, bench, job_process, wait_for
from benchmarks.workload import make_records, resources
from cli.client.committed import read_committed
from cli.settings import Settings
from cli.stack.processes import ChildProcess
from correlation.resources.records import Resource
from kafka_client.consumers import open_consumer
from kafka_client.partition_offsets import list_ranges

COUNTS = (1, 100, 1_000)
WARM_SECONDS, MEASURED_SECONDS = 10, 30
# Events of each stream in a second.
TRICKLE = 10
_TIMEOUT_SECONDS = 10.0


class Found(NamedTuple):
    """Measurements of a job.

    Attributes
    ----------
    start, next_start : float
        Seconds from the start of the process until the job is running, and the same of the next
        start.
    durations : list of float
        Seconds of the batches with events.
    cpu : float
        CPU seconds of a second.
    metrics_bytes : float
        Bytes written to the metrics topic in a second.
    """

    start: float
    next_start: float
    durations: list[float]
    cpu: float
    metrics_bytes: float


def equal_conditions(count: int) -> list[Resource]:
    """Build two streams, and conditions that differ in their names only."""
    *streams, condition = resources()
    return [*streams, *(replace(condition, name=f"near-{it}") for it in range(count))]


def _measure(registered: list[Resource]) -> Found:
    """Run the job with these streams and conditions, and send it a few events every second."""
    rng = np.random.default_rng(2010)
    with bench() as on:
        on.create_topics(dict.fromkeys(("events-a", "events-b"), 2))
        on.register(*registered)
        job = job_process(on)
        try:
            start = _start(on, job)
            for second in range(WARM_SECONDS):
                _send(on, second, rng)
                time.sleep(1)
            before = on.slot_records()[b"job"]["batch"]
            watch, bytes_before = Stopwatch(job), _metrics_bytes(on)
            for second in range(WARM_SECONDS, WARM_SECONDS + MEASURED_SECONDS):
                end = time.monotonic() + 1
                _send(on, second, rng)
                time.sleep(max(end - time.monotonic(), 0))
            wall, cpu = watch.read()
            written = _metrics_bytes(on) - bytes_before
            durations = _durations(on, before)
            job.stop(60)
            job = job_process(on, java_cache=on.folder / "java")
            # Its end stores the classes.
            _start(on, job)
            job.stop(60)
            next_start = _start(on, job)
        finally:
            job.stop(60)
    return Found(start, next_start, durations, cpu / wall, written / wall)


def _start(on: Bench, job: ChildProcess) -> float:
    """Start the job; return the seconds until it is running.

    Only new records are read: thousands of records of metrics would take a core for a second.
    """
    place = (on.topics.metrics, 0)
    with closing(open_consumer({"bootstrap.servers": on.bootstrap}, "starts")) as consumer:
        end = list_ranges(consumer, [place], _TIMEOUT_SECONDS)[place].end
        consumer.assign([TopicPartition(*place, end)])
        ready_at: list[int] = []

        def is_running() -> bool:
            while (message := consumer.poll(0)) is not None and not message.error():
                value = message.value()
                if message.key() == b"job" and value:
                    record = orjson.loads(value)
                    if record["state"] == "running":
                        ready_at.append(record["at"])
            return bool(ready_at)

        begin_us = time.time_ns() // 1_000
        job.start()
        wait_for(job, is_running)
        return (ready_at[0] - begin_us) / 1_000_000


def _send(on: Bench, second: int, rng: np.random.Generator) -> None:
    """Send some events of a second of both streams."""
    for name in "ab":
        on.produce(f"events-{name}", make_records(name, second, second + 1, rng)[:TRICKLE])


def _durations(on: Bench, before: int) -> list[float]:
    """Return the seconds of the reported batches after one that had events."""
    reported = {it["batch"]: it for it in on.read_key(on.topics.metrics, b"job") if it}
    return [
        it["durations"]["triggerExecution"]
        for batch, it in reported.items()
        if batch is not None and batch > before and it["batch_events"]
    ]


def _metrics_bytes(on: Bench) -> int:
    """Return the size of all values that were written to the metrics topic and still are there."""
    records = read_committed(Settings(bootstrap=on.bootstrap), on.topics.metrics)
    return sum(len(it.value() or b"") for it in records)


def run() -> list[Report]:
    """Measure jobs with different numbers of conditions, with different and with equal windows."""
    found = [(f"{count:,}", _measure(conditions(count))) for count in COUNTS]
    found.append((f"{COUNTS[-1]:,}, equal", _measure(equal_conditions(COUNTS[-1]))))
    return [
        Report(
            "A thousand conditions and hardly any events",
            f"Kafka to Spark to Kafka, 2 slots, {2 * TRICKLE} events a second. Conditions have "
            "windows of 20 to 200 ms and thresholds of 0.3 to 0.9; those of the last row differ in "
            "their names only. A start ends when a batch was completed; the next start has a "
            "checkpoint and stored classes of Java (`COINCIDE_JAVA_CACHE`). Batches are whole "
            "triggers. Aims: batches of 0.5 s, which is met, and a start of 10 s, which is met by "
            "all but the first.",
            (
                "conditions",
                "start",
                "next start",
                "batch, median",
                "batch, worst",
                "CPU",
                "metrics",
            ),
            [
                [
                    name,
                    f"{it.start:.1f} s",
                    f"{it.next_start:.1f} s",
                    f"{median(it.durations):.2f} s",
                    f"{max(it.durations):.2f} s",
                    f"{it.cpu:.0%} of a core",
                    f"{it.metrics_bytes / 1000:,.0f} KB/s",
                ]
                for name, it in found
            ],
        )
    ]


if __name__ == "__main__":
    for report in run():
        report.show()
