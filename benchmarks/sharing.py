"""Compare the cost of a hundred conditions on the same two streams with that of one condition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from benchmarks.path import measure_resources
from benchmarks.report import Report
from benchmarks.stack import bench
from benchmarks.workload import RATE, make_records, resources
from correlation.resources.records import Resource

# With this number of keys, few events of a key are near each other.
SHARED_KEYS = 100_000
CONDITIONS = 100
WARM_SECONDS, MEASURED_SECONDS = 10, 300


def conditions(count: int) -> list[Resource]:
    """Build two streams, and conditions with windows of 20 to 200 ms and ct from 0.3 to 0.9."""
    *streams, condition = resources()
    made = []
    for number in range(count):
        part = number / max(count - 1, 1)
        window_us = int(20_000 + 180_000 * part)
        document = condition.document | {
            "lower_us": -window_us,
            "upper_us": window_us,
            "threshold": f"{0.3 + 0.6 * part:.3f}",
        }
        made.append(replace(condition, name=f"near-{number}", document=document))
    return [*streams, *made]


def run() -> list[Report]:
    """Measure one condition and many conditions on the same events."""
    rng = np.random.default_rng(2010)
    spans = ((0, WARM_SECONDS), (WARM_SECONDS, WARM_SECONDS + MEASURED_SECONDS))
    phases = [[make_records(name, *span, rng, SHARED_KEYS) for name in "ab"] for span in spans]
    events = sum(map(len, phases[1]))
    rows = []
    for count in (1, CONDITIONS):
        with bench() as on:
            on.create_topics(dict.fromkeys(("events-a", "events-b"), 2))
            wall, cpu = measure_resources(on, conditions(count), *phases)
            alarms = on.count_committed(on.topics.alarms)
        rows.append((count, alarms, wall, cpu))
    return [
        Report(
            "Many conditions on the same two streams",
            f"Kafka to Spark to Kafka, {RATE} events/s a stream over {SHARED_KEYS:,} keys, sent as "
            "fast as Kafka accepts them; windows of 20 to 200 ms, thresholds of 0.3 to 0.9. The "
            "last column is CPU time divided by that of one condition. Aim: 3.",
            ("conditions", "events", "alarms", "wall", "CPU", "CPU, ratio"),
            [
                [
                    f"{count}",
                    f"{events:,}",
                    f"{alarms:,}",
                    f"{wall:.1f} s",
                    f"{cpu:.1f} s",
                    f"{cpu / rows[0][3]:.1f}",
                ]
                for count, alarms, wall, cpu in rows
            ],
        )
    ]


if __name__ == "__main__":
    for report in run():
        report.show()
