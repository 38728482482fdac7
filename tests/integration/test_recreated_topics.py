"""Event topics that are deleted and created again while the job runs."""

from __future__ import annotations

import shutil
import time
import uuid
from typing import TYPE_CHECKING

import pytest

from correlation.resources.streams import Stream
from tests.support.job import JobUnderTest, total, unfinish_last_batch
from tests.support.kafka import recreate_topic, topic_id
from tests.support.patience import MAX_DELAY_US
from tests.support.workload import NearCondition, Occurrence

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cli.stack.broker import EmbeddedBroker

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

MAX_UNCERTAINTY_US = 20_000
NEAR = NearCondition("near", "a", "b", 30_000, "0.6")
WITH_C = NearCondition("with-c", "a", "c", 30_000, "0.6")


@pytest.fixture
def job(kafka_bootstrap: str, tmp_path: Path) -> Iterator[JobUnderTest]:
    job = begin(kafka_bootstrap, tmp_path)
    try:
        yield job
    finally:
        job.process.stop(5)


def begin(bootstrap: str, folder: Path) -> JobUnderTest:
    """Return a running job with two streams, a and b, on a topic of one partition each."""
    job = JobUnderTest(bootstrap, f"again{uuid.uuid4().hex[:10]}", folder)
    for name in "ab":
        job.add_stream(stream(job, name), partitions=1)
    job.register(NEAR.resource)
    try:
        job.start()
    except BaseException:
        job.process.stop(5)
        raise
    return job


def stream(job: JobUnderTest, name: str) -> Stream:
    return Stream(name, f"{job.prefix}-{name}", MAX_UNCERTAINTY_US, max_delay_us=MAX_DELAY_US)


def pairs_of(name: str, count: int) -> list[Occurrence]:
    """Return events of this moment, each pair under a key of its own."""
    latest = time.time_ns() // 1_000
    return [
        Occurrence(stream, f"{stream}.{name}{i}", f"{name}{i}", latest - MAX_UNCERTAINTY_US, latest)
        for i in range(count)
        for stream in "ab"
    ]


def recreate(job: JobUnderTest, *streams: str) -> dict[str, tuple[str, str]]:
    """Delete and create the topics of streams; return the former id and the new one of each."""
    ids = {}
    for name in streams:
        topic = job.streams[name].topic
        former = topic_id(job.bootstrap, topic)
        recreate_topic(job.bootstrap, topic, 1)
        ids[topic] = (former, topic_id(job.bootstrap, topic))
    return ids


def said(job: JobUnderTest) -> dict[str, tuple[str, str]]:
    """Return the ids of the topics that the job says were recreated."""
    found = job.job_records()[-1].get("recreated_topics", {})
    return {topic: (it["former_id"], it["id"]) for topic, it in found.items()}


def test_topics_recreated_while_the_job_is_stopped_are_read_from_their_beginning(
    job: JobUnderTest,
) -> None:
    first = pairs_of("old", 40)
    job.send(first)
    job.alarms("near", awaited=NEAR.pairs(first))
    assert job.stop() == 0
    ids = recreate(job, "a", "b")
    # Fewer than before: all of them are before the offsets that the job had reached.
    second = pairs_of("new", 30)
    job.send(second)
    job.start()
    assert job.alarms("near", awaited=NEAR.pairs(second)) == sorted(NEAR.pairs([*first, *second]))
    job.wait_for_job(lambda _: said(job) == ids)


def test_topics_recreated_while_the_job_runs_are_read_from_their_beginning(
    job: JobUnderTest,
) -> None:
    first = pairs_of("old", 40)
    job.send(first)
    job.alarms("near", awaited=NEAR.pairs(first))
    ids = recreate(job, "a", "b")
    second = pairs_of("new", 60)
    job.send(second)
    # What the running query had read of the new topics before it noticed is read twice.
    found = job.alarms("near", awaited=NEAR.pairs(second))
    assert set(found) == NEAR.pairs([*first, *second])
    job.wait_for_job(lambda _: said(job) == ids)
    third = pairs_of("later", 5)
    job.send(third)
    found = job.alarms("near", awaited=NEAR.pairs(third))
    assert [pair for pair in found if "later" in pair[1]] == sorted(NEAR.pairs(third))


def test_topic_recreated_under_an_unfinished_batch_enters_anew_after_it(job: JobUnderTest) -> None:
    now = time.time_ns() // 1_000

    def event(stream: str, name: str) -> Occurrence:
        return Occurrence(stream, name, "k", now - MAX_UNCERTAINTY_US, now)

    def consume(*events: Occurrence) -> None:
        before = total(job.wait_for_slots(bool), "events_consumed_total")
        job.send(events)
        job.wait_for_slots(
            lambda slots: total(slots, "events_consumed_total") >= before + len(events)
        )

    job.add_stream(stream(job, "c"), partitions=1)
    job.register(WITH_C.resource)
    job.wait_for_slots(lambda slots: all("c" in slot["watermarks"] for slot in slots))
    consume(event("b", "b1"), event("c", "kept"))
    assert job.stop() == 0
    # From here on the batch with the events is the last one: no heartbeats come after them.
    job.environment["COINCIDE_HEARTBEAT_SECONDS"] = "600"
    job.process = job.make_process()
    job.start()
    consume(event("c", "lost1"), event("c", "lost2"))
    unfinish_last_batch(job)
    ids = recreate(job, "c")
    job.send([event("c", "new")])
    job.start()
    job.send([event("a", "a1")])
    awaited = {("near", "a1", "b1"), ("with-c", "a1", "kept"), ("with-c", "a1", "new")}
    found = job.alarms("near", "with-c", awaited=awaited)
    # The state of the begun batch may have been stored: then its events are there all the same.
    begun = {("with-c", "a1", "lost1"), ("with-c", "a1", "lost2")}
    assert len(found) == len(set(found))
    assert awaited <= set(found) <= awaited | begun
    job.wait_for_job(
        lambda record: said(job) == ids and record["lost"] == {job.streams["c"].topic: {"0": 2}}
    )
    assert "failing" not in job.states()


def test_topic_that_was_truncated_goes_on_from_its_end(
    own_broker: EmbeddedBroker, tmp_path: Path
) -> None:
    job = begin(own_broker.bootstrap, tmp_path)
    try:
        first = pairs_of("first", 10)
        job.send(first)
        job.alarms("near", awaited=NEAR.pairs(first))
        job.stop()
        # As after an unclean leader election: the partitions lose what was written last.
        own_broker.stop()
        kept = [own_broker.data / "kafka" / f"{stream.topic}-0" for stream in job.streams.values()]
        for folder in kept:
            shutil.copytree(folder, tmp_path / folder.name)
        own_broker.start()
        second = pairs_of("second", 5)
        job.send(second)
        job.start()
        job.alarms("near", awaited=NEAR.pairs(second))
        job.stop()
        own_broker.stop()
        for folder in kept:
            shutil.rmtree(folder)
            shutil.copytree(tmp_path / folder.name, folder)
        own_broker.start()
        job.start()
        lost = {stream.topic: {"0": 5} for stream in job.streams.values()}
        job.wait_for_job(lambda record: record["lost"] == lost)
        third = pairs_of("third", 3)
        job.send(third)
        expected = sorted(NEAR.pairs([*first, *second, *third]))
        assert job.alarms("near", awaited=NEAR.pairs(third)) == expected
        assert said(job) == {}
    finally:
        job.process.stop(5)
