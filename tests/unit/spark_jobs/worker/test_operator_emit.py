"""The stateful operator without a JVM: conditions that report each A once."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from correlation.resources.records import Resource
from tests.oracle.emit import best_target
from tests.support.workload import NearCondition, Occurrence, SourceRecord
from tests.unit.spark_jobs.worker.test_operator import (
    EVENTS,
    TOPICS,
    Job,
    config_records,
    event_records,
)

NEAR = NearCondition("near", "a", "b", 1_500, "0.7")
EMITS = ("best", "unmatched")


def closing_records() -> list[SourceRecord]:
    return [
        SourceRecord(
            TOPICS.heartbeats,
            json.dumps({"stream": name, "read_up_to": "end"}).encode(),
            name.encode(),
            0,
            offset,
        )
        for offset, name in enumerate("ab")
    ]


def judge(events: list[Occurrence]) -> list[tuple[str, str, str | None]]:
    """Condition, id of A and id of B of all alarms."""
    window = (-NEAR.window_us, NEAR.window_us, None, None, Fraction(NEAR.threshold))
    found = []
    for a in (event for event in events if event.stream == "a"):
        rivals = [event for event in events if event.stream == "b" and event.key == a.key]
        targets = [((b.earliest, b.latest), b.id.encode()) for b in rivals]
        best = best_target((a.earliest, a.latest), targets, window)
        verdict = ("unmatched", a.id, None) if best is None else ("best", a.id, rivals[best].id)
        found.append(verdict)
    return sorted(found)


@pytest.mark.parametrize("batch_size", [400, 23])
@pytest.mark.parametrize("restarts", [False, True])
def test_each_a_is_reported_once_whatever_the_batches_and_restarts(
    batch_size: int, *, restarts: bool
) -> None:
    job = Job()
    job.run_batch(
        config_records(
            Resource("condition", emit, 1, 0, {**NEAR.resource.document, "emit": emit})
            for emit in EMITS
        )
    )
    records = event_records(EVENTS)
    job = job.run_batches(records, batch_size, restarts=restarts)
    early = sum(record.topic == TOPICS.alarms for record in job.written)
    job.run_batch(closing_records())
    alarms = [json.loads(it.value or b"") for it in job.written if it.topic == TOPICS.alarms]
    found = [(it["condition"], it["a"]["id"], it["b"] and it["b"]["id"]) for it in alarms]
    expected = judge(EVENTS)
    assert sorted(found) == expected
    assert {condition for condition, *_ in expected} == set(EMITS)
    # Most of them are final long before the streams are closed, unless it is all one batch.
    assert early > 0.5 * len(expected) or batch_size == len(records)
    assert not any(tester.peekMapState("blobs", key) for key, tester in job.testers.items())
