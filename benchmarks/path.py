"""The whole path, Kafka to Spark to Kafka, against Spark's own stream-stream join.

The same topics and data for both; both run warm (one batch of events first) before the measured
events are sent. CPU seconds are those of driver, JVM and Python workers together, the broker's and
the producer's not among them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

import numpy as np
import orjson

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
from cli.jars import default_folder, home_of
from cli.processes import ChildProcess
from correlation.records import Resource

SHORTEST_US, LONGEST_US, DELAY_US = 20_000, 200_000, 100_000
WINDOW_US = 1_000_000
RATE = 1_600
KEYS = 400
# Fewer keys: more pairs an event.
KEY_COUNTS = (8_000, KEYS)
WARM_SECONDS, MEASURED_SECONDS = 10, 90

Records = list[tuple[bytes | None, bytes, int | None]]


def make_records(
    stream: str, begin_s: int, end_s: int, rng: np.random.Generator, key_count: int = KEYS
) -> Records:
    """Draw canonical events of a stream as Kafka records, in order of arrival."""
    count = (end_s - begin_s) * RATE
    latest = np.sort(rng.integers(begin_s * 1_000_000, end_s * 1_000_000, count))
    arrival = np.argsort(latest + rng.integers(0, DELAY_US, count), kind="stable")
    latest = latest[arrival]
    earliest = latest - rng.integers(SHORTEST_US, LONGEST_US + 1, count)
    keys = rng.integers(0, key_count, count)
    return [
        (
            b"k%d" % key,
            orjson.dumps(
                {
                    "id": f"{stream}-{begin_s}-{i}",
                    "key": f"k{key}",
                    "earliest": low,
                    "latest": high,
                }
            ),
            None,
        )
        for i, (key, low, high) in enumerate(
            zip(keys.tolist(), earliest.tolist(), latest.tolist(), strict=True)
        )
    ]


def resources() -> list[Resource]:
    """Two streams and a mutual deadline."""
    streams = [
        Resource(
            "stream",
            name,
            1,
            0,
            {
                "topic": f"events-{name}",
                "shortest_us": SHORTEST_US,
                "longest_us": LONGEST_US,
                "max_delay_us": DELAY_US,
                "clock": "replay",
            },
        )
        for name in "ab"
    ]
    document = {
        "kind": "mutual_deadline",
        "a": "a",
        "b": "b",
        "window_us": WINDOW_US,
        "threshold": "0.7",
    }
    return [*streams, Resource("condition", "near", 1, 0, document)]


def _last_line(process: ChildProcess) -> int:
    lines = [line for line in process.log_path.read_text().splitlines() if line.isdigit()]
    return int(lines[-1]) if lines else 0


def measure_join(on: Bench, warm: list[Records], measured: list[Records]) -> tuple[float, float]:
    """Run Spark's join; gives wall and CPU seconds of the measured events."""
    process = ChildProcess(
        "join",
        [
            *(sys.executable, "-m", "benchmarks.spark_join", "join-a", "join-b", "join-pairs"),
            *(f"{WINDOW_US} MICROSECONDS", f"{DELAY_US // 1000} milliseconds"),
        ],
        on.folder / "join.log",
        {
            "COINCIDE_BOOTSTRAP": on.bootstrap,
            "COINCIDE_CHECKPOINT": str(on.folder / "join"),
            "COINCIDE_JARS": str(home_of(default_folder(), "spark")),
        },
    )
    return _measure(
        process, on, ("join-a", "join-b"), (warm, measured), lambda: _last_line(process)
    )


def measure_job(on: Bench, warm: list[Records], measured: list[Records]) -> tuple[float, float]:
    """Run the job; gives wall and CPU seconds of the measured events."""
    on.register(*resources())
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


def compare(key_count: int) -> list[list[str]]:
    """Measure both on the same events, one after the other."""
    rng = np.random.default_rng(2010)
    spans = ((0, WARM_SECONDS), (WARM_SECONDS, WARM_SECONDS + MEASURED_SECONDS))
    warm, measured = (
        [make_records(name, *span, rng, key_count) for name in "ab"] for span in spans
    )
    events = sum(map(len, measured))
    with bench() as on:
        on.create_topics(dict.fromkeys(("events-a", "events-b", "join-a", "join-b"), 2))
        on.create_topics({"join-pairs": 2})
        job_wall, job_cpu = measure_job(on, warm, measured)
        job_pairs = on.count_committed(on.topics.alarms)
        join_wall, join_cpu = measure_join(on, warm, measured)
        join_pairs = on.count_committed("join-pairs")
    return [
        [
            f"{name}, {key_count:,} keys",
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
    """Measure with few and with many pairs."""
    return [
        Report(
            "The whole path against Spark's stream-stream join",
            f"{RATE} events/s a stream, |T_A - T_B| <= 1 s with ct 0.7, lengths 20 to 200 ms, sent "
            "as fast as Kafka takes them. Spark's join reports the pairs whose latest times are "
            "within the window and computes no probability. Pairs include those of the warm-up.",
            ("", "events", "pairs", "wall", "CPU", "events / CPU s", "ratio"),
            [row for key_count in KEY_COUNTS for row in compare(key_count)],
        )
    ]


if __name__ == "__main__":
    for found in run():
        found.show()
