"""Records of the config topic that the job cannot read: their resources wait, the job goes on."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from correlation.streams import Stream
from tests.support.job import JobUnderTest
from tests.support.kafka import Sent, produce
from tests.support.workload import NearCondition, Occurrence, Workload

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

PREFIX = f"bad{uuid.uuid4().hex[:10]}"
LONGEST_US = 20_000
NEAR = NearCondition("near", "a", "b", 30_000, "0.6")
GONE = NearCondition("gone", "a", "b", 40_000, "0.4")


def stream(name: str) -> Stream:
    return Stream(name, f"{PREFIX}-{name}", longest_us=LONGEST_US, max_delay_us=60_000_000)


def live_events(seed: int) -> list[Occurrence]:
    """Return events of the last second, with ids that no other call gives."""
    begin_us = time.time_ns() // 1_000 - 1_000_000
    workload = Workload("ab", seed, begin_us, spacing_us=1_000, longest_us=LONGEST_US)
    return [replace(event, id=f"{seed}.{event.id}") for event in workload.take(60)]


def states(job: JobUnderTest) -> set[str]:
    """Return the states of the condition `gone` in the slots, once the last record is applied."""
    slots = job.wait_for_slots(
        lambda slots: all(slot["conditions"].get("gone") for slot in slots) and bool(slots)
    )
    return {slot["conditions"]["gone"]["state"] for slot in slots}


def test_job_goes_on_with_what_can_be_read(
    kafka_bootstrap: str, spark_jar_paths: list[Path], tmp_path: Path
) -> None:
    job = JobUnderTest(kafka_bootstrap, PREFIX, spark_jar_paths[0].parent, tmp_path)
    for name in ("a", "b", "c"):
        job.add_stream(stream(name))
    job.register(NEAR.resource, GONE.resource)
    bad = [
        Sent(b'{"v":1}', b"condition/gone"),
        Sent(b"not JSON", b"stream/c"),
        Sent(b"{}", b"neither/kind/nor/name"),
        Sent(b"{}", b"template/\xff"),
    ]
    keys = ["condition/gone", "stream/c", "neither/kind/nor/name", "template/\\xff"]
    try:
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
    finally:
        job.process.stop(5)
