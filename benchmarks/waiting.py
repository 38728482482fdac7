"""Time of the job's batches while a million events are buffered."""

from __future__ import annotations

import time

import numpy as np
import orjson

from benchmarks.longrun import gauges
from benchmarks.report import Report
from benchmarks.stack import Bench, bench, consumed, job_process, wait_for, wait_until_warm
from benchmarks.workload import Records, make_records, resources

JOIN_KEYS = 8_000
# At 1,600 events/s of A, 625 s hold a million events.
WAIT_SECONDS = 625
MEASURED_SECONDS = 40
_POLL_SECONDS = 0.2
# A batch with fewer records contains only heartbeats.
_MIN_EVENTS = 100
_MARK_EVENTS = 4_000


def batches(on: Bench, seconds: float) -> dict[int, tuple[float, int]]:
    """Watch the job for a time; return duration and record count of each reported batch."""
    seen: dict[int, tuple[float, int]] = {}
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        record = on.slot_records()[b"job"]
        seen[record["batch"]] = (record["durations"]["triggerExecution"], record["batch_events"])
        time.sleep(_POLL_SECONDS)
    return seen


def _last_second(records: Records) -> Records:
    """Return the last records of A for B: they advance B's watermark and yield few pairs."""
    return [
        (key, orjson.dumps({**orjson.loads(value), "id": f"mark-{number}"}), None)
        for number, (key, value, _) in enumerate(records[-_MARK_EVENTS:])
    ]


def run() -> list[Report]:
    """Fill the buffer, then send a second of both streams every second."""
    rng = np.random.default_rng(2010)
    wait_us = WAIT_SECONDS * 1_000_000
    with bench() as on:
        on.create_topics(dict.fromkeys(("events-a", "events-b"), 2))
        on.register(*resources(wait_us, wait_us + 1_000_000))
        job = job_process(on)
        job.start()
        try:
            wait_until_warm(on, job)
            first = make_records("a", 0, WAIT_SECONDS, rng, JOIN_KEYS)
            on.produce("events-a", first)
            on.produce("events-b", _last_second(first))
            sent = len(first) + _MARK_EVENTS
            wait_for(job, lambda: consumed(on) >= sent)
            before = max(batches(on, 3))
            seen: dict[int, tuple[float, int]] = {}
            for second in range(WAIT_SECONDS, WAIT_SECONDS + MEASURED_SECONDS):
                begin = time.monotonic()
                for name in "ab":
                    records = make_records(name, second, second + 1, rng, JOIN_KEYS)
                    on.produce(f"events-{name}", records)
                    sent += len(records)
                seen |= batches(on, max(begin + 1 - time.monotonic(), 0))
            wait_for(job, lambda: consumed(on) >= sent)
            found = gauges(on)
        finally:
            job.stop(60)
    durations = [
        took for number, (took, count) in seen.items() if number > before and count >= _MIN_EVENTS
    ]
    median, p90, worst = np.quantile(durations, (0.5, 0.9, 1))
    return [
        Report(
            "Batches of the job while a million events wait",
            "Kafka to Spark to Kafka, 2 slots, a second of 2 x 1,600 events every second. The "
            "values are whole triggers: planning, reading, state and writing. Aim: "
            "0.2 s, which is met on two quiet cores.",
            ("buffered", "batches seen", "median", "p90", "worst"),
            [
                [
                    f"{found['buffered_events']:,.0f}",
                    f"{len(durations)}",
                    f"{median:.2f} s",
                    f"{p90:.2f} s",
                    f"{worst:.2f} s",
                ]
            ],
        )
    ]


if __name__ == "__main__":
    for report in run():
        report.show()
