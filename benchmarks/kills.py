"""Kill the job repeatedly with -9 under load: every result must be written exactly once.

A short form of this benchmark is a test (tests/integration/test_kill.py, with the exact oracle).
The expected pairs are computed by `simple` over all events. A top-k list over a grid with two
groups is checked beside them (`killed_list`).
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter

import numpy as np
import orjson

from benchmarks import killed_list
from benchmarks.report import Report
from benchmarks.stack import Bench, bench, consumed, job_process, wait_for, wait_until_warm
from benchmarks.workload import (
    DELAY_US,
    MAX_UNCERTAINTY_US,
    MIN_UNCERTAINTY_US,
    RATE,
    Records,
    make_records,
)
from benchmarks.workload import resources as near_resources
from correlation.buffers.events import Events
from correlation.engine.program import Block, Control, Program
from correlation.engine.progress import Progress
from correlation.resources.records import Resource
from correlation.resources.streams import Stream
from correlation.topk.results import CHANGES, PRESENT

KILLS = 25
LONGEST_PAUSE_SECONDS = 6.0
SEEN_SHARE = 0.7
_STEP_SECONDS = 1


class Load(threading.Thread):
    """Sends a second of all streams every second, until stopped."""

    def __init__(self, on: Bench) -> None:
        super().__init__()
        self.sent: dict[str, Records] = {"a": [], "b": [], killed_list.SETS: []}
        self._on = on
        self._ended = threading.Event()

    def run(self) -> None:
        """Send until `end` is called."""
        rng = np.random.default_rng(2010)
        second = 0
        while not self._ended.wait(_STEP_SECONDS):
            for name, sent in self.sent.items():
                if name == killed_list.SETS:
                    records = killed_list.make_sets(second, rng)
                else:
                    records = make_records(name, second, second + 1, rng)
                self._on.produce(f"events-{name}", records)
                sent.extend(records)
            second += 1

    def end(self) -> dict[str, Records]:
        """Stop and return all records that were sent."""
        self._ended.set()
        if self.ident is not None:
            self.join()
        return self.sent


def expected_pairs(sent: dict[str, Records], resources: list[Resource]) -> set[tuple[str, str]]:
    """Find the pairs of all events with `simple`, in one block."""
    streams = {
        name: Stream(name, name, MAX_UNCERTAINTY_US, DELAY_US, MIN_UNCERTAINTY_US, clock="replay")
        for name in sent
    }
    program = Program(streams, dict.fromkeys(streams, 1))
    controls = [
        Control(
            offset,
            found.key,
            Resource(
                found.kind, found.name, 1, 0, {**found.document, "algorithm": "simple"}
            ).to_record(),
        )
        for offset, found in enumerate(resources)
        if found.kind == "condition"
    ]
    parts, progress = [], []
    for name, records in sent.items():
        rows = [
            (key or b"", event["id"].encode(), event["earliest"], event["latest"], 0, i, 0)
            for i, (key, event) in enumerate(
                (key, orjson.loads(value)) for key, value, _ in records
            )
        ]
        parts.append(Events.from_rows(name, rows))
        progress.append(Progress(name, 0, len(rows), None))
    outcome = program.advance(Block(controls, parts, progress), lambda: 0)
    found = (record for result in outcome.results for record in result.records(0))
    alarms = (orjson.loads(record.value or b"") for record in found)
    return {(alarm["a"]["id"], alarm["b"]["id"]) for alarm in alarms}


def run(kills: int = KILLS) -> list[Report]:
    """Kill the job at random moments, then count the pairs, the changes and the lists."""
    chance = random.Random(2010)  # noqa: S311 - no secret
    resources = near_resources()
    with bench() as on:
        on.create_topics({"events-a": 2, "events-b": 2, killed_list.STREAM.topic: 1})
        on.register(*resources, *killed_list.RESOURCES)
        job = job_process(on)
        job.start()
        load = Load(on)
        begin = time.monotonic()
        try:
            wait_until_warm(on, job)
            load.start()
            for _ in range(kills):
                threading.Event().wait(chance.uniform(0, LONGEST_PAUSE_SECONDS))
                job.kill()
                job.start()
                # Sometimes the next kill happens while the job still starts.
                if chance.random() < SEEN_SHARE:
                    seen = consumed(on)
                    wait_for(job, lambda seen=seen: consumed(on) > seen)  # type: ignore[misc]
            sent = load.end()
            events = sum(map(len, sent.values()))
            wait_for(job, lambda: consumed(on) >= events)
        finally:
            load.end()
            job.stop(60)
        seconds = time.monotonic() - begin
        found = Counter(
            (alarm["a"]["id"], alarm["b"]["id"]) for alarm in on.read_values(on.topics.alarms)
        )
        counted = consumed(on)
        changes = on.read_values(on.topics.of(CHANGES))
        lists = on.read_values(on.topics.of(PRESENT))
    sets = sent.pop(killed_list.SETS)
    expected = expected_pairs(sent, resources)
    return [
        Report(
            "Killed with -9 under load",
            f"2 x {RATE} events/s for {seconds:,.0f} s. The job, its JVM and its workers are "
            "killed at random moments; the alarms are those that a read_committed consumer "
            "receives.",
            ("kills", "events", "counted by the slots", "pairs", "missing", "too many", "twice"),
            [
                [
                    f"{kills}",
                    f"{events:,}",
                    f"{counted:,}",
                    f"{len(expected):,}",
                    f"{len(expected - set(found)):,}",
                    f"{len(set(found) - expected):,}",
                    f"{sum(count > 1 for count in found.values()):,}",
                ]
            ],
        ),
        Report(
            "A merged list, killed with -9 under load",
            f"{killed_list.RATE} sets/s in the same run, k = 10, a window of 10 s, two groups, "
            "`report: every`. The list of both slots is merged and written after their output. "
            "Changes are compared with those of one group without a job, lists with the list that "
            "these changes lead to.",
            (
                "kills",
                "sets",
                "changes",
                "missing",
                "too many",
                "twice",
                "lists",
                "wrong",
                "lists twice",
            ),
            [[f"{kills}", f"{len(sets):,}", *killed_list.count_faults(sets, changes, lists)]],
        ),
    ]


if __name__ == "__main__":
    for report in run():
        report.show()
