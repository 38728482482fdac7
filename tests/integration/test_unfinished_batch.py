"""An unfinished batch, and changes made before the job restarts.

The tests share a job, which each of them stops and starts again. Each has streams of its own.
"""

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
from tests.support.job import JobUnderTest, total, unfinish_last_batch
from tests.support.patience import MAX_DELAY_US, PATIENCE_SECONDS
from tests.support.workload import NearCondition, Occurrence, stream_resource

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

PREFIX = f"unfinished{uuid.uuid4().hex[:10]}"
MAX_UNCERTAINTY_US = 20_000
# A condition for each test, between streams a and b of that test.
NEAR = {
    name: NearCondition(name, f"{name}-a", f"{name}-b", 30_000, "0.6")
    for name in ("completed", "planned", "expired", "deleted")
}


@pytest.fixture(scope="module")
def installation(
    kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[JobUnderTest]:
    """Return a job whose last batch is one with events: no heartbeats come after them."""
    settings = {"COINCIDE_HEARTBEAT_SECONDS": "86400"}
    job = JobUnderTest(kafka_bootstrap, PREFIX, tmp_path_factory.mktemp("job"), settings)
    for condition in NEAR.values():
        for name in (condition.a, condition.b):
            job.add_stream(stream(name), partitions=1)
        job.register(condition.resource)
    try:
        yield job
    finally:
        job.process.stop(5)


def stream(name: str) -> Stream:
    return Stream(name, f"{PREFIX}-{name}", MAX_UNCERTAINTY_US, MAX_DELAY_US)


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
    near = NEAR["completed"]
    letters = len(job.read(job.topics.dead_letter))
    consume(job, event(near.b, "b1", now))
    unfinish_last_batch(job)
    # By its new terms the event of the unfinished batch would be none.
    short = replace(job.streams[near.b], max_uncertainty_us=MAX_UNCERTAINTY_US // 2)
    job.register(replace(stream_resource(short), version=2))
    job.start()
    job.wait_for_job(lambda record: record["state"] == "running")
    consume(job, event(near.a, "a1", now))
    expected = [(near.name, "a1", "b1")]
    assert job.alarms(near.name, awaited=expected) == expected
    assert len(job.read(job.topics.dead_letter)) == letters


def test_batch_of_which_nothing_was_written_is_planned_again_with_the_present_streams(
    job: JobUnderTest,
) -> None:
    now = time.time_ns() // 1_000
    near = NEAR["planned"]
    letters = len(job.read(job.topics.dead_letter))
    consume(job, event(near.b, "b1", now))
    assert job.stop() == 0
    job.send([event(near.b, "b2", now), event(near.a, "a1", now)])
    begin_next_batch(job, {job.streams[near.b].topic: {"0": 2}})
    short = replace(job.streams[near.a], max_uncertainty_us=MAX_UNCERTAINTY_US // 2)
    job.register(replace(stream_resource(short), version=2))
    # With a log of its own.
    job.process = job.make_process("planned")
    job.start()
    consume(job, Occurrence(near.a, "a2", "k", now, now))
    expected = [(near.name, "a2", "b1"), (near.name, "a2", "b2")]
    assert job.alarms(near.name, awaited=expected) == expected
    (letter,) = job.read(job.topics.dead_letter)[letters:]
    assert b"a1" in (letter.value or b"")
    assert "completing the unfinished batch" not in job.process.log_path.read_text()


def test_written_batch_is_not_written_again_after_its_committed_offsets_have_expired(
    job: JobUnderTest,
) -> None:
    now = time.time_ns() // 1_000
    near = NEAR["expired"]
    consume(job, event(near.a, "a1", now), event(near.b, "b1", now))
    unfinish_last_batch(job)
    client = AdminClient({"bootstrap.servers": job.bootstrap})
    groups = client.list_consumer_groups().result().valid
    marks = [it.group_id for it in groups if re.fullmatch(rf"{PREFIX}\..{{36}}\..*", it.group_id)]
    assert marks
    for deleted in client.delete_consumer_groups(marks).values():
        deleted.result()
    job.start()
    consume(job, event(near.a, "a2", now + 100_000), event(near.b, "b2", now + 100_000))
    expected = [(near.name, "a1", "b1"), (near.name, "a2", "b2")]
    assert job.alarms(near.name, awaited=expected) == expected


@pytest.mark.nightly
def test_deleted_topic_of_an_unfinished_batch_leaves_the_other_streams_alone(
    job: JobUnderTest,
) -> None:
    now = time.time_ns() // 1_000
    near, gone = NEAR["deleted"], stream("deleted-c")
    failures = job.failures()
    job.add_stream(gone, partitions=1)
    job.wait_for_slots(lambda slots: all(gone.name in slot["watermarks"] for slot in slots))
    consume(job, event(near.b, "b1", now))
    consume(job, event(gone.name, "c1", now), event(gone.name, "c2", now))
    unfinish_last_batch(job)
    client = AdminClient({"bootstrap.servers": job.bootstrap})
    client.delete_topics([gone.topic])[gone.topic].result(PATIENCE_SECONDS)
    job.start()
    job.send([event(near.a, "a1", now)])
    expected = [(near.name, "a1", "b1")]
    assert job.alarms(near.name, awaited=expected) == expected
    assert job.failures() == failures
