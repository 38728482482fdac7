"""Streams whose partitions are used unevenly: one has all events, another is silent for ever."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from cli.client.events import close_stream
from cli.settings import Settings
from correlation.engine.heartbeats import CLOSED
from correlation.resources.records import Resource
from correlation.resources.streams import Stream
from tests.support.job import JobUnderTest, total
from tests.support.kafka import Sent, create_topics, produce
from tests.support.patience import MAX_DELAY_US
from tests.support.workload import NearCondition, Occurrence, Workload

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

PREFIX = f"silent{uuid.uuid4().hex[:10]}"
PARTITIONS = 4
BUSY, REST = 0, range(1, PARTITIONS)
MAX_UNCERTAINTY_US, DELAY_US = 2_000, 20_000
LIVE = NearCondition("live", "a", "b", 4_000, "0.6")
RECORDED = NearCondition("recorded", "c", "d", 4_000, "0.6")
OUTPUT = f"{PREFIX}-alone"
ALONE = {**RECORDED.resource.document, "emit": "unmatched", "output_topic": OUTPUT}


@pytest.fixture(scope="module")
def job(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JobUnderTest]:
    """Return a running job with two live and two recorded streams, of several partitions each."""
    job = JobUnderTest(kafka_bootstrap, PREFIX, tmp_path_factory.mktemp("job"))
    for name in "abcd":
        stream = Stream(name, f"{PREFIX}-{name}", MAX_UNCERTAINTY_US, MAX_DELAY_US)
        if name in "cd":
            stream = replace(stream, max_delay_us=DELAY_US, clock="replay")
        job.add_stream(stream, PARTITIONS)
    create_topics(kafka_bootstrap, {OUTPUT: 1})
    alone = Resource("condition", "alone", 1, 0, ALONE)
    job.register(LIVE.resource, RECORDED.resource, alone)
    job.start()
    try:
        yield job
    finally:
        job.process.stop(5)


def workload(streams: str, seed: int, begin_us: int) -> Workload:
    """Return events that all have the same key."""
    return Workload(streams, seed, begin_us, max_uncertainty_us=MAX_UNCERTAINTY_US, keys=1)


def send(job: JobUnderTest, events: list[Occurrence]) -> None:
    """Send events to one partition of each topic."""
    for name in sorted({it.stream for it in events}):
        sent = [Sent(it.value, it.key.encode(), BUSY) for it in events if it.stream == name]
        produce(job.bootstrap, job.streams[name].topic, sent)


def wait_until_read(job: JobUnderTest, count: int) -> list[dict[str, Any]]:
    """Wait until a number of events of the recorded streams is read."""

    def read(slots: list[dict[str, Any]]) -> int:
        return sum(total(slots, "events_consumed_total", stream=it) for it in "cd")

    return job.wait_for_slots(lambda slots: read(slots) == count)


def advance(job: JobUnderTest, stream: str, partition: int, read_up_to: int) -> None:
    """Send a heartbeat of a recorded stream, as its producer does."""
    heartbeat = {"stream": stream, "partition": partition, "read_up_to": read_up_to}
    produce(job.bootstrap, job.topics.heartbeats, [Sent(json.dumps(heartbeat).encode())])


def marks(slots: list[dict[str, Any]], streams: str) -> set[int | None]:
    return {slot["watermarks"].get(it, {}).get("watermark") for slot in slots for it in streams}


def buffered(slots: list[dict[str, Any]], streams: str) -> int:
    return sum(
        int(value)
        for slot in slots
        for name, labels, value in slot["gauges"]
        if name == "buffered_events" and labels["stream"] in streams
    )


def alone(events: list[Occurrence]) -> set[str]:
    """Return the ids of the events of "c" without a partner, by the oracle."""
    paired = {a for _, a, _ in RECORDED.pairs(events)}
    return {it.id for it in events if it.stream == "c"} - paired


def found_alone(job: JobUnderTest, count: int = 0) -> list[str]:
    """Return the ids that the condition has reported, once there are as many as given."""
    records = job.read(OUTPUT, lambda found: len(found) >= count)
    return sorted(json.loads(it.value or b"")["a"]["id"] for it in records)


def test_events_of_one_key_in_one_of_several_partitions_are_correlated(job: JobUnderTest) -> None:
    begin_us = time.time_ns() // 1_000 - 1_000_000
    events = workload("ab", 1, begin_us).take(400)
    send(job, events)
    expected = sorted(LIVE.pairs(events))
    assert len(expected) > 100
    assert job.alarms("live", awaited=expected) == expected
    # The partitions without events do not hold the watermark: the job sends their heartbeats.
    moved_past = time.time_ns() // 1_000 - MAX_DELAY_US
    slots = job.wait_for_slots(
        lambda slots: min((it or 0 for it in marks(slots, "ab")), default=0) > moved_past
    )
    assert total(slots, "events_late_total") == 0


def test_recorded_stream_waits_for_its_silent_partitions_until_heartbeats_come(
    job: JobUnderTest,
) -> None:
    found = workload("cd", 2, begin_us=1_000_000_000_000_000)
    events: list[Occurrence] = []
    for _ in range(2):
        events += (part := found.take(400))
        send(job, part)
        # Pairs do not wait for the watermark; the buffers keep every event.
        expected = sorted(RECORDED.pairs(events))
        assert job.alarms("recorded", awaited=expected) == expected
        slots = wait_until_read(job, len(events))
        assert marks(slots, "cd") == {None}
        assert buffered(slots, "cd") == len(events)
        assert found_alone(job) == []
    expected_alone = sorted(alone(events))
    assert expected_alone
    # Heartbeats of the silent partitions: the watermark is that of the busy one.
    end_us = max(it.latest for it in events) + 1_000_000
    for name in "cd":
        for partition in (BUSY, *REST):
            advance(job, name, partition, end_us)
    assert found_alone(job, len(expected_alone)) == expected_alone
    slots = job.wait_for_slots(lambda slots: marks(slots, "cd") == {end_us - DELAY_US})
    assert buffered(slots, "cd") == 0
    # Events that follow wait again, until the stream is closed.
    later = workload("cd", 3, begin_us=end_us).take(100)
    events += (part := [replace(it, id=f"later-{it.id}") for it in later])
    send(job, part)
    expected_alone = sorted(alone(events))
    settings = Settings(bootstrap=job.bootstrap, prefix=PREFIX)
    for name in "cd":
        close_stream(settings, name, job.streams[name].topic)
    assert found_alone(job, len(expected_alone)) == expected_alone
    slots = job.wait_for_slots(lambda slots: marks(slots, "cd") == {CLOSED})
    assert buffered(slots, "cd") == 0
    expected = sorted(RECORDED.pairs(events))
    assert job.alarms("recorded", awaited=expected) == expected
    assert total(slots, "events_late_total") == 0
