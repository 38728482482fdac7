"""A batch whose records are larger than the heap of Java."""

from __future__ import annotations

import json
import time
import uuid
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from correlation.resources.streams import Stream
from tests.support.job import JobUnderTest, total
from tests.support.patience import MAX_DELAY_US, PATIENCE_SECONDS, wait_until
from tests.support.workload import NearCondition, Occurrence

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.nightly]

RECORDS = 1_000
RECORD_BYTES = 900_000
QUEUED = 50
# Less than the records of the batch.
MEMORY = {"spark.driver.memory": "512m"}


def test_batch_of_records_larger_than_the_heap_is_read(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    prefix = f"large{uuid.uuid4().hex[:10]}"
    settings = {
        "COINCIDE_SPARK_PROPERTIES": json.dumps(MEMORY),
        "COINCIDE_MAX_EVENTS_PER_BATCH": str(RECORDS),
    }
    job = JobUnderTest(kafka_bootstrap, prefix, tmp_path, settings, own_java=True)
    for name in "ab":
        job.add_stream(Stream(name, f"{prefix}-{name}", 0, MAX_DELAY_US), partitions=1)
    near = NearCondition("near", "a", "b", 0, "0.5")
    job.register(near.resource)
    now = time.time_ns() // 1_000
    events = [Occurrence("a", f"a{i}", "k", now + i, now + i) for i in range(RECORDS)]
    others = [Occurrence("b", "b0", "k", now, now), Occurrence("b", "b1", "k", now + 7, now + 7)]
    padding = "x" * RECORD_BYTES
    values = (json.dumps({**json.loads(it.value), "padding": padding}).encode() for it in events)
    send_compressed(kafka_bootstrap, job.streams["a"].topic, values)
    job.send(others)
    try:
        assert supervise(job, RECORDS + len(others)) == 0
        expected = sorted(near.pairs([*events, *others]))
        assert expected
        assert job.alarms("near", awaited=expected) == expected
    finally:
        job.process.stop(5)


def send_compressed(bootstrap: str, topic: str, values: Iterable[bytes]) -> None:
    """Send values in few compressed batches: a consumer decompresses each in one piece."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "compression.type": "zstd",
            "message.max.bytes": 16 * 1024 * 1024,
        }
    )
    for value in values:
        producer.produce(topic, value, b"k")
        # The local queue is limited.
        producer.flush(0 if len(producer) < QUEUED else PATIENCE_SECONDS)
    assert producer.flush(PATIENCE_SECONDS) == 0


def supervise(job: JobUnderTest, events: int) -> int:
    """Start the job again when it ends, until it has read all events; return the failures."""
    failures = -1

    def all_are_read() -> bool:
        nonlocal failures
        if not job.process.running:
            failures += 1
            job.process.start()
        return total(job.wait_for_slots(lambda _: True), "events_consumed_total") >= events

    wait_until(all_are_read)
    return failures
