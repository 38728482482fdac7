"""An unfinished batch, and changes made before the job restarts."""

from __future__ import annotations

import json
import re
import time
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from correlation.resources.streams import Stream
from kafka_client.clients import UserAdmin
from tests.support.job import JobUnderTest, total, unfinish_last_batch
from tests.support.patience import MAX_DELAY_US, PATIENCE_SECONDS
from tests.support.workload import NearCondition, Occurrence, stream_resource

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

MAX_UNCERTAINTY_US = 20_000
NEAR = NearCondition("near", "a", "b", 30_000, "0.6")


@pytest.fixture
def job(kafka_bootstrap: str, tmp_path: Path) -> JobUnderTest:
    """Return a running job whose last batch is one with events: no heartbeats come after them."""
    prefix = f"unfinished{uuid.uuid4().hex[:10]}"
    settings = {"COINCIDE_HEARTBEAT_SECONDS": "86400"}
    job = JobUnderTest(kafka_bootstrap, prefix, tmp_path, settings)
    for name in "ab":
        stream = Stream(name, f"{prefix}-{name}", MAX_UNCERTAINTY_US, MAX_DELAY_US)
        job.add_stream(stream, partitions=1)
    job.register(NEAR.resource)
    job.start()
    return job


def event(stream: str, name: str, latest: int) -> Occurrence:
    return Occurrence(stream, name, "k", latest - MAX_UNCERTAINTY_US, latest)


def consume(job: JobUnderTest, *events: Occurrence) -> None:
    """Send events and wait until they are correlated."""
    before = total(job.wait_for_slots(bool), "events_consumed_total")
    job.send(events)
    job.wait_for_slots(lambda slots: total(slots, "events_consumed_total") >= before + len(events))


def begin_next_batch(job: JobUnderTest, ends: dict[str, dict[str, int]]) -> None:
    """Write the offsets of one more batch, as a job does that is killed before its tasks run."""
    offsets = job.folder / "checkpoint" / "query" / "offsets"
    last = max(int(path.name) for path in offsets.iterdir() if path.name.isdigit())
    *head, events, config = (offsets / str(last)).read_text().splitlines()
    begun = json.dumps({**json.loads(events), **ends})
    (offsets / str(last + 1)).write_text("\n".join([*head, begun, config]))


def test_unfinished_batch_is_completed_with_the_streams_it_was_begun_with(
    job: JobUnderTest,
) -> None:
    now = time.time_ns() // 1_000
    b = event("b", "b1", now)
    try:
        consume(job, b)
        unfinish_last_batch(job)
        # By its new terms the event of the unfinished batch would be none.
        short = replace(job.streams["b"], max_uncertainty_us=MAX_UNCERTAINTY_US // 2)
        job.register(replace(stream_resource(short), version=2))
        job.start()
        job.wait_for_job(lambda record: record["state"] == "running")
        consume(job, event("a", "a1", now))
        expected = [("near", "a1", "b1")]
        assert job.alarms("near", awaited=expected) == expected
        assert job.read(job.topics.dead_letter) == []
    finally:
        job.process.stop(5)


def test_batch_of_which_nothing_was_written_is_planned_again_with_the_present_streams(
    job: JobUnderTest,
) -> None:
    now = time.time_ns() // 1_000
    try:
        consume(job, event("b", "b1", now))
        assert job.stop() == 0
        job.send([event("b", "b2", now), event("a", "a1", now)])
        begin_next_batch(job, {job.streams["b"].topic: {"0": 2}})
        short = replace(job.streams["a"], max_uncertainty_us=MAX_UNCERTAINTY_US // 2)
        job.register(replace(stream_resource(short), version=2))
        job.start()
        consume(job, Occurrence("a", "a2", "k", now, now))
        expected = [("near", "a2", "b1"), ("near", "a2", "b2")]
        assert job.alarms("near", awaited=expected) == expected
        (letter,) = job.read(job.topics.dead_letter)
        assert b"a1" in (letter.value or b"")
        assert "completing the unfinished batch" not in (job.folder / "job.log").read_text()
    finally:
        job.process.stop(5)


def test_deleted_topic_of_an_unfinished_batch_leaves_the_other_streams_alone(
    job: JobUnderTest,
) -> None:
    now = time.time_ns() // 1_000
    c = Stream("c", f"{job.prefix}-c", MAX_UNCERTAINTY_US, MAX_DELAY_US)
    try:
        job.add_stream(c, partitions=1)
        job.wait_for_slots(lambda slots: all("c" in slot["watermarks"] for slot in slots))
        consume(job, event("b", "b1", now))
        consume(job, event("c", "c1", now), event("c", "c2", now))
        unfinish_last_batch(job)
        client = AdminClient({"bootstrap.servers": job.bootstrap})
        client.delete_topics([c.topic])[c.topic].result(PATIENCE_SECONDS)
        job.start()
        job.send([event("a", "a1", now)])
        expected = [("near", "a1", "b1")]
        assert job.alarms("near", awaited=expected) == expected
        assert job.failures() == []
    finally:
        job.process.stop(5)


def test_written_batch_is_not_written_again_after_its_committed_offsets_have_expired(
    job: JobUnderTest,
) -> None:
    now = time.time_ns() // 1_000
    try:
        consume(job, event("a", "a1", now), event("b", "b1", now))
        unfinish_last_batch(job)
        client = UserAdmin({"bootstrap.servers": job.bootstrap})
        groups = client.list_consumer_groups().result().valid
        marks = [
            it.group_id for it in groups if re.fullmatch(rf"{job.prefix}\..{{36}}\..*", it.group_id)
        ]
        assert marks
        for deleted in client.delete_consumer_groups(marks).values():
            deleted.result()
        job.start()
        consume(job, event("a", "a2", now + 100_000), event("b", "b2", now + 100_000))
        expected = [("near", "a1", "b1"), ("near", "a2", "b2")]
        assert job.alarms("near", awaited=expected) == expected
    finally:
        job.process.stop(5)
