"""Response time at a steady rate: from the later latest time of a pair to its alarm.

The interval of an event ends at the time when it is sent. The response time of an alarm is measured
twice: at the end of its correlation (`detected_at`, the definition of LL10), and when a
read_committed consumer receives it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Self

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
Draw = Callable[[int, int, int], Iterable[tuple[str, bytes | None, bytes, int | None]]]


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
    """Reads results in a thread and records the time at which each result arrives.

    Parameters
    ----------
    on : Bench
        Broker.
    topic : str
        Topic of the results.
    ready_us : callable
        Returns the time from which a result could have been found, in µs; None: the result is not
        measured.

    Attributes
    ----------
    rows : list of (int, int, int)
        Of each measured result: the time of `ready_us`, the time when it was found, and the time
        when it was received, in µs.
    count : int
        Number of results received, with those that are not measured.
    """

    def __init__(
        self, on: Bench, topic: str, ready_us: Callable[[dict[str, Any]], int | None]
    ) -> None:
        self._on = on
        self._topic = topic
        self._ready_us = ready_us
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self.rows: list[tuple[int, int, int]] = []
        self.count = 0

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
                # Each reader begins at the first record.
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 20,
            }
        )
        consumer.subscribe([self._topic])
        while not self._stop.is_set():
            messages = consumer.consume(5_000, 0.02)
            now_us = time.time_ns() // 1_000
            for message in messages:
                value = message.value()
                if message.error() or value is None:
                    continue
                result = orjson.loads(value)
                ready_us = self._ready_us(result)
                if ready_us is not None:
                    self.rows.append((ready_us, result["detected_at"], now_us))
                self.count += 1
        consumer.close()

    def percentiles(self, begin_us: int, wanted: Sequence[float]) -> list[list[float]]:
        """Return percentiles of the times until a result was found, and until it was received.

        Parameters
        ----------
        begin_us : int
            Results of earlier times are left out.
        wanted : sequence of float
            The percentiles, 0 to 100.

        Returns
        -------
        list of list of float
            Seconds.
        """
        rows = np.array([row for row in self.rows if row[0] >= begin_us])
        waited = (rows[:, 1:] - rows[:, :1]) / 1e6
        return [np.percentile(it, wanted).tolist() for it in waited.T]


def send_steadily(on: Bench, seconds: float, rate: int, draw: Draw, first: int) -> int:
    """Send events at a rate.

    Parameters
    ----------
    on : Bench
        Broker.
    seconds : float
        Duration.
    rate : int
        Events per second of a stream.
    draw : callable
        Yields topic, key, value and partition of the records of events, for the number of the first
        event, the number of events, and the present time in µs.
    first : int
        Number of the first event.

    Returns
    -------
    int
        First unused number.
    """
    producer = Producer({"bootstrap.servers": on.bootstrap, "linger.ms": 5})
    begin = time.monotonic()
    sent = 0
    while (passed := time.monotonic() - begin) < seconds:
        due = int(passed * rate)
        now_us = time.time_ns() // 1_000
        for topic, key, value, partition in draw(first + sent, due - sent, now_us):
            producer.produce(topic, value, key, partition=-1 if partition is None else partition)
        sent = due
        producer.poll(_STEP_SECONDS)
    if producer.flush(30):
        raise RuntimeError("not all events were taken")
    return first + sent


def draw_events(
    rng: np.random.Generator, first: int, count: int, now_us: int
) -> Iterator[tuple[str, bytes, bytes, None]]:
    """Yield events of both streams whose intervals end now."""
    lengths = rng.integers(MIN_UNCERTAINTY_US, MAX_UNCERTAINTY_US + 1, (count, 2)).tolist()
    keys = rng.integers(0, KEYS, (count, 2)).tolist()
    for i in range(count):
        for side, name in enumerate("ab"):
            event = {
                "id": f"{name}{first + i}",
                "earliest": now_us - lengths[i][side],
                "latest": now_us,
            }
            yield f"events-{name}", b"k%d" % keys[i][side], orjson.dumps(event), None


def _later_latest(alarm: dict[str, Any]) -> int:
    latest: int = max(alarm["a"]["latest"], alarm["b"]["latest"])
    return latest


def run() -> list[Report]:
    """Measure once with the default settings."""
    draw = partial(draw_events, np.random.default_rng(2010))
    with bench() as on:
        on.create_topics(dict.fromkeys(("events-a", "events-b"), 2))
        on.register(*live_resources())
        job = job_process(on)
        job.start()
        try:
            wait_until_warm(on, job)
            with Reader(on, on.topics.alarms, _later_latest) as reader:
                first = send_steadily(on, WARM_SECONDS, RATE, draw, 0)
                begin_us = time.time_ns() // 1_000
                watch = Stopwatch(job)
                sent = send_steadily(on, MEASURED_SECONDS, RATE, draw, first)
                wall, cpu = watch.read()
                wait_for(job, lambda: consumed(on) >= 2 * sent)
                wait_for(job, lambda: len(reader.rows) >= counted(on, "alarms_total"))
        finally:
            job.stop(60)
    alarms = sum(row[0] >= begin_us for row in reader.rows)
    measured = [
        [name, *(f"{value:.2f} s" for value in waited)]
        for name, waited in zip(
            ("correlation completed", "consumer has the alarm"),
            reader.percentiles(begin_us, (50, 90, 99, 100)),
            strict=True,
        )
    ]
    return [
        Report(
            "Response time at 1,600 events/s a stream",
            f"{alarms:,} alarms of {MEASURED_SECONDS} s. Producer, broker and consumer share "
            f"the cores; the job used {cpu / wall:.0%} of one core. Aims: a p50 of 0.3 s "
            "and a p99 of 0.5 s, which are met on two quiet cores.",
            ("until", "p50", "p90", "p99", "worst"),
            measured,
        )
    ]


if __name__ == "__main__":
    for found in run():
        found.show()
