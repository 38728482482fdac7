"""Foreign records in the config topic: the job continues with the other records."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from correlation.resources.streams import Stream
from tests.support.job import JobUnderTest
from tests.support.kafka import Sent, produce, read_committed
from tests.support.patience import MAX_DELAY_US
from tests.support.workload import NearCondition, Occurrence, Workload, alarm_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.kafka import Received

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

PREFIX = f"bad{uuid.uuid4().hex[:10]}"
MAX_UNCERTAINTY_US = 20_000
NEAR = NearCondition("near", "a", "b", 30_000, "0.6")
GONE = NearCondition("gone", "a", "b", 40_000, "0.4")


def stream(name: str) -> Stream:
    return Stream(
        name, f"{PREFIX}-{name}", max_uncertainty_us=MAX_UNCERTAINTY_US, max_delay_us=MAX_DELAY_US
    )


def live_events(seed: int) -> list[Occurrence]:
    """Return events of the last second, with ids that no other call gives."""
    begin_us = time.time_ns() // 1_000 - 1_000_000
    workload = Workload(
        "ab", seed, begin_us, spacing_us=1_000, max_uncertainty_us=MAX_UNCERTAINTY_US
    )
    return [replace(event, id=f"{seed}.{event.id}") for event in workload.take(60)]


def states(job: JobUnderTest) -> set[str]:
    """Return the states of the condition `gone` in the slots, once the last record is applied."""
    slots = job.wait_for_slots(
        lambda slots: all(slot["conditions"].get("gone") for slot in slots) and bool(slots)
    )
    return {slot["conditions"]["gone"]["state"] for slot in slots}


@pytest.fixture(scope="module")
def job(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JobUnderTest]:
    """Return a job with conditions; it is started by the first test."""
    folder = tmp_path_factory.mktemp("job")
    job = JobUnderTest(kafka_bootstrap, PREFIX, folder)
    for name in ("a", "b", "c"):
        job.add_stream(stream(name))
    job.register(NEAR.resource, GONE.resource)
    try:
        yield job
    finally:
        job.process.stop(5)


def test_job_goes_on_with_what_can_be_read(job: JobUnderTest) -> None:
    bad = [
        Sent(b'{"v":1}', b"condition/gone"),
        Sent(b"not valid JSON", b"stream/c"),
        Sent(b"{}", b"neither/kind/nor/name"),
        Sent(b"{}", b"template/\xff"),
    ]
    keys = ["condition/gone", "stream/c", "neither/kind/nor/name", "template/\\xff"]
    job.start()
    produce(job.bootstrap, job.topics.config, bad)
    job.wait_for_job(lambda it: [one["key"] for one in it["unreadable_records"]] == keys)
    job.wait_for_job(lambda it: it["streams"] == ["a", "b"] and it["state"] == "running")
    job.wait_for_slots(
        lambda slots: all(
            slot["conditions"].get("gone", {}).get("state") == "unreadable" for slot in slots
        )
    )
    events = live_events(1)
    job.send(events)
    expected = sorted(NEAR.pairs(events))
    assert job.alarms("near", "gone", awaited=expected) == expected

    # One that starts on what is left of the log comes to the same.
    assert job.stop() == 0
    job.start()
    job.wait_for_job(lambda it: [one["key"] for one in it["unreadable_records"]] == keys)
    assert states(job) == {"unreadable"}
    assert "failing" not in job.states()

    # Tombstones, and a newer record, end it.
    produce(job.bootstrap, job.topics.config, [Sent(None, it.key) for it in bad[1:]])
    job.register(replace(GONE.resource, version=9))
    job.wait_for_job(lambda it: it["unreadable_records"] == [])
    job.wait_for_slots(
        lambda slots: all(slot["conditions"]["gone"]["state"] == "running" for slot in slots)
    )
    events = live_events(2)
    job.send(events)
    awaited = GONE.pairs(events) | NEAR.pairs(events)
    assert awaited <= set(job.alarms("near", "gone", awaited=awaited))


def test_alarms_never_reach_topics_that_are_not_for_them(job: JobUnderTest) -> None:
    forbidden = ["__consumer_offsets", job.topics.metrics, job.topics.config]
    conditions = [replace(NEAR, name=f"to-{number}") for number in range(len(forbidden))]
    for condition, topic in zip(conditions, forbidden, strict=True):
        found = condition.resource
        document = {**found.document, "output_topic": topic}
        job.register(replace(found, document=document))
    job.wait_for_slots(
        lambda slots: all(it.name in slot["conditions"] for slot in slots for it in conditions)
    )
    before = len(read_committed(job.bootstrap, job.topics.config))
    events = live_events(3)
    job.send(events)
    expected = {pair for it in conditions for pair in it.pairs(events)}

    def alarms(records: list[Received]) -> list[Received]:
        return [it for it in records if it.headers["coincide.error.reason"] == b"output_refused"]

    letters = alarms(
        job.read(job.topics.dead_letter, lambda records: len(alarms(records)) >= len(expected))
    )
    assert set(alarm_pairs(it.value for it in letters)) == expected
    assert {it.headers["coincide.error.topic"].decode() for it in letters} == set(forbidden)
    assert len(read_committed(job.bootstrap, job.topics.config)) == before
    assert all(
        it.key == b"job" or (it.key or b"").startswith(b"slot/")
        for it in job.read(job.topics.metrics)
    )
