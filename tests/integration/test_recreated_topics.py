"""Event topics that are deleted and created again, or truncated.

The tests share a job, except the last one, which has a broker of its own. Each has streams of its
own.
"""

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
# Pairs of streams a and b of each test that shares the job, and of a and c of one of them.
STOPPED, RUNNING, UNFINISHED, TRUNCATED = (
    NearCondition(name, f"{name}-a", f"{name}-b", 30_000, "0.6")
    for name in ("stopped", "running", "unfinished", "truncated")
)
WITH_C = NearCondition("with-c", UNFINISHED.a, "unfinished-c", 30_000, "0.6")


@pytest.fixture(scope="module")
def installation(
    kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[JobUnderTest]:
    folder = tmp_path_factory.mktemp("job")
    job = install(kafka_bootstrap, folder, STOPPED, RUNNING, UNFINISHED, WITH_C)
    try:
        yield job
    finally:
        job.process.stop(5)


def install(bootstrap: str, folder: Path, *conditions: NearCondition) -> JobUnderTest:
    """Return a job with conditions whose streams have a topic of one partition each."""
    job = JobUnderTest(bootstrap, f"again{uuid.uuid4().hex[:10]}", folder)
    for name in sorted({name for it in conditions for name in (it.a, it.b)}):
        stream = Stream(name, f"{job.prefix}-{name}", MAX_UNCERTAINTY_US, MAX_DELAY_US)
        job.add_stream(stream, partitions=1)
    job.register(*(it.resource for it in conditions))
    return job


def pairs_of(near: NearCondition, name: str, count: int) -> list[Occurrence]:
    """Return events of this moment, each pair under a key of its own."""
    latest = time.time_ns() // 1_000
    return [
        Occurrence(stream, f"{stream}.{name}{i}", f"{name}{i}", latest - MAX_UNCERTAINTY_US, latest)
        for i in range(count)
        for stream in (near.a, near.b)
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
    near = STOPPED
    first = pairs_of(near, "old", 40)
    job.send(first)
    job.alarms(near.name, awaited=near.pairs(first))
    assert job.stop() == 0
    ids = recreate(job, near.a, near.b)
    # Fewer than before: all of them are before the offsets that the job had reached.
    second = pairs_of(near, "new", 30)
    job.send(second)
    job.start()
    found = job.alarms(near.name, awaited=near.pairs(second))
    assert found == sorted(near.pairs([*first, *second]))
    job.wait_for_job(lambda _: said(job) == ids)


def test_topics_recreated_while_the_job_runs_are_read_from_their_beginning(
    job: JobUnderTest,
) -> None:
    near = RUNNING
    first = pairs_of(near, "old", 40)
    job.send(first)
    job.alarms(near.name, awaited=near.pairs(first))
    # Those of other tests since the start of the job.
    others = said(job)
    ids = recreate(job, near.a, near.b)
    second = pairs_of(near, "new", 60)
    job.send(second)
    # Records of the new topics that the running query had read before it noticed are read twice.
    found = job.alarms(near.name, awaited=near.pairs(second))
    assert set(found) == near.pairs([*first, *second])
    job.wait_for_job(lambda _: said(job) == others | ids)
    third = pairs_of(near, "later", 5)
    job.send(third)
    found = job.alarms(near.name, awaited=near.pairs(third))
    assert [pair for pair in found if "later" in pair[1]] == sorted(near.pairs(third))


@pytest.mark.nightly
def test_topic_recreated_under_an_unfinished_batch_enters_anew_after_it(job: JobUnderTest) -> None:
    near, c = UNFINISHED, WITH_C.b
    now = time.time_ns() // 1_000
    failing = job.states().count("failing")

    def event(stream: str, name: str) -> Occurrence:
        return Occurrence(stream, name, "k", now - MAX_UNCERTAINTY_US, now)

    def consume(*events: Occurrence) -> None:
        before = total(job.wait_for_slots(bool), "events_consumed_total")
        job.send(events)
        job.wait_for_slots(
            lambda slots: total(slots, "events_consumed_total") >= before + len(events)
        )

    consume(event(near.b, "b1"), event(c, "kept"))
    assert job.stop() == 0
    # From here on the batch with the events is the last one: no heartbeats come after them.
    job.process = job.make_process(COINCIDE_HEARTBEAT_SECONDS="600")
    try:
        job.start()
        consume(event(c, "lost1"), event(c, "lost2"))
        unfinish_last_batch(job)
        ids = recreate(job, c)
        job.send([event(c, "new")])
        job.start()
        job.send([event(near.a, "a1")])
        kept = {("unfinished", "a1", "b1"), ("with-c", "a1", "kept"), ("with-c", "a1", "new")}
        found = job.alarms("unfinished", "with-c", awaited=kept)
        # The state of the begun batch may have been stored: then its events are there all the same.
        begun = {("with-c", "a1", "lost1"), ("with-c", "a1", "lost2")}
        assert len(found) == len(set(found))
        assert kept <= set(found) <= kept | begun
        lost = {job.streams[c].topic: {"0": 2}}
        job.wait_for_job(lambda record: said(job) == ids and record["lost"] == lost)
        assert job.states().count("failing") == failing
    finally:
        # Other tests need heartbeats.
        job.process.stop(5)
        job.process = job.make_process()


def test_topic_that_was_truncated_goes_on_from_its_end(
    own_broker: EmbeddedBroker, tmp_path: Path
) -> None:
    near = TRUNCATED
    job = install(own_broker.bootstrap, tmp_path, near)
    try:
        first = pairs_of(near, "first", 10)
        job.send(first)
        # As after an unclean leader election: the partitions lose what was written last.
        own_broker.stop()
        kept = [own_broker.data / "kafka" / f"{stream.topic}-0" for stream in job.streams.values()]
        for folder in kept:
            shutil.copytree(folder, tmp_path / folder.name)
        own_broker.start()
        second = pairs_of(near, "second", 5)
        job.send(second)
        job.start()
        job.alarms(near.name, awaited=near.pairs([*first, *second]))
        job.stop()
        own_broker.stop()
        for folder in kept:
            shutil.rmtree(folder)
            shutil.copytree(tmp_path / folder.name, folder)
        own_broker.start()
        job.start()
        lost = {stream.topic: {"0": 5} for stream in job.streams.values()}
        job.wait_for_job(lambda record: record["lost"] == lost)
        third = pairs_of(near, "third", 3)
        job.send(third)
        expected = sorted(near.pairs([*first, *second, *third]))
        assert job.alarms(near.name, awaited=near.pairs(third)) == expected
        assert said(job) == {}
    finally:
        job.process.stop(5)
