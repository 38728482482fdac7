"""Records that Kafka removed before the job read them are counted once, even by later jobs."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from correlation.resources.streams import Stream
from tests.support.job import JobUnderTest, total
from tests.support.patience import MAX_DELAY_US, PATIENCE_SECONDS
from tests.support.workload import Occurrence

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.slow,
]


def remove_before(job: JobUnderTest, offset: int) -> None:
    """Remove records as retention does."""
    client = AdminClient({"bootstrap.servers": job.bootstrap})
    place = TopicPartition(job.streams["a"].topic, 0, offset)
    for removed in client.delete_records([place]).values():
        removed.result(PATIENCE_SECONDS)


def test_losses_stay_counted_when_the_job_starts_again(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    prefix = f"lost{uuid.uuid4().hex[:10]}"
    job = JobUnderTest(kafka_bootstrap, prefix, tmp_path)
    topic = f"{prefix}-a"
    job.add_stream(Stream("a", topic, 0, MAX_DELAY_US), partitions=1)
    sent = 0

    def send(count: int) -> None:
        nonlocal sent
        now = time.time_ns() // 1_000
        job.send(Occurrence("a", str(sent + number), "k", now, now) for number in range(count))
        sent += count

    def read(count: int) -> None:
        """Wait until the job has read this number of records since its first start."""
        job.wait_for_slots(lambda slots: total(slots, "events_consumed_total") >= count)

    try:
        job.start()
        send(5)
        read(5)
        assert job.job_records()[-1]["lost"] == {}
        assert job.stop() == 0
        # The records at offsets 5 to 11 are lost, and 12 to 14 are read.
        send(10)
        remove_before(job, 12)
        job.start()
        read(8)
        job.kill()
        job.start()
        assert job.job_records()[-1]["lost"] == {topic: {"0": 7}}
        assert job.stop() == 0
        send(3)
        remove_before(job, 17)
        job.start()
        read(9)
        assert job.job_records()[-1]["lost"] == {topic: {"0": 9}}
        assert job.stop() == 0
        # Never less, and unknown only before the checkpoint is read.
        found = [record["lost"] for record in job.job_records()]
        known = [lost.get(topic, {}).get("0", 0) for lost in found if lost is not None]
        assert known == sorted(known)
        assert set(known) == {0, 7, 9}
    finally:
        job.process.stop(5)
