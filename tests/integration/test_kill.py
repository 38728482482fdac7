"""Killed with -9 at random moments under load: every pair is there, and once."""

from __future__ import annotations

import random
import threading
import time
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from correlation.streams import Stream
from tests.support.job import JobUnderTest, total
from tests.support.kafka import read_committed
from tests.support.workload import NearCondition, Occurrence, Workload

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

KILLS = 5
STREAM_AT = 2
LONGEST_US = 20_000
BURST = 40
BURST_SECONDS = 0.1
SEED = 20_100_520


def burst_of(streams: str, name: str) -> list[Occurrence]:
    """Return events of this moment, with ids of their own."""
    now_us = time.time_ns() // 1_000
    workload = Workload(streams, len(name), begin_us=now_us - 50_000, longest_us=LONGEST_US)
    return [replace(event, id=f"{name}.{event.id}") for event in workload.take(BURST)]


class Load(threading.Thread):
    """Sends bursts of events, with the times at which they are sent, until told to stop."""

    def __init__(self, job: JobUnderTest) -> None:
        super().__init__()
        self.sent: list[Occurrence] = []
        self._job = job
        self._ended = threading.Event()

    def run(self) -> None:
        burst = 0
        while not self._ended.wait(BURST_SECONDS):
            burst += 1
            events = burst_of("ab", str(burst))
            self._job.send(events)
            self.sent += events

    def end(self) -> list[Occurrence]:
        """Stop and give all that was sent."""
        self._ended.set()
        self.join()
        return self.sent


@pytest.mark.timeout(600)
def test_every_pair_is_written_once_when_the_job_is_killed_at_random_moments(
    kafka_bootstrap: str, spark_jar_paths: list[Path], tmp_path: Path
) -> None:
    chance = random.Random(SEED)  # noqa: S311 - no secret
    prefix = f"kill{uuid.uuid4().hex[:10]}"
    job = JobUnderTest(kafka_bootstrap, prefix, spark_jar_paths[0].parent, tmp_path)

    def stream(name: str) -> Stream:
        # Events are kept longer than any restart takes.
        return Stream(name, f"{prefix}-{name}", longest_us=LONGEST_US, max_delay_us=300_000_000)

    for name in "ab":
        job.add_stream(stream(name))
    near = NearCondition("near", "a", "b", 30_000, "0.6")
    with_c = NearCondition("with-c", "a", "c", 30_000, "0.5")
    job.register(near.resource)
    load = Load(job)
    try:
        job.start()
        load.start()
        others: list[Occurrence] = []
        for kill in range(KILLS):
            # At any moment of a batch: the wait is part of what is tested.
            threading.Event().wait(chance.uniform(0.0, 3.0))
            if kill == STREAM_AT:
                # The batch that is lost was begun without this stream, and is completed without it.
                job.add_stream(stream("c"))
                job.register(with_c.resource)
                others = burst_of("ac", "other")
                job.send(others)
            job.kill()
            job.start()
        events = [*load.end(), *others]
        expected = sorted(near.pairs(events))
        assert len(expected) > 1_000
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
        load.end()
        job.process.stop(5)
