"""The whole job on a real Kafka: registrations, events, changes and stops while it runs."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions

from cli.errors import ProcessError
from correlation.resources.partitioning import Partitioning
from correlation.resources.streams import Stream
from kafka_client.allocator import ARENAS
from spark_jobs.worker import fork_server, worker_daemon
from tests.support.command import command_line, process_tree, variables
from tests.support.files import visible_to_others
from tests.support.job import JobUnderTest, total
from tests.support.kafka import Sent, produce
from tests.support.messages import assert_names
from tests.support.patience import MAX_DELAY_US, PATIENCE_SECONDS
from tests.support.workload import NearCondition, Occurrence, Workload, stream_resource

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

PREFIX = f"job{uuid.uuid4().hex[:10]}"
MAX_UNCERTAINTY_US = 20_000
SECRET = "made-up-hunter-2"  # noqa: S105 - what must not be seen
NEAR = NearCondition("near", "a", "b", 30_000, "0.6")
BATCHES = 15


def stream(name: str) -> Stream:
    return Stream(
        name, f"{PREFIX}-{name}", max_uncertainty_us=MAX_UNCERTAINTY_US, max_delay_us=MAX_DELAY_US
    )


@pytest.fixture(scope="module")
def job(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JobUnderTest]:
    """Return one running job with two streams and a condition, for all tests of this file."""
    folder = tmp_path_factory.mktemp("job")
    scratch = folder / "a scratch"
    scratch.mkdir()
    secrets = {
        "SPARK_PROPERTIES": "spark.hadoop.example.secret",
        "KAFKA_PROPERTIES": "ssl.key.password",
    }
    settings = {f"COINCIDE_{name}": json.dumps({key: SECRET}) for name, key in secrets.items()}
    settings |= {"TMPDIR": str(scratch)}
    job = JobUnderTest(kafka_bootstrap, PREFIX, folder, settings, own_java=True)
    job.add_stream(stream("a"))
    job.add_stream(stream("b"))
    job.register(NEAR.resource)
    try:
        job.start()
        yield job
    finally:
        job.process.stop(5)


def now_us() -> int:
    return time.time_ns() // 1_000


def live_events(streams: str, count: int, seed: int) -> list[Occurrence]:
    """Return events of the last second, with ids that no other call gives."""
    workload = Workload(
        streams,
        seed,
        begin_us=now_us() - 1_000_000,
        spacing_us=2_000,
        max_uncertainty_us=MAX_UNCERTAINTY_US,
    )
    return [replace(event, id=f"{seed}.{event.id}") for event in workload.take(count)]


def test_alarms_are_the_judges(job: JobUnderTest) -> None:
    events = live_events("ab", 400, seed=1)
    job.send(events)
    expected = sorted(NEAR.pairs(events))
    assert len(expected) > 100
    assert job.alarms("near", awaited=expected) == expected


def test_secrets_are_not_shown(job: JobUnderTest) -> None:
    commands = [command_line(pid) for pid in process_tree(job.process.pid or 0)]
    # Python, Java, and the daemon of the workers.
    assert len(commands) >= 3
    assert not [command for command in commands if SECRET in command]
    assert SECRET not in job.process.log_path.read_text()
    assert SECRET not in json.dumps(job.job_records())


def test_fork_server_runs_beside_the_workers(job: JobUnderTest) -> None:
    commands = [command_line(pid) for pid in process_tree(job.process.pid or 0)]
    # On a busy machine, processes that plan the query may not have waited for it.
    for module in (fork_server, worker_daemon):
        assert any(module.__name__ in it for it in commands)


def test_processes_of_the_job_have_one_arena(job: JobUnderTest) -> None:
    server = next(
        pid
        for pid in process_tree(job.process.pid or 0)
        if fork_server.__name__ in command_line(pid)
    )
    assert variables(server)[ARENAS] == os.environ.get(ARENAS, "1")


def test_alarm_record_says_what_where_and_how_sure(job: JobUnderTest) -> None:
    (first, *_) = job.read(job.topics.alarms)
    alarm = json.loads(first.value or b"")
    assert first.headers["ce_id"] == alarm["alarm_id"].encode()
    assert first.headers["ce_type"] == b"coincide.alarm.v1"
    assert (alarm["condition"], alarm["threshold"], alarm["late"]) == ("near", 0.6, False)
    assert 0.6 <= alarm["probability"] <= 1
    assert {alarm["a"]["stream"], alarm["b"]["stream"]} == {"a", "b"}
    assert alarm["detected_at"] >= alarm["a"]["latest"]


def test_idle_streams_move_on_by_heartbeats_and_forget_their_events(job: JobUnderTest) -> None:
    moved_past = now_us() - MAX_DELAY_US - 2_000_000
    slots = job.wait_for_slots(
        lambda slots: (
            bool(slots)
            and all(
                (slot["watermarks"][name]["watermark"] or 0) > moved_past
                for slot in slots
                for name in "ab"
            )
        )
    )
    assert total(slots, "events_late_total") == 0


def test_bad_records_are_dead_letters_and_the_job_goes_on(job: JobUnderTest) -> None:
    large = json.dumps({"id": "large", "pad": "x" * 10_000_000}).encode()
    bad = [b"{", b"\xff", None, b'{"id":"e","earliest":2,"latest":1}', large]
    produce(job.bootstrap, job.streams["a"].topic, [Sent(value, b"k") for value in bad])
    letters = job.read(job.topics.dead_letter, lambda records: len(records) >= len(bad))
    assert sorted(letter.value or b"" for letter in letters) == sorted(v or b"" for v in bad)
    assert sorted(letter.headers["coincide.error.reason"] for letter in letters) == [
        b"earliest_after_latest",
        b"malformed_json",
        b"null_value",
        b"too_large",
        b"wrong_encoding",
    ]
    slots = job.wait_for_slots(lambda slots: total(slots, "events_rejected_total") >= len(bad))
    assert total(slots, "events_rejected_total", stream="a", reason="too_large") == 1


def test_conditions_come_change_pause_and_go_without_a_restart(job: JobUnderTest) -> None:
    restarts = job.states().count("restarting")
    wide = NearCondition("wide", "b", "a", 60_000, "0.3")
    job.register(wide.resource)
    job.wait_for_slots(lambda slots: all("wide" in slot["conditions"] for slot in slots))
    first = live_events("ab", 60, seed=2)
    job.send(first)
    expected = sorted(wide.pairs(first))
    assert job.alarms("wide", awaited=expected) == expected

    paused = replace(wide, version=2)
    job.register(replace(paused.resource, paused=True))
    job.wait_for_slots(
        lambda slots: all(slot["conditions"]["wide"]["state"] == "paused" for slot in slots)
    )
    second = live_events("ab", 60, seed=3)
    job.send(second)
    job.alarms("near", awaited=NEAR.pairs(second))
    assert job.alarms("wide") == expected

    job.delete(wide.resource)
    job.wait_for_slots(lambda slots: not any("wide" in slot["conditions"] for slot in slots))
    assert job.states().count("restarting") == restarts
    assert job.failures() == []


def test_pairs_that_are_sent_after_a_condition_are_found(job: JobUnderTest) -> None:
    """No batch has an event without the conditions that were written before it."""
    producer = Producer({"bootstrap.servers": job.bootstrap, "linger.ms": 0})
    awaited: set[tuple[str, str, str]] = set()
    names = [f"next-{number}" for number in range(100)]
    for name in names:
        record = NearCondition(name, "a", "b", 30_000, "0.6").resource
        producer.produce(job.topics.config, json.dumps(record.to_record()), record.key)
        at_us = now_us()
        a, b = (Occurrence(stream, f"{stream}-{name}", "k", at_us, at_us) for stream in "ab")
        # The condition is in the topic before the events are sent.
        assert producer.flush(PATIENCE_SECONDS) == 0
        for event in (a, b):
            topic = job.streams[event.stream].topic
            producer.produce(topic, event.value, event.key.encode())
        assert producer.flush(PATIENCE_SECONDS) == 0
        awaited.add((name, a.id, b.id))
    assert awaited <= set(job.alarms(*names, awaited=awaited))
    for name in names:
        job.delete(NearCondition(name, "a", "b", 30_000, "0.6").resource)


def test_new_stream_is_read_from_its_beginning_within_the_same_process(job: JobUnderTest) -> None:
    pid = job.process.pid
    events = live_events("bc", 200, seed=4)
    with_c = NearCondition("with-c", "b", "c", 30_000, "0.5")
    # The condition waits for its stream; events on the stream's topic wait for the stream.
    job.register(with_c.resource)
    job.streams["c"] = stream("c")
    job.add_stream(stream("c"), partitions=3)
    job.send(events)
    expected = sorted(with_c.pairs(events))
    assert job.alarms("with-c", awaited=expected) == expected
    assert "restarting" in job.states()
    assert job.process.pid == pid
    assert job.process.running


def test_pairs_that_are_sent_after_a_stream_and_a_condition_are_found(job: JobUnderTest) -> None:
    """Events that the job reads before it reads the new stream too are kept for the condition."""
    job.add_stream(stream("e"))
    job.wait_for_slots(lambda slots: all("e" in slot["watermarks"] for slot in slots))
    both = NearCondition("both", "e", "f", 30_000, "0.5")
    job.add_stream(stream("f"))
    job.register(both.resource)
    events = live_events("ef", 40, seed=11)
    job.send(events)
    expected = sorted(both.pairs(events))
    assert len(expected) > 10
    assert job.alarms("both", awaited=expected) == expected


def test_streams_without_keys_are_spread_over_the_slots_by_a_grid(job: JobUnderTest) -> None:
    for name in "pq":
        job.add_stream(replace(stream(name), partitioning=Partitioning("grid", 3)))
    keyless = NearCondition("keyless", "p", "q", 30_000, "0.6")
    job.register(keyless.resource)
    events = [replace(event, key="") for event in live_events("pq", 300, seed=10)]
    expected = sorted(keyless.pairs(events))
    assert len(expected) > 500
    job.send(events)
    assert job.alarms("keyless", awaited=expected) == expected
    slots = job.wait_for_slots(lambda slots: all("p" in slot["watermarks"] for slot in slots))
    counts = [total([slot], "alarms_total", condition="keyless") for slot in slots]
    assert len(slots) == 2
    assert sum(counts) == len(expected)
    # Either has 3 cells, of the same work.
    assert min(counts) > len(expected) // 4
    for name in "pq":
        events_of = [event for event in events if event.stream == name]
        assert total(slots, "events_consumed_total", stream=name) == len(events_of)


def test_batches_leave_no_sockets_open(job: JobUnderTest) -> None:
    # Spark 4.2.0 kept a socket of each task of a slot (SPARK-58932).
    tree = process_tree(job.process.pid or 0)
    java = next(it for it in tree if "SparkSubmit" in command_line(it))

    def count_sockets() -> int:
        found = 0
        for file in Path(f"/proc/{java}/fd").iterdir():
            with suppress(FileNotFoundError):
                found += "socket:" in str(file.readlink())
        return found

    before = count_sockets()
    last = job.job_records()[-1]["batch"]
    for number in range(BATCHES):
        # Heartbeats alone would cause a batch every 15 seconds.
        job.send(live_events("a", 1, seed=100 + number))
        last += 1
        job.wait_for_job(partial(_has_batch, last))
    assert count_sockets() < before + BATCHES


def _has_batch(number: int, record: dict[str, Any]) -> bool:
    return bool(record["batch"] >= number)


def test_partitions_added_to_a_topic_are_read(job: JobUnderTest) -> None:
    topic = job.streams["b"].topic
    starts = job.states().count("starting")
    client = AdminClient({"bootstrap.servers": job.bootstrap})
    client.create_partitions([NewPartitions(topic, 4)])[topic].result(PATIENCE_SECONDS)
    events = live_events("ab", 100, seed=7)
    job.send(event for event in events if event.stream == "a")
    added = [event for event in events if event.stream == "b"]
    produce(
        job.bootstrap,
        topic,
        [
            Sent(event.value, event.key.encode(), 2 + number % 2)
            for number, event in enumerate(added)
        ],
    )
    expected = sorted(NEAR.pairs(events))
    assert set(expected) <= set(job.alarms("near", awaited=expected))
    assert job.states().count("starting") == starts + 1


def test_deleted_stream_leaves_the_others_alone(job: JobUnderTest) -> None:
    gone = job.streams.pop("c")
    job.delete(NearCondition("with-c", "b", "c", 0, "1").resource)
    job.delete(stream_resource(gone))
    job.wait_for_slots(lambda slots: not any("c" in slot["watermarks"] for slot in slots))
    events = live_events("ab", 50, seed=8)
    job.send(events)
    assert job.alarms("near", awaited=NEAR.pairs(events))
    assert job.failures() == []


def test_second_job_with_a_checkpoint_of_its_own_is_refused(job: JobUnderTest) -> None:
    second = job.make_process("second", COINCIDE_CHECKPOINT=str(job.folder / "second"))
    second.start()
    try:
        with pytest.raises(ProcessError):
            second.wait_until(lambda: False, PATIENCE_SECONDS)
        assert second.exit_code == 1
        assert_names(second.log_end(), "another job", "another checkpoint")
    finally:
        second.stop(5)
    events = live_events("ab", 50, seed=9)
    job.send(events)
    assert job.alarms("near", awaited=NEAR.pairs(events))


def test_stopped_job_goes_on_where_it_was(job: JobUnderTest) -> None:
    before = live_events("ab", 200, seed=5)
    job.send(before)
    scratch = Path(job.environment["TMPDIR"])
    assert list(scratch.glob("coincide-spark-*/*"))
    assert job.stop() == 0
    assert list(scratch.iterdir()) == []
    checkpoint = job.folder / "checkpoint"
    names = {path.name for path in checkpoint.rglob("*")}
    assert {"layout.json", "cache", "offsets", "state"} <= names
    assert visible_to_others(checkpoint) == []
    assert job.states()[-1] == "stopped"
    after = live_events("ab", 100, seed=6)
    job.send(after)
    job.start()
    pairs = job.alarms("near", awaited=NEAR.pairs(before) | NEAR.pairs(after))
    assert len(pairs) == len(set(pairs))
