"""Process an hour of stream time as fast as possible: buffers and state must level off.

The buffer of each stream is bounded by rate x horizon: the events that a condition can still need,
plus the events that wait for removal (at most the same number).
"""

from __future__ import annotations

from functools import partial

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
    MAX_UNCERTAINTY_US,
    RATE,
    WINDOW_US,
    make_records,
    resources,
)

# Few pairs, 0.2 per event: an hour of many pairs would be 25 GB of alarms.
JOIN_KEYS = 8_000
HOUR_SECONDS = 3_600
STEP_SECONDS = 300


def gauges(on: Bench, *names: str) -> dict[str, float]:
    """Sum buffered events, their bytes, and further gauges over all slots and labels."""
    totals = dict.fromkeys(("buffered_events", "state_bytes", *names), 0.0)
    for record in on.slot_records().values():
        for name, _, value in record.get("gauges", ()):
            if name in totals:
                totals[name] += value
    return totals


def folder_bytes(on: Bench) -> int:
    """Return the size of the job's checkpoint."""
    files = (on.folder / "checkpoint").rglob("*")
    return sum(path.stat().st_size for path in files if path.is_file())


def _has_consumed(on: Bench, expected: int) -> bool:
    return consumed(on) >= expected


def run() -> list[Report]:
    """Process the hour in steps and measure after each step."""
    rng = np.random.default_rng(2010)
    rows = []
    with bench() as on:
        on.create_topics(dict.fromkeys(("events-a", "events-b"), 2))
        on.register(*resources())
        job = job_process(on)
        job.start()
        try:
            wait_until_warm(on, job)
            sent = 0
            for begin in range(0, HOUR_SECONDS, STEP_SECONDS):
                watch = Stopwatch(job)
                for name in "ab":
                    records = make_records(name, begin, begin + STEP_SECONDS, rng, JOIN_KEYS)
                    on.produce(f"events-{name}", records)
                    sent += len(records)
                wait_for(job, partial(_has_consumed, on, sent), 1_800)
                wall, _ = watch.read()
                found = gauges(on)
                rows.append(
                    [
                        f"{(begin + STEP_SECONDS) // 60} min",
                        f"{sent:,}",
                        f"{found['buffered_events']:,.0f}",
                        f"{found['state_bytes'] / 1024:,.0f} KiB",
                        f"{folder_bytes(on) / 2**20:,.0f} MiB",
                        f"{STEP_SECONDS / wall:.1f}",
                    ]
                )
        finally:
            job.stop(60)
    horizon = (WINDOW_US + MAX_UNCERTAINTY_US + DELAY_US) / 1e6
    return [
        Report(
            "An hour of stream time",
            f"2 x {RATE} events/s, {JOIN_KEYS:,} join keys; rate x horizon is "
            f"{2 * RATE * horizon:,.0f} events. Buffers are those after the last batch of each "
            "step; the checkpoint also contains the last batches.",
            ("stream time", "events", "buffered", "buffer bytes", "checkpoint", "times real time"),
            rows,
        )
    ]


if __name__ == "__main__":
    for found in run():
        found.show()
