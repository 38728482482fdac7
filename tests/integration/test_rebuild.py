"""The job rebuilds its state from Kafka."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from cli.errors import ProcessError
from tests.support.every_kind import near
from tests.support.interrupted import (
    CONDITIONS,
    WINDOW_US,
    World,
    assert_as_uninterrupted,
    kill_in_the_first_batch,
    lose_checkpoint,
    results,
)
from tests.support.job import total
from tests.support.kafka import recreate_topic
from tests.support.messages import assert_names
from tests.support.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

# Events wait for their block in segments of their own, which no other slot has.
BLOCKS = {**near(WINDOW_US), "block_size": 150, "block_interval_us": 3_600_000_000}


def test_every_result_is_written_once_when_the_checkpoint_is_lost(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    conditions = {**CONDITIONS, "blocks": BLOCKS}
    world = World(kafka_bootstrap, tmp_path, conditions)
    job = world.job
    try:
        job.start()
        for is_lost in (True, False):
            world.send()
            world.wait_until_read()
            world.send()
            job.kill()
            if is_lost:
                lose_checkpoint(job)
                kill_in_the_first_batch(job)
            else:
                # Some slots may have written the unfinished batch, and events may wait for their
                # block: then the number of slots changes later.
                job.process = job.make_process(option="--rebuild", COINCIDE_SLOTS="3")
            world.send()
            job.start()
        world.close(job)
        assert_as_uninterrupted(world, tmp_path)
        job.wait_for_job(lambda it: (it["state"], it["slots"]) == ("running", 3))
        slots = job.wait_for_slots(
            lambda slots: total(slots, "events_consumed_total") == 2 * len(world.sent)
        )
        assert total(slots, "alarms_total") > 0
    finally:
        job.process.stop(5)


def test_lost_records_of_the_buffers_are_named_and_can_be_given_up(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    world = World(kafka_bootstrap, tmp_path, {"near": near(WINDOW_US)})
    job = world.job
    admin = AdminClient({"bootstrap.servers": kafka_bootstrap})
    try:
        job.start()
        world.send()
        world.wait_until_read()
        assert job.stop() == 0
        before = results(job)
        lose_checkpoint(job)
        topic = job.streams["a"].topic
        ends = [TopicPartition(topic, number, -1) for number in range(2)]
        for answer in admin.delete_records(ends).values():
            answer.result()

        job.process.start()
        with pytest.raises(ProcessError):
            job.process.wait_until(lambda: False, PATIENCE_SECONDS)
        record = job.job_records()[-1]
        assert record["state"] == "failed"
        assert_names(record["exception"], "events from offset", "--from-now")

        job.process = job.make_process(option="--from-now")
        job.start()
        world.send()
        world.wait_until_read()
        found = results(job)
        assert before - found == Counter()
        assert max(found.values()) == 1
        assert found.total() > before.total()

        assert job.stop() == 0
        job.process = job.make_process(option="--from-beginning")
        job.start()
        # The alarms of the records that are left are written again, with the same ids.
        ids = {it: count for it, count in results(job, found.total() + 1).items() if count > 1}
        assert ids
    finally:
        job.process.stop(5)


def test_job_without_checkpoint_and_state_does_not_write_alarms_again(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    world = World(kafka_bootstrap, tmp_path, {"near": near(WINDOW_US)})
    job = world.job
    try:
        job.start()
        world.send()
        world.wait_until_read()
        assert job.stop() == 0
        before = results(job)
        assert before
        lose_checkpoint(job)
        recreate_topic(kafka_bootstrap, job.topics.state, 1)

        job.process.start()
        with pytest.raises(ProcessError):
            job.process.wait_until(lambda: False, PATIENCE_SECONDS)
        record = job.job_records()[-1]
        assert record["state"] == "failed"
        assert_names(record["exception"], "restore", job.topics.state)
        assert results(job) == before

        job.process = job.make_process(option="--from-beginning")
        job.start()
        again = results(job, 2 * before.total())
        assert set(again) == set(before)
    finally:
        job.process.stop(5)
