"""A config topic that was deleted and created again: the job refuses it until it is accepted."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

import pytest

from correlation.resources.records import Resource
from correlation.resources.streams import Stream
from tests.support.job import JobUnderTest
from tests.support.kafka import recreate_topic, topic_id
from tests.support.patience import MAX_DELAY_US, wait_until
from tests.support.workload import NearCondition, Occurrence, stream_resource

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

MAX_UNCERTAINTY_US = 20_000
KEPT = NearCondition("kept", "a", "b", 30_000, "0.6")
DROPPED = NearCondition("dropped", "a", "b", 40_000, "0.5")
ADDED = NearCondition("added", "b", "a", 40_000, "0.4")
MOMENT_US = time.time_ns() // 1_000


@pytest.fixture
def job(kafka_bootstrap: str, tmp_path: Path) -> Iterator[JobUnderTest]:
    """Return a running job whose two conditions have found a pair."""
    prefix = f"config{uuid.uuid4().hex[:10]}"
    job = JobUnderTest(kafka_bootstrap, prefix, tmp_path)
    for name in "ab":
        stream = Stream(name, f"{prefix}-{name}", MAX_UNCERTAINTY_US, max_delay_us=MAX_DELAY_US)
        job.add_stream(stream, partitions=1)
    job.register(DROPPED.resource, KEPT.resource)
    job.start()
    try:
        job.send([event("a", "a1"), event("b", "b1")])
        pairs = [("dropped", "a1", "b1"), ("kept", "a1", "b1")]
        assert job.alarms("dropped", "kept", awaited=pairs) == pairs
        yield job
    finally:
        job.process.stop(5)


def event(stream: str, name: str) -> Occurrence:
    """Return an event of the same moment as all others: every pair is satisfied."""
    return Occurrence(stream, name, "k", MOMENT_US - MAX_UNCERTAINTY_US, MOMENT_US)


def recreate_config(job: JobUnderTest) -> tuple[str, str]:
    """Create the config topic again, without one condition and with another; return its ids."""
    topic = job.topics.config
    former = topic_id(job.bootstrap, topic)
    recreate_topic(job.bootstrap, topic, 1)
    job.register(*map(stream_resource, job.streams.values()), KEPT.resource, ADDED.resource)
    return former, topic_id(job.bootstrap, topic)


def wait_for_exit(job: JobUnderTest) -> int | None:
    wait_until(lambda: not job.process.running)
    return job.process.exit_code


def expect_refusal(job: JobUnderTest, former: str, now: str) -> None:
    """Wait until the job ends, and check what it says."""
    assert wait_for_exit(job) == 1
    record = job.job_records()[-1]
    assert record["state"] == "failed"
    for part in (job.topics.config, former, now, f"COINCIDE_ACCEPT_CONFIG_TOPIC={now}"):
        assert part in record["exception"]


def accept(job: JobUnderTest, config_id: str) -> None:
    job.process.stop(5)
    job.environment["COINCIDE_ACCEPT_CONFIG_TOPIC"] = config_id
    job.process = job.make_process()


def expect_new_conditions(job: JobUnderTest) -> None:
    """Check that the new topic is in force, and that events of before are still there."""
    job.wait_for_slots(
        lambda slots: all(
            {name: it["state"] for name, it in slot["conditions"].items()}
            == {"kept": "running", "added": "running"}
            for slot in slots
        )
    )
    job.send([event("a", "a2")])
    awaited = {("kept", "a2", "b1"), ("added", "b1", "a2")}
    found = job.alarms("dropped", "kept", "added", awaited=awaited)
    assert sorted(pair for pair in found if "a2" in pair) == sorted(awaited)


def test_config_topic_recreated_while_stopped_is_refused_then_accepted(job: JobUnderTest) -> None:
    assert job.stop() == 0
    former, now = recreate_config(job)
    job.register(Resource("job", "slots", 1, 0, {"slots": 3}))
    job.process.start()
    expect_refusal(job, former, now)

    # The number of slots changes before the first batch with the new topic.
    accept(job, now)
    job.start()
    expect_new_conditions(job)
    assert job.job_records()[-1]["slots"] == 3
    # The setting may stay; what is registered later is taken in as ever, and another topic is not.
    job.delete(ADDED.resource)
    job.wait_for_slots(lambda slots: all(set(slot["conditions"]) == {"kept"} for slot in slots))
    accepted, third = recreate_config(job)
    assert accepted == now
    expect_refusal(job, accepted, third)


def newest_offsets(job: JobUnderTest) -> str:
    """Return up to where the newest batch reads, as Spark wrote it or the job changed it."""
    folder = job.folder / "checkpoint" / "query" / "offsets"
    newest = max(int(path.name) for path in folder.iterdir() if path.name.isdigit())
    path = folder / str(newest)
    # The job replaces it in two steps.
    return path.read_text() if path.exists() else job.topics.config


@pytest.mark.nightly
def test_acceptance_survives_kills(job: JobUnderTest) -> None:
    job.kill()
    _, now = recreate_config(job)
    accept(job, now)
    stored = job.folder / "checkpoint" / "config_topic-1.json"
    # At the first step of the acceptance and at the last; what was begun after it may be there too.
    steps = (
        lambda: job.topics.config not in newest_offsets(job) or stored.exists(),
        stored.exists,
    )
    for step in steps:
        job.process.start()
        job.catch(step)
        job.kill()
        job.process.stop(5)
    job.start()
    expect_new_conditions(job)
