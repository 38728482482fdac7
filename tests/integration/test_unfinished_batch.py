"""An unfinished batch, and changes made before the job restarts."""

from __future__ import annotations

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
    from pathlib import Path

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

MAX_UNCERTAINTY_US = 20_000
NEAR = NearCondition("near", "a", "b", 30_000, "0.6")


@pytest.fixture
def job(kafka_bootstrap: str, spark_jar_paths: list[Path], tmp_path: Path) -> JobUnderTest:
    """Return a running job whose last batch is one with events: no heartbeats come after them."""
    prefix = f"unfinished{uuid.uuid4().hex[:10]}"
    settings = {"COINCIDE_HEARTBEAT_SECONDS": "86400"}
    job = JobUnderTest(kafka_bootstrap, prefix, spark_jar_paths[0].parent, tmp_path, settings)
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
