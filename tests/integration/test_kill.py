"""Kill -9 at random moments under load: every pair is written exactly once."""

from __future__ import annotations

import random
import threading
import time
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from correlation.resources.streams import Stream
from tests.support.job import MANY_BATCHES, JobUnderTest, total
from tests.support.kafka import read_committed
from tests.support.patience import MAX_DELAY_US
from tests.support.workload import NearCondition, Occurrence, Workload

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.nightly]

KILLS = 3
STREAM_AT = 1
MAX_UNCERTAINTY_US = 20_000
# The load is counted in bursts, not in seconds: a slow machine has no more to judge.
BURST = 40
BURST_SECONDS = 0.1
MOST_BURSTS = 30
WHILE_DOWN = 10
SEED = 20_100_520


class Load:
    """Bursts of events of this moment, sent to a job; all that was sent is kept."""

    def __init__(self, job: JobUnderTest) -> None:
        self.sent: list[Occurrence] = []
        self._job = job
        self._bursts = 0

    def send(self, streams: str = "ab") -> None:
        """Send one burst."""
        self._bursts += 1
        now_us = time.time_ns() // 1_000
        workload = Workload(
            streams, self._bursts, begin_us=now_us - 50_000, max_uncertainty_us=MAX_UNCERTAINTY_US
        )
        events = [replace(it, id=f"{self._bursts}.{it.id}") for it in workload.take(BURST)]
        self._job.send(events)
        self.sent += events


def test_every_pair_is_written_once_when_the_job_is_killed_at_random_moments(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    chance = random.Random(SEED)  # noqa: S311 - no secret
    prefix = f"kill{uuid.uuid4().hex[:10]}"
    job = JobUnderTest(kafka_bootstrap, prefix, tmp_path, MANY_BATCHES, own_java=True)

    def stream(name: str) -> Stream:
        return Stream(
            name,
            f"{prefix}-{name}",
            max_uncertainty_us=MAX_UNCERTAINTY_US,
            max_delay_us=MAX_DELAY_US,
        )

    for name in "ab":
        job.add_stream(stream(name))
    near = NearCondition("near", "a", "b", 30_000, "0.6")
    with_c = NearCondition("with-c", "a", "c", 30_000, "0.5")
    job.register(near.resource)
    load = Load(job)
    pace = threading.Event()
    try:
        job.start()
        for kill in range(KILLS):
            # Batches follow each other meanwhile: the kill comes at any moment of one.
            for _ in range(chance.randint(1, MOST_BURSTS)):
                load.send()
                pace.wait(BURST_SECONDS)
            if kill == STREAM_AT:
                # The batch that is lost was begun without this stream, and is completed without it.
                job.add_stream(stream("c"))
                job.register(with_c.resource)
                load.send("ac")
            job.kill()
            for _ in range(WHILE_DOWN):
                load.send()
            job.start()
        events = load.sent
        expected = sorted(near.pairs(events))
        assert len(expected) > 500
        assert job.alarms("near", awaited=expected) == expected
        expected_with_c = sorted(with_c.pairs(events))
        assert expected_with_c
        assert job.alarms("with-c", awaited=expected_with_c) == expected_with_c
        slots = job.wait_for_slots(
            lambda slots: total(slots, "events_consumed_total") >= len(events)
        )
        assert total(slots, "events_consumed_total") == len(events)
        assert total(slots, "alarms_total") == len(expected) + len(expected_with_c)
        assert total(slots, "events_late_total") == 0
        assert read_committed(kafka_bootstrap, job.topics.late) == []
        assert read_committed(kafka_bootstrap, job.topics.dead_letter) == []
    finally:
        job.process.stop(5)
