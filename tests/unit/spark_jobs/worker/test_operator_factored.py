"""The stateful operator without a JVM: a condition with factored output."""

from __future__ import annotations

from dataclasses import replace

import pytest

from correlation.resources.records import Resource
from spark_jobs.worker.envelope import Record
from tests.support.factored import expand
from tests.support.workload import NearCondition, Occurrence
from tests.unit.spark_jobs.worker.test_operator import (
    EVENTS,
    TOPICS,
    Job,
    config_records,
    event_records,
)

NEAR = NearCondition("near", "a", "b", 40_000, "0.6")
WIDE = NearCondition("wide", "b", "a", 90_000, "0.3")
CONDITIONS = (NEAR, WIDE)


FACTORED = [
    replace(it.resource, document={**it.resource.document, "output": "factored"})
    for it in CONDITIONS
]


def written_to_alarms(job: Job) -> list[Record]:
    return [record for record in job.written if record.topic == TOPICS.alarms]


def expected_alarms(events: list[Occurrence]) -> list[tuple[str, str, str]]:
    return sorted(pair for condition in CONDITIONS for pair in condition.pairs(events))


@pytest.mark.parametrize("batch_size", [400, 61])
@pytest.mark.parametrize("restarts", [False, True])
def test_records_expand_to_the_judges_pairs_whatever_the_batches_and_restarts(
    batch_size: int, *, restarts: bool
) -> None:
    job = Job()
    job.run_batch(config_records(FACTORED))
    job = job.run_batches(event_records(EVENTS), batch_size, restarts=restarts)
    written = written_to_alarms(job)
    # Each key is in one partition of the topic: a consumer may read only that.
    keys = {record.key for record in written}
    assert keys == {event.key.encode() for event in EVENTS}
    found = [
        (alarm["condition"], alarm["a"]["id"], alarm["b"]["id"])
        for key in keys
        for alarm in expand(record.value or b"" for record in written if record.key == key)
    ]
    expected = expected_alarms(EVENTS)
    assert sorted(found) == expected
    assert 2 * len(written) < len(expected)


def test_records_say_in_their_headers_that_they_are_factored() -> None:
    job = Job()
    job.run_batch(config_records(FACTORED))
    job.run_batch(event_records(EVENTS))
    headers = [dict(record.headers) for record in written_to_alarms(job)]
    assert {it["ce_type"] for it in headers} == {b"coincide.alarm.factored.v1"}
    assert len({it["ce_id"] for it in headers}) == len(headers)


def test_output_that_changes_from_pairs_to_factored_loses_no_pair() -> None:
    job = Job()
    records = event_records(EVENTS)
    pairs, factored = (
        Resource("condition", "near", version, 0, {**NEAR.resource.document, "output": output})
        for version, output in enumerate(("pairs", "factored"), start=1)
    )
    job.run_batch(config_records([pairs]))
    job.run_batch(records[:200])
    job.run_batch([*config_records([factored], 1), *records[200:]])
    found = list(expand(record.value or b"" for record in written_to_alarms(job)))
    assert {alarm["version"] for alarm in found} == {1, 2}
    pairs_found = [(it["condition"], it["a"]["id"], it["b"]["id"]) for it in found]
    assert sorted(pairs_found) == sorted(NEAR.pairs(EVENTS))
