"""The clock of the job's host jumps, forward and back, while Kafka's clock is right."""

from __future__ import annotations

import json
import sys
import threading
import time
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from correlation.resources.streams import Stream
from correlation.resources.topics import Topics
from spark_jobs.driver.rivals import refuse_rivals
from spark_jobs.errors import RivalJobError
from tests.support.job import JobUnderTest, total
from tests.support.kafka import Sent, create_topics, produce
from tests.support.patience import MAX_DELAY_US, PATIENCE_SECONDS
from tests.support.shared_java import SharedJavaProcess
from tests.support.workload import NearCondition, Workload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_client.settings import Properties
    from tests.support.workload import Occurrence

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

HOUR_US = 3_600_000_000
MAX_UNCERTAINTY_US = 20_000
NEAR = NearCondition("near", "a", "b", 30_000, "0.6")


class ShiftedJob(JobUnderTest):
    """An installation whose job has a clock that the test sets."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.sent: list[Occurrence] = []

    def use_shifted_clock(self) -> None:
        """Let the next process have the clock; let Kafka stamp heartbeats, as the service does."""
        self.shift(0)
        client = AdminClient({"bootstrap.servers": self.bootstrap})
        entry = ConfigEntry(
            "message.timestamp.type", "LogAppendTime", incremental_operation=AlterConfigOpType.SET
        )
        place = ConfigResource(
            ResourceType.TOPIC, self.topics.heartbeats, incremental_configs=[entry]
        )
        client.incremental_alter_configs([place])[place].result(PATIENCE_SECONDS)
        command = [sys.executable, "-m", "tests.support.shifted_job", str(self.folder / "shift")]
        log = self.folder / "shifted.log"
        self.process = SharedJavaProcess("job", command, log, self.environment)

    def shift(self, us: int) -> None:
        """Set the clock of the job's host to the true time plus a difference."""
        new = self.folder / "shift.new"
        new.write_text(str(us))
        # The job reads the former difference or the new one.
        new.rename(self.folder / "shift")


@pytest.fixture(scope="module")
def job(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ShiftedJob]:
    """Return a running job with two live streams and a condition."""
    prefix = f"jumps{uuid.uuid4().hex[:10]}"
    settings = {"COINCIDE_HEARTBEAT_SECONDS": "2"}
    job = ShiftedJob(kafka_bootstrap, prefix, tmp_path_factory.mktemp("job"), settings)
    job.use_shifted_clock()
    for name in "ab":
        job.add_stream(Stream(name, f"{prefix}-{name}", MAX_UNCERTAINTY_US, MAX_DELAY_US))
    job.register(NEAR.resource)
    job.start()
    try:
        yield job
    finally:
        job.process.stop(5)


def now_us() -> int:
    return time.time_ns() // 1_000


def marks(slots: list[dict[str, Any]]) -> list[int]:
    """Return the watermarks of all slots and streams; 0: unknown."""
    found = [slot["watermarks"].get(name, {}) for slot in slots for name in "ab"]
    return [it.get("watermark") or 0 for it in found]


def wait_for_heartbeats(job: ShiftedJob) -> list[dict[str, Any]]:
    """Wait until heartbeats of the present time have advanced the idle streams."""
    moved_past = now_us() - MAX_DELAY_US
    return job.wait_for_slots(lambda slots: min(marks(slots), default=0) > moved_past)


def find_pairs(job: ShiftedJob) -> None:
    """Send events of this moment, and wait for the pairs of all events."""
    begin = now_us() - 200_000
    number = len(job.sent)
    workload = Workload("ab", number, begin, max_uncertainty_us=MAX_UNCERTAINTY_US)
    job.sent += [replace(it, id=f"{number}.{it.id}") for it in workload.take(100)]
    job.send(job.sent[number:])
    expected = sorted(NEAR.pairs(job.sent))
    assert len(expected) > number // 2
    assert job.alarms("near", awaited=expected) == expected


def assert_nothing_is_lost(job: ShiftedJob, slots: list[dict[str, Any]]) -> None:
    assert job.read(job.topics.dead_letter) == []
    assert total(slots, "events_late_total") == 0
    assert job.failures() == []


def test_clock_that_jumps_forward_stops_no_heartbeat_and_makes_no_event_late(
    job: ShiftedJob,
) -> None:
    wait_for_heartbeats(job)
    job.shift(HOUR_US)
    # Of ticks after the jump.
    job.wait_for_job(lambda record: record["at"] > now_us() + HOUR_US // 2)
    slots = wait_for_heartbeats(job)
    assert max(marks(slots)) <= now_us() - MAX_DELAY_US
    find_pairs(job)
    job.shift(0)
    find_pairs(job)
    assert_nothing_is_lost(job, wait_for_heartbeats(job))


def test_clock_that_jumps_back_delays_idle_streams_until_it_is_right(job: ShiftedJob) -> None:
    before = min(marks(wait_for_heartbeats(job)))
    job.shift(-HOUR_US)
    job.wait_for_job(lambda record: record["at"] < now_us() - HOUR_US // 2)
    find_pairs(job)
    # A job that starts meanwhile claims the installation, whatever its clock.
    claim = job.job_records()[-1]["claim"]
    job.kill()
    job.start()
    assert job.job_records()[-1]["claim"] > claim
    find_pairs(job)
    slots = job.wait_for_slots(bool)
    assert min(marks(slots)) >= before
    assert max(marks(slots)) < now_us() - MAX_DELAY_US
    job.shift(0)
    assert_nothing_is_lost(job, wait_for_heartbeats(job))


class Patience(threading.Event):
    """A stop of the job that a test sets after a number of waits, which take no time."""

    def __init__(self) -> None:
        super().__init__()
        self.waits = 0

    def wait(self, timeout: float | None = None) -> bool:  # noqa: ARG002 - as of Event
        self.waits += 1
        if self.waits > 20:
            self.set()
        return self.is_set()


@pytest.fixture
def topics(kafka_bootstrap: str) -> Topics:
    found = Topics(f"jumps{uuid.uuid4().hex[:10]}", ())
    create_topics(kafka_bootstrap, {found.metrics: 1})
    return found


def say(bootstrap: str, topics: Topics, at_us: int) -> None:
    """Write a record of a job with another checkpoint."""
    record = {"v": 1, "state": "running", "checkpoint": "other", "at": at_us}
    produce(bootstrap, topics.metrics, [Sent(json.dumps(record).encode(), b"job")])


def test_dead_job_with_a_clock_ahead_does_not_delay_another_for_longer_than_its_silence(
    kafka_bootstrap: str, topics: Topics
) -> None:
    say(kafka_bootstrap, topics, now_us() + HOUR_US)
    stop = Patience()
    properties: Properties = {"bootstrap.servers": kafka_bootstrap}
    refuse_rivals(properties, topics, "own", now_us, stop, lambda: 2.0 * stop.waits)
    assert stop.waits == 5


def test_running_job_whose_clock_jumps_back_is_noticed(
    kafka_bootstrap: str, topics: Topics
) -> None:
    say(kafka_bootstrap, topics, now_us() + HOUR_US)

    class Other(Patience):
        def wait(self, timeout: float | None = None) -> bool:
            say(kafka_bootstrap, topics, now_us())
            return super().wait(timeout)

    properties: Properties = {"bootstrap.servers": kafka_bootstrap}
    with pytest.raises(RivalJobError):
        refuse_rivals(properties, topics, "own", now_us, Other(), lambda: 0.0)
