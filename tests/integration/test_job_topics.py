"""The job with a large backlog, with foreign records in its config topic, and with changed topics.

The tests share a job.
"""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient

from correlation.resources.streams import Stream
from correlation.timing.factored.expanding import Expander
from tests.support.job import JobUnderTest, total
from tests.support.kafka import Sent, create_topics, produce, read_committed
from tests.support.patience import MAX_DELAY_US, PATIENCE_SECONDS
from tests.support.workload import (
    NearCondition,
    Occurrence,
    Workload,
    alarm_pairs,
    stream_resource,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from correlation.resources.records import Resource
    from tests.support.kafka import Received

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

PREFIX = f"topics{uuid.uuid4().hex[:10]}"
MAX_UNCERTAINTY_US = 20_000
NEAR = NearCondition("near", "a", "b", 30_000, "0.6")
WIDE = NearCondition("wide", "b", "a", 40_000, "0.4")
BATCH_LIMIT = 60
BACKLOG = 300


def stream(name: str, **changes: int | str) -> Stream:
    given = Stream(
        name, f"{PREFIX}-{name}", max_uncertainty_us=MAX_UNCERTAINTY_US, max_delay_us=MAX_DELAY_US
    )
    return replace(given, **changes)  # type: ignore[arg-type]


def with_output(condition: NearCondition, topic: str) -> Resource:
    found = condition.resource
    return replace(found, document={**found.document, "output_topic": topic})


def fillers(name: str) -> list[Resource]:
    """Return conditions that find next to nothing."""
    return [NearCondition(f"{name}-{i}", "a", "b", 0, "1").resource for i in range(8)]


def live_events(streams: str, count: int, seed: int, max_uncertainty_us: int) -> list[Occurrence]:
    """Return events of the last second, with ids that no other call gives."""
    begin_us = time.time_ns() // 1_000 - 1_000_000
    workload = Workload(
        streams, seed, begin_us, spacing_us=1_000, max_uncertainty_us=max_uncertainty_us
    )
    return [replace(event, id=f"{seed}.{event.id}") for event in workload.take(count)]


def unreadable_keys(record: dict[str, Any]) -> list[str]:
    return [it["key"] for it in record["unreadable_records"]]


@pytest.fixture(scope="module")
def installation(
    kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[JobUnderTest]:
    """Return a job that reads few events at once; it is not started."""
    folder = tmp_path_factory.mktemp("job")
    settings = {"COINCIDE_MAX_EVENTS_PER_BATCH": str(BATCH_LIMIT)}
    job = JobUnderTest(kafka_bootstrap, PREFIX, folder, settings)
    job.add_stream(stream("a"))
    job.add_stream(stream("b"))
    try:
        yield job
    finally:
        job.process.stop(5)


@pytest.fixture
def job(installation: JobUnderTest) -> JobUnderTest:
    """Return the job of all tests; it runs, with a condition."""
    if not installation.process.running:
        installation.register(NEAR.resource)
        installation.start()
    return installation


def test_conditions_see_all_that_waited_for_a_new_and_for_a_stopped_job(
    installation: JobUnderTest,
) -> None:
    job = installation
    first = live_events("ab", BACKLOG, 1, MAX_UNCERTAINTY_US)
    job.send(first)
    # Written after the events, among others: the backlog takes several batches, they must not.
    job.register(*fillers("before"), NEAR.resource)
    job.start()
    expected = sorted(NEAR.pairs(first))
    assert job.alarms("near", awaited=expected) == expected
    assert job.stop() == 0

    second = live_events("ab", BACKLOG, 2, MAX_UNCERTAINTY_US)
    job.send(second)
    job.register(*fillers("later"), WIDE.resource)
    job.start()
    awaited = WIDE.pairs(second)
    assert awaited <= set(job.alarms("wide", awaited=awaited))


def test_alarms_of_a_missing_output_topic_are_dead_letters(job: JobUnderTest) -> None:
    failures, before = job.failures(), len(job.read(job.topics.dead_letter))
    topic = f"{PREFIX}-nowhere"
    mine = replace(NEAR, name="mine")
    job.register(with_output(mine, topic))
    job.wait_for_slots(lambda slots: all("mine" in slot["conditions"] for slot in slots))
    events = live_events("ab", 60, 3, MAX_UNCERTAINTY_US)
    job.send(events)
    awaited = NEAR.pairs(events)
    assert awaited <= set(job.alarms("near", awaited=awaited))
    count = before + len(awaited)
    letters = job.read(job.topics.dead_letter, lambda records: len(records) >= count)[before:]
    alarms = [json.loads(letter.value or b"") for letter in letters]
    found = {(alarm["condition"], alarm["a"]["id"], alarm["b"]["id"]) for alarm in alarms}
    assert found == mine.pairs(events)
    for letter in letters:
        assert letter.headers["coincide.error.reason"] == b"output_refused"
        assert letter.headers["coincide.error.topic"] == topic.encode()
    job.wait_for_job(lambda record: record["missing_topics"] == [topic])
    assert job.failures() == failures

    create_topics(job.bootstrap, {topic: 1})
    job.wait_for_job(lambda record: record["missing_topics"] == [])
    job.delete(mine.resource)


def test_factored_records_expand_partition_by_partition(job: JobUnderTest) -> None:
    topic = f"{PREFIX}-factored"
    create_topics(job.bootstrap, {topic: 2})
    mine = replace(NEAR, name="factored", window_us=400_000)
    resource = with_output(mine, topic)
    job.register(replace(resource, document={**resource.document, "output": "factored"}))
    job.wait_for_slots(lambda slots: all("factored" in slot["conditions"] for slot in slots))
    events = live_events("ab", 300, 8, MAX_UNCERTAINTY_US)
    job.send(events)
    awaited = mine.pairs(events)

    # Partitions by themselves: a reader of one needs nothing of the other.
    readers, looked_at = [Expander(), Expander()], 0
    found: list[tuple[str, str, str]] = []

    def complete(records: list[Received]) -> bool:
        nonlocal looked_at
        for record in records[looked_at:]:
            alarms = readers[record.partition].take(json.loads(record.value or b""))
            found.extend(alarm_pairs(json.dumps(alarm).encode() for alarm in alarms))
        looked_at = len(records)
        return len(found) >= len(awaited)

    records = job.read(topic, complete)
    types = {job.checker.type_of("output_topic", it) for it in records}
    assert types == {"factored_targets", "factored_base"}
    assert sorted(found) == sorted(awaited)
    assert 4 * len(records) < len(awaited)
    assert len({it.headers["ce_id"] for it in records}) == len(records)
    job.delete(mine.resource)


def test_stream_that_changes_is_read_by_its_new_terms_and_from_its_new_topic(
    job: JobUnderTest,
) -> None:
    failures = job.failures()
    short, long = stream("c", max_uncertainty_us=MAX_UNCERTAINTY_US // 10), stream("c")
    condition = NearCondition("with-c", "a", "c", 30_000, "0.5")
    job.add_stream(short)
    job.register(condition.resource)
    job.wait_for_slots(lambda slots: all("c" in slot["watermarks"] for slot in slots))
    before = live_events("ac", 60, 4, MAX_UNCERTAINTY_US)
    job.send(before)
    kept = [
        event for event in before if event.stream == "a" or event.latest - event.earliest <= 2_000
    ]
    assert len(kept) < len(before)
    job.alarms("with-c", awaited=condition.pairs(kept))
    slots = job.wait_for_slots(
        lambda slots: total(slots, "events_rejected_total", stream="c") == len(before) - len(kept)
    )
    assert total(slots, "events_rejected_total", reason="longer_than_declared") > 0

    moved = replace(long, topic=f"{PREFIX}-c2")
    create_topics(job.bootstrap, {moved.topic: 1})
    job.streams["c"] = moved
    after = live_events("ac", 60, 5, MAX_UNCERTAINTY_US)
    job.send(event for event in after if event.stream == "c")
    job.register(replace(stream_resource(moved), version=2))
    job.wait_for_job(lambda record: record["lag"].get(moved.topic) is not None)
    job.send(event for event in after if event.stream == "a")
    expected = condition.pairs(kept) | condition.pairs(after)
    found = job.alarms("with-c", awaited=expected)
    assert len(found) == len(set(found))
    assert job.failures() == failures


def test_job_goes_on_with_what_can_be_read(job: JobUnderTest) -> None:
    kept = NearCondition("kept", "a", "b", 30_000, "0.6")
    gone = NearCondition("unread", "a", "b", 40_000, "0.4")

    def states_of_gone(slots: list[dict[str, Any]]) -> set[str | None]:
        return {slot["conditions"].get(gone.name, {}).get("state") for slot in slots}

    failing, streams = job.states().count("failing"), job.job_records()[-1]["streams"]
    job.add_stream(stream("d"))
    job.register(kept.resource, gone.resource)
    job.wait_for_job(lambda it: it["streams"] == sorted([*streams, "d"]))
    job.wait_for_slots(lambda slots: states_of_gone(slots) == {"running"})
    bad = [
        Sent(b'{"v":1}', b"condition/unread"),
        Sent(b"not valid JSON", b"stream/d"),
        Sent(b"{}", b"neither/kind/nor/name"),
        Sent(b"{}", b"template/\xff"),
    ]
    keys = ["condition/unread", "stream/d", "neither/kind/nor/name", "template/\\xff"]
    produce(job.bootstrap, job.topics.config, bad)
    job.wait_for_job(lambda it: unreadable_keys(it) == keys)
    job.wait_for_job(lambda it: it["streams"] == streams and it["state"] == "running")
    job.wait_for_slots(lambda slots: states_of_gone(slots) == {"unreadable"})
    events = live_events("ab", 60, 9, MAX_UNCERTAINTY_US)
    job.send(events)
    expected = sorted(kept.pairs(events))
    assert job.alarms("kept", "unread", awaited=expected) == expected

    # One that starts on what is left of the log comes to the same.
    assert job.stop() == 0
    job.start()
    job.wait_for_job(lambda it: unreadable_keys(it) == keys)
    slots = job.wait_for_slots(lambda slots: None not in states_of_gone(slots) and bool(slots))
    assert states_of_gone(slots) == {"unreadable"}
    assert job.states().count("failing") == failing

    # Tombstones, and a newer record, end it.
    produce(job.bootstrap, job.topics.config, [Sent(None, it.key) for it in bad[1:]])
    job.register(replace(gone.resource, version=9))
    job.wait_for_job(lambda it: it["unreadable_records"] == [])
    job.wait_for_slots(lambda slots: states_of_gone(slots) == {"running"})
    events = live_events("ab", 60, 10, MAX_UNCERTAINTY_US)
    job.send(events)
    awaited = gone.pairs(events) | kept.pairs(events)
    assert awaited <= set(job.alarms("kept", "unread", awaited=awaited))


def test_alarms_never_reach_topics_that_are_not_for_them(job: JobUnderTest) -> None:
    others = sum(
        it.headers["coincide.error.reason"] == b"output_refused"
        for it in job.read(job.topics.dead_letter)
    )
    forbidden = ["__consumer_offsets", job.topics.metrics, job.topics.config]
    conditions = [replace(NEAR, name=f"to-{number}") for number in range(len(forbidden))]
    for condition, topic in zip(conditions, forbidden, strict=True):
        job.register(with_output(condition, topic))
    job.wait_for_slots(
        lambda slots: all(it.name in slot["conditions"] for slot in slots for it in conditions)
    )
    before = len(read_committed(job.bootstrap, job.topics.config))
    events = live_events("ab", 60, 11, MAX_UNCERTAINTY_US)
    job.send(events)
    expected = {pair for it in conditions for pair in it.pairs(events)}

    def alarms(records: list[Received]) -> list[Received]:
        """Return those of this test."""
        refused = [it for it in records if it.headers["coincide.error.reason"] == b"output_refused"]
        return refused[others:]

    letters = alarms(
        job.read(job.topics.dead_letter, lambda records: len(alarms(records)) >= len(expected))
    )
    assert set(alarm_pairs(it.value for it in letters)) == expected
    assert {it.headers["coincide.error.topic"].decode() for it in letters} == set(forbidden)
    assert len(read_committed(job.bootstrap, job.topics.config)) == before
    assert all(
        it.key in {b"job", b"merged"} or (it.key or b"").startswith(b"slot/")
        for it in job.read(job.topics.metrics)
    )
    for condition in conditions:
        job.delete(condition.resource)


def test_deleted_event_topic_leaves_the_other_streams_alone(job: JobUnderTest) -> None:
    condition = NearCondition("with-g", "a", "g", 30_000, "0.5")
    job.add_stream(stream("g"))
    job.register(condition.resource)
    events = live_events("ag", 60, 12, MAX_UNCERTAINTY_US)
    job.send(events)
    job.alarms("with-g", awaited=condition.pairs(events))
    topic = job.streams["g"].topic
    client = AdminClient({"bootstrap.servers": job.bootstrap})
    client.delete_topics([topic])[topic].result(PATIENCE_SECONDS)
    for seed in (6, 7):
        events = live_events("ab", 60, seed, MAX_UNCERTAINTY_US)
        job.send(events)
        awaited = NEAR.pairs(events)
        assert awaited <= set(job.alarms("near", awaited=awaited))
    assert job.process.running
