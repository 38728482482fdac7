"""Alarms per CPU second through the whole path, with both forms of the output."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.path import WARM_SECONDS, measure_process
from benchmarks.report import Report
from benchmarks.stack import bench, consumed, counted, job_process
from benchmarks.workload import RATE, make_records, resources

if TYPE_CHECKING:
    from benchmarks.stack import Bench
    from benchmarks.workload import Records
    from correlation.resources.records import Resource

OUTPUTS = ("pairs", "factored")
# Join keys and seconds of stream time: about 4, 43 and 430 alarms per event.
WORKLOADS = ((400, 90), (40, 45), (4, 15))


class Cost(NamedTuple):
    """Alarms of the measured events, and what they cost.

    Attributes
    ----------
    alarms : int
        Number of alarms.
    wall, cpu : float
        Seconds.
    """

    alarms: int
    wall: float
    cpu: float


def with_output(output: str) -> list[Resource]:
    """Build two streams and a condition with this form of the output."""
    *streams, condition = resources()
    return [*streams, replace(condition, document={**condition.document, "output": output})]


def measure(on: Bench, output: str, phases: tuple[list[Records], list[Records]]) -> Cost:
    """Run the job over both phases; return the cost of the second."""
    on.create_topics(dict.fromkeys(("events-a", "events-b"), 2))
    on.register(*with_output(output))
    # Alarms by the number of consumed events.
    alarms: dict[int, int] = {}

    def count() -> int:
        events = consumed(on)
        # Later looks may count alarms of the next phase.
        alarms.setdefault(events, counted(on, "alarms_total"))
        return events

    wall, cpu = measure_process(job_process(on), on, ("events-a", "events-b"), phases, count)
    first, second = (sum(map(len, phase)) for phase in phases)
    return Cost(alarms[first + second] - alarms[first], wall, cpu)


def run() -> list[Report]:
    """Measure both forms on the same events."""
    rows = []
    for keys, seconds in WORKLOADS:
        rng = np.random.default_rng(2010)
        draw = partial(make_records, rng=rng, key_count=keys)
        spans = ((0, WARM_SECONDS), (WARM_SECONDS, WARM_SECONDS + seconds))
        warm, measured = ([draw(name, *span) for name in "ab"] for span in spans)
        found = {}
        for output in OUTPUTS:
            with bench() as on:
                found[output] = measure(on, output, (warm, measured))
        if len({it.alarms for it in found.values()}) > 1:
            raise ValueError(f"the forms have different alarms: {found}")
        rows += [
            [
                f"{keys} keys: {output}",
                f"{2 * RATE * seconds:,}",
                f"{it.alarms:,}",
                f"{it.wall:.1f} s",
                f"{it.cpu:.1f} s",
                f"{it.alarms / it.cpu:,.0f}",
            ]
            for output, it in found.items()
        ]
    return [
        Report(
            "Alarms through the whole path",
            f"Kafka to Spark to Kafka, {RATE} events/s a stream, within 1 s, ct 0.7, sent as fast "
            "as Kafka accepts them. Both forms of the output have the same alarms. CPU is that of "
            "the job, with reading and correlation. Aim: 400,000 alarms per CPU second where pairs "
            "are many. `factored` reaches it; `pairs` does not, because Kafka's client needs "
            "more than that for a record with six headers "
            "([cost by step](#writing-alarms)).",
            ("output", "events", "alarms", "wall", "CPU", "alarms / CPU s"),
            rows,
        )
    ]


if __name__ == "__main__":
    for report in run():
        report.show()
