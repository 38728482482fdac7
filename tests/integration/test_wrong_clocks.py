"""The job refuses heartbeats ahead of Kafka's clock, and accepts a reset of a watermark."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from correlation.engine.heartbeats import CLOSED
from correlation.resources.streams import Stream
from tests.rest.running import fresh_settings, running
from tests.support.job import JobUnderTest, total
from tests.support.kafka import Sent, produce
from tests.support.patience import MAX_DELAY_US
from tests.support.workload import NearCondition, Occurrence

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

PREFIX = f"clocks{uuid.uuid4().hex[:10]}"
LIVE = NearCondition("live", "a", "b", 1_000_000, "0.6")
RECORDED = NearCondition("recorded", "c", "d", 1_000_000, "0.6")
YEAR_3000_US = 32_503_680_000_000_000


def stream(name: str, clock: str) -> Stream:
    plain = Stream(name, f"{PREFIX}-{name}", max_uncertainty_us=20_000, max_delay_us=MAX_DELAY_US)
    return plain if clock == "live" else replace(plain, max_delay_us=5_000_000, clock="replay")


def pairs_at(begin_us: int, label: str, streams: str) -> tuple[list[Occurrence], list[Occurrence]]:
    """Return five events of either stream that make five pairs, each with a key of its own."""
    first, second = (
        [
            Occurrence(name, f"{name}-{label}{i}", f"{label}{i}", begin_us, begin_us + 1_000)
            for i in range(5)
        ]
        for name in streams
    )
    return first, second


@pytest.fixture(scope="module")
def job(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JobUnderTest]:
    """Return a running job with two live and two recorded streams."""
    folder = tmp_path_factory.mktemp("job")
    job = JobUnderTest(kafka_bootstrap, PREFIX, folder)
    for name, clock in (("a", "live"), ("b", "live"), ("c", "replay"), ("d", "replay")):
        job.add_stream(stream(name, clock))
    job.register(LIVE.resource, RECORDED.resource)
    job.start()
    try:
        yield job
    finally:
        job.process.stop(5)


def send_in_turn(job: JobUnderTest, first: list[Occurrence], second: list[Occurrence]) -> None:
    """Send events, and others when these are read: meanwhile they must not be forgotten."""
    name = first[0].stream
    before = total(job.wait_for_slots(bool), "events_consumed_total", stream=name)
    job.send(first)
    awaited = before + len(first)
    job.wait_for_slots(lambda slots: total(slots, "events_consumed_total", stream=name) == awaited)
    job.send(second)


def send_heartbeat(job: JobUnderTest, **fields: object) -> None:
    value = json.dumps(fields).encode()
    produce(job.bootstrap, job.topics.heartbeats, [Sent(value, str(fields["stream"]).encode())])


def marks(slots: list[dict[str, Any]], name: str) -> set[int | None]:
    return {slot["watermarks"].get(name, {}).get("watermark") for slot in slots}


def wait_for_marks(job: JobUnderTest, name: str, mark: int | None) -> None:
    job.wait_for_slots(lambda slots: marks(slots, name) == {mark})


def test_a_heartbeat_of_the_year_3000_is_refused_and_pairs_are_found(job: JobUnderTest) -> None:
    send_heartbeat(job, stream="a", read_up_to=YEAR_3000_US)
    send_heartbeat(job, stream="b", read_up_to="end")
    job.wait_for_slots(
        lambda slots: (
            {
                slot["watermarks"].get(name, {}).get("refused_heartbeats")
                for slot in slots
                for name in "ab"
            }
            == {1}
        )
    )
    letters = job.read(job.topics.dead_letter, lambda found: len(found) >= 2)
    assert [letter.headers["coincide.error.reason"] for letter in letters] == [
        b"future_heartbeat",
        b"future_heartbeat",
    ]
    assert {letter.headers["coincide.error.stream"] for letter in letters} == {b"a", b"b"}
    first, second = pairs_at(time.time_ns() // 1_000, "l", "ab")
    send_in_turn(job, first, second)
    wanted = LIVE.pairs([*first, *second])
    assert len(wanted) == 5
    assert job.alarms("live", awaited=wanted) == sorted(wanted)
    slots = job.wait_for_slots(bool)
    assert total(slots, "events_late_total", stream="a") == 0
    assert total(slots, "events_rejected_total", reason="future_heartbeat") == 2


def test_a_stream_closed_by_mistake_finds_pairs_again_after_a_reset(job: JobUnderTest) -> None:
    begin_us = 1_000_000_000_000_000
    for name in "cd":
        send_heartbeat(job, stream=name, read_up_to="end")
        wait_for_marks(job, name, CLOSED)
    lost = pairs_at(begin_us, "lost", "cd")
    send_in_turn(job, *lost)
    job.wait_for_slots(lambda slots: total(slots, "events_consumed_total", stream="d") == 5)
    with running(fresh_settings(job.bootstrap, prefix=PREFIX)) as service:
        for name in "cd":
            answer = service.client.post(f"/v1/streams/{name}/reset-watermark")
            assert answer.status_code == 202
            wait_for_marks(job, name, None)
    kept = pairs_at(begin_us + 60_000_000, "kept", "cd")
    send_in_turn(job, *kept)
    wanted = RECORDED.pairs([*kept[0], *kept[1]])
    assert len(wanted) == 5
    assert job.alarms("recorded", awaited=wanted) == sorted(wanted)
    # A restart does not apply the reset again.
    known = begin_us + 120_000_000 - 5_000_000
    for name in "cd":
        send_heartbeat(job, stream=name, read_up_to=begin_us + 120_000_000)
        wait_for_marks(job, name, known)
    job.kill()
    job.process = job.make_process("again")
    job.start()
    later = pairs_at(begin_us + 180_000_000, "later", "cd")
    send_in_turn(job, *later)
    wanted |= RECORDED.pairs([*later[0], *later[1]])
    assert job.alarms("recorded", awaited=wanted) == sorted(wanted)
    slots = job.wait_for_slots(bool)
    assert min(mark or 0 for name in "cd" for mark in marks(slots, name)) >= known
    assert total(slots, "events_late_total", stream="c") == len(lost[0])
    # The events that were lost are in the topic of late events, as they were sent.
    records = job.read(job.topics.late, lambda found: len(found) >= len(lost[0] + lost[1]))
    assert sorted(it.value or b"" for it in records) == sorted(
        it.value for it in [*lost[0], *lost[1]]
    )
