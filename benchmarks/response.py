"""Response time at a steady rate: from the later latest time of a pair to its alarm.

The interval of an event ends at the time when it is sent. The response time of an alarm is measured
twice: at the end of its correlation (`detected_at`, the definition of LL10), and when a
read_committed consumer receives it.
"""

from __future__ import annotations

import threading
import time
from typing import Self

import numpy as np
import orjson
from confluent_kafka import Consumer, Producer

from benchmarks.report import Report
from benchmarks.stack import (
    Bench,
    Stopwatch,
    bench,
    consumed,
    counted,
    job_process,
    wait_for,
    wait_until_warm,
)
from benchmarks.workload import (
    DELAY_US,
    KEYS,
    MAX_UNCERTAINTY_US,
    MIN_UNCERTAINTY_US,
    RATE,
    resources,
)
from correlation.resources.records import Resource

WARM_SECONDS, MEASURED_SECONDS = 15, 60
_STEP_SECONDS = 0.02


def live_resources() -> list[Resource]:
    """Return the resources of `benchmarks.workload` with live streams."""
    return [
        Resource(
            found.kind,
            found.name,
            1,
            0,
            {**found.document, "clock": "live", "max_delay_us": 10 * DELAY_US}
            if found.kind == "stream"
            else found.document,
        )
        for found in resources()
    ]


class Reader:
    """Reads alarms and records the time at which each alarm arrives."""

    def __init__(self, on: Bench) -> None:
        self._on = on
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self.rows: list[tuple[int, int, int]] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _read(self) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": self._on.bootstrap,
                "group.id": "response",
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 20,
            }
        )
        consumer.subscribe([self._on.topics.alarms])
        while not self._stop.is_set():
            for message in consumer.consume(5_000, 0.02):
                value = message.value()
                if message.error() or value is None:
                    continue
                alarm = orjson.loads(value)
                ready = max(alarm["a"]["latest"], alarm["b"]["latest"])
                self.rows.append((ready, alarm["detected_at"], time.time_ns() // 1_000))
        consumer.close()


def send_steadily(on: Bench, seconds: float, rng: np.random.Generator, first: int) -> int:
    """Send both streams at the rate; return the first unused event number."""
    producer = Producer({"bootstrap.servers": on.bootstrap, "linger.ms": 5})
    begin = time.monotonic()
    sent = 0
    while (passed := time.monotonic() - begin) < seconds:
        due = int(passed * RATE)
        now_us = time.time_ns() // 1_000
        lengths = rng.integers(MIN_UNCERTAINTY_US, MAX_UNCERTAINTY_US + 1, (due - sent, 2)).tolist()
        keys = rng.integers(0, KEYS, (due - sent, 2)).tolist()
        for i in range(due - sent):
            for side, name in enumerate("ab"):
                event = {
                    "id": f"{name}{first + sent + i}",
                    "earliest": now_us - lengths[i][side],
                    "latest": now_us,
                }
                key = b"k%d" % keys[i][side]
                producer.produce(f"events-{name}", orjson.dumps(event), key)
        sent = due
        producer.poll(_STEP_SECONDS)
    if producer.flush(30):
        raise RuntimeError("not all events were taken")
    return first + sent


def run() -> list[Report]:
    """Measure once with the default settings."""
    rng = np.random.default_rng(2010)
    with bench() as on:
        on.create_topics(dict.fromkeys(("events-a", "events-b"), 2))
        on.register(*live_resources())
        job = job_process(on)
        job.start()
        try:
            wait_until_warm(on, job)
            with Reader(on) as reader:
                first = send_steadily(on, WARM_SECONDS, rng, 0)
                begin_us = time.time_ns() // 1_000
                watch = Stopwatch(job)
                sent = send_steadily(on, MEASURED_SECONDS, rng, first)
                wall, cpu = watch.read()
                wait_for(job, lambda: consumed(on) >= 2 * sent)
                wait_for(job, lambda: len(reader.rows) >= counted(on, "alarms_total"))
        finally:
            job.stop(60)
    rows = np.array([row for row in reader.rows if row[0] >= begin_us])
    measured = []
    for name, column in (("correlation completed", 1), ("consumer has the alarm", 2)):
        waited = (rows[:, column] - rows[:, 0]) / 1e6
        percentiles = np.percentile(waited, (50, 90, 99, 100))
        measured.append([name, *(f"{value:.2f} s" for value in percentiles)])
    return [
        Report(
            "Response time at 1,600 events/s a stream",
            f"{len(rows):,} alarms of {MEASURED_SECONDS} s. Producer, broker and consumer share "
            f"the cores; the job used {cpu / wall:.0%} of one core. Aim: a p99 of 1.5 s.",
            ("until", "p50", "p90", "p99", "worst"),
            measured,
        )
    ]


if __name__ == "__main__":
    for found in run():
        found.show()
