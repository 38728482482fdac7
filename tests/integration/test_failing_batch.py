"""A batch that fails because of its size is planned again, smaller, without a new process."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from correlation.kinds import KINDS
from correlation.resources.records import Resource
from correlation.resources.streams import Stream
from correlation.resources.topics import Topics
from spark_jobs.driver.checkpoint import Checkpoint
from spark_jobs.driver.claim import Claim
from spark_jobs.driver.failed_batches import plan_again
from spark_jobs.driver.layout import Layout
from spark_jobs.driver.replanning import Replanning
from spark_jobs.driver.session import open_session
from spark_jobs.errors import ClaimLostError
from spark_jobs.settings import Settings
from spark_jobs.sink.ownership import MERGED
from spark_jobs.sink.transactions import PartitionProducer
from spark_jobs.worker.envelope import Record
from tests.support.claims import claim, target
from tests.support.job import JobUnderTest, total
from tests.support.kafka import Sent, create_topics, produce_in_transaction
from tests.toy import toy_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from spark_jobs.driver.parts import Parts

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
PACKAGES = f"{ROOT}:{ROOT / 'tests' / 'fragile'}"
EVENTS = 800
QUERY, SLOTS = "made-up-query", 2


def test_batch_that_fails_is_planned_again_and_smaller_by_the_same_process(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    prefix = f"failing{uuid.uuid4().hex[:10]}"
    settings = {"COINCIDE_SLOTS": "1", "PYTHONPATH": PACKAGES}
    kinds = (*KINDS.values(), *toy_kind.KINDS)
    job = JobUnderTest(kafka_bootstrap, prefix, tmp_path, settings, kinds=kinds)
    job.add_stream(Stream("doors", f"{prefix}-doors", 1_000, 0, clock="replay"), partitions=1)
    document = {"kind": "fragile_event", "stream": "doors", "min_length_us": 0}
    job.register(Resource("condition", "fragile", 1, 0, document))
    ids = [f"e{number:03}" for number in range(EVENTS)]
    events = [{"id": it, "earliest": at, "latest": at} for at, it in enumerate(ids)]
    try:
        job.start()
        pid, claimed = job.process.pid, job.job_records()[-1]["claim"]
        # All of them are visible at the same moment.
        values = (json.dumps(it).encode() for it in events)
        topic = job.streams["doors"].topic
        produce_in_transaction(kafka_bootstrap, topic, [Sent(it, b"k", 0) for it in values])
        job.wait_for_slots(lambda slots: total(slots, "events_consumed_total") == EVENTS)
        assert all(f"a block has {EVENTS} events" in it for it in job.failures())
        said = job.process.log_path.read_text()
        assert "the query failed (2 in a row)" in said
        assert "batches read at most 100 records now" in said
        assert "the query failed (3 in a row)" not in said
        assert job.process.pid == pid
        assert job.job_records()[-1]["claim"] > claimed
        records = job.read(job.topics.alarms, lambda found: len(found) >= EVENTS)
        assert sorted(json.loads(it.value or b"")["id"] for it in records) == ids
        job.wait_for_job(lambda record: record["state"] == "running")
        assert job.stop() == 0
    finally:
        job.process.stop(5)


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    session = open_session(Settings(spark_master="local[2]"))
    yield session
    session.stop()


class World:
    """A job whose query has failed in batch 1, of which the parts of the sink may have written."""

    def __init__(self, bootstrap: str, prefix: str, session: SparkSession, folder: Path) -> None:
        self.settings = Settings(bootstrap=bootstrap, prefix=prefix)
        self.topics = Topics(prefix)
        names = (self.topics.alarms, self.topics.config, self.topics.state)
        create_topics(bootstrap, dict.fromkeys(names, 1))
        self.checkpoint = Checkpoint(session, str(folder / "job"))
        self.checkpoint.write("query/metadata", json.dumps({"id": QUERY}).encode())
        for batch in range(2):
            offsets = json.dumps({"events": {"0": 16_000 * (batch + 1)}})
            self.checkpoint.write(f"query/offsets/{batch}", f"v1\n{{}}\n{offsets}".encode())
        self.checkpoint.write("query/commits/0", b"v1\n{}")
        client = self.settings.client
        self.claim = Claim(self.topics, client, claim(self.topics, client, partitions=SLOTS))
        self.states: list[int] = []

    def state(self, _: str, *, claim: int) -> None:
        self.states.append(claim)

    def producer(self, part: int | str) -> PartitionProducer:
        """Return a part of the sink, as a worker of the present query opens it."""
        place = target(self.topics, self.claim.owner, part, QUERY)
        return PartitionProducer(place, self.settings.client)

    def write(self, producer: PartitionProducer, batch: int) -> int:
        return producer.write(batch, [Record(self.topics.alarms, b"k", b"%d" % batch)])

    def plan_again(self) -> None:
        """Plan the unfinished batch again, as the job does after the failure."""
        parts = SimpleNamespace(
            settings=self.settings, checkpoint=self.checkpoint, claim=self.claim, reporter=self
        )
        layout = Layout(SLOTS, tuple(range(SLOTS)), "checkpoint")
        plan_again(cast("Parts", parts), layout, Replanning(self.checkpoint, 5_000))


@pytest.fixture
def world(kafka_bootstrap: str, topic_prefix: str, session: SparkSession, tmp_path: Path) -> World:
    return World(kafka_bootstrap, topic_prefix, session, tmp_path)


@pytest.mark.parametrize("part", [0, 1, MERGED])
def test_failed_batch_of_which_a_part_is_written_is_not_planned_again(
    world: World, part: int | str
) -> None:
    for slot in range(SLOTS):
        assert world.write(world.producer(slot), 0) == 1
    assert world.write(world.producer(part), 1) == 1
    world.plan_again()
    assert world.checkpoint.has_unfinished_batch()
    # The other parts write it.
    assert world.write(world.producer(1 if part == 0 else 0), 1) == 1


def test_worker_of_the_failed_query_writes_nothing_after_its_batch_was_planned_again(
    world: World,
) -> None:
    late, later = world.producer(0), world.producer(1)
    assert world.write(late, 0) == 1
    former = world.claim.owner
    world.plan_again()
    assert not world.checkpoint.has_unfinished_batch()
    assert world.states == [world.claim.owner.number]
    assert world.claim.owner.number > former.number
    # With a producer that was open, and with one that is opened now.
    for producer in (late, later):
        with pytest.raises(ClaimLostError):
            world.write(producer, 1)
    world.claim.look()
    assert world.write(world.producer(0), 1) == 1


def test_batch_is_not_planned_again_for_a_job_that_has_lost_its_claim(world: World) -> None:
    claim(world.topics, world.settings.client, "another", SLOTS)
    with pytest.raises(ClaimLostError):
        world.plan_again()
    assert world.checkpoint.has_unfinished_batch()
