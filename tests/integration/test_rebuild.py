"""The job rebuilds its state from Kafka: without a checkpoint, and for another number of slots."""

from __future__ import annotations

import json
import random
import shutil
import uuid
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import TopicPartition

from cli.errors import ProcessError
from correlation.resources.records import Resource
from correlation.resources.streams import Stream
from correlation.resources.tokens import Tokens
from correlation.timing.factored.expanding import Expander, is_factored
from kafka_client.clients import UserAdmin
from tests.support.every_kind import LIST, conditions_of, near
from tests.support.job import JobUnderTest, total
from tests.support.kafka import Sent, produce
from tests.support.patience import PATIENCE_SECONDS, wait_until
from tests.support.workload import Occurrence, Workload, stream_resource

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.support.kafka import Received

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

MAX_UNCERTAINTY_US, DELAY_US = 2_000, 20_000
SEED = 20_060_613
PART = 400
WINDOW_US = 4_000
CONDITIONS = {
    **conditions_of(WINDOW_US, self_window_us=1_500),
    "list": {**LIST, "a": "sets", "per_key": True, "report": "batch"},
}
# Events wait for their block in segments of their own, which no other slot has.
BLOCKS = {**near(WINDOW_US), "block_size": 150, "block_interval_us": 3_600_000_000}


class World:
    """Events of three streams in their topics, read by a job and once more as a reference."""

    def __init__(self, bootstrap: str, folder: Path, conditions: dict[str, Any]) -> None:
        prefix = f"rebuild{uuid.uuid4().hex[:10]}"
        self.job = JobUnderTest(bootstrap, prefix, folder)
        self.conditions = conditions
        self.sent: list[Occurrence] = []
        self._workload = Workload("ab", SEED, max_uncertainty_us=MAX_UNCERTAINTY_US)
        self._words = random.Random(SEED)  # noqa: S311 - no secret
        for name in ("a", "b"):
            self.job.add_stream(
                Stream(name, f"{prefix}-{name}", MAX_UNCERTAINTY_US, DELAY_US, clock="replay")
            )
        tokens = Tokens(("words",))
        sets = Stream("sets", f"{prefix}-sets", 0, DELAY_US, clock="replay", tokens=tokens)
        self.job.add_stream(sets)
        self.register(self.job)

    def register(self, job: JobUnderTest) -> None:
        for name, document in self.conditions.items():
            job.register(Resource("condition", name, 1, 0, document))

    def send(self, count: int = PART) -> None:
        """Send more events to all streams."""
        events = self._workload.take(count)
        self.job.send(events)
        sets = [
            {
                "id": f"s{it.id}",
                "earliest": it.latest,
                "latest": it.latest,
                "words": self._words.sample("pqrstuvw", self._words.randint(0, 4)),
            }
            for it in events
        ]
        records = [
            Sent(json.dumps(it).encode(), event.key.encode())
            for it, event in zip(sets, events, strict=True)
        ]
        produce(self.job.bootstrap, self.job.streams["sets"].topic, records)
        self.sent += events

    def wait_until_read(self) -> None:
        """Wait until the job has read all events."""
        count = 2 * len(self.sent)
        self.job.wait_for_slots(lambda slots: total(slots, "events_consumed_total") == count)

    def close(self, job: JobUnderTest) -> None:
        """Send the last heartbeat of every stream."""
        for name, stream in job.streams.items():
            end = {"v": 1, "stream": name, "read_up_to": "end"}
            assert stream.clock == "replay"
            produce(job.bootstrap, job.topics.heartbeats, [Sent(json.dumps(end).encode())])

    def reference(self, folder: Path) -> JobUnderTest:
        """Read all topics by a job that is never interrupted; return it."""
        settings = {"COINCIDE_UNTIL_END": "true"}
        prefix = f"{self.job.prefix}r"
        folder = folder / "reference"
        folder.mkdir()
        job = JobUnderTest(self.job.bootstrap, prefix, folder, settings)
        for stream in self.job.streams.values():
            job.register(stream_resource(stream))
            job.streams[stream.name] = stream
        self.register(job)
        self.close(job)
        job.process.start()
        wait_until(lambda: job.process.exit_code is not None, PATIENCE_SECONDS)
        assert job.process.exit_code == 0, job.process.log_end(2000)
        return job


def results(job: JobUnderTest, expected: int = 0) -> Counter[str]:
    """Return how often each result was written, once there are as many as expected."""
    records = job.read(job.topics.alarms, lambda found: count_results(found).total() >= expected)
    return count_results(records)


def count_results(records: list[Received]) -> Counter[str]:
    """Count results; pairs of factored records, whose tables depend on batches, are written out."""
    found = [json.loads(record.value or b"") for record in records]
    expander = Expander()
    counts: Counter[str] = Counter()
    for it in found:
        counts.update(map(facts, expander.take(it) if is_factored(it) else [it]))
    return counts


def facts(alarm: Mapping[str, Any]) -> str:
    """Return an alarm without the facts that depend on batches."""
    batches = {"detected_at", "decided_by", "late"}
    found = {name: it for name, it in alarm.items() if name not in batches}
    # Its last digit depends on which of the two events was searched for.
    if found.get("probability") is not None:
        found["probability"] = round(found["probability"], 9)
    return json.dumps(found, sort_keys=True)


def lists(job: JobUnderTest) -> dict[bytes | None, list[tuple[str, str]]]:
    """Return the present lists by key."""
    found: dict[bytes | None, list[tuple[str, str]]] = {}
    for record in job.read(job.topics.channel_topic("topk.current")):
        if record.value is None:
            found.pop(record.key, None)
        else:
            pairs = json.loads(record.value)["items"]
            found[record.key] = [(it["older"]["id"], it["younger"]["id"]) for it in pairs]
    return found


def present_keys(job: JobUnderTest) -> set[bytes]:
    """Return the keys of the published states of slots; other records are marks of the sink."""
    values = {record.key or b"": record.value for record in job.read(job.topics.state)}
    return {key for key, value in values.items() if value is not None and b"/" in key}


def lose_checkpoint(job: JobUnderTest) -> None:
    shutil.rmtree(job.folder / "checkpoint")


def assert_as_uninterrupted(world: World, folder: Path) -> None:
    """Check that every result of an uninterrupted job was written, once."""
    reference = world.reference(folder)
    expected = results(reference)
    assert len(expected) > 1_000
    assert {json.loads(it)["condition"] for it in expected} >= world.conditions.keys() - {"list"}
    found = results(world.job, expected.total())
    assert found - expected == Counter()
    assert expected - found == Counter()
    expected_lists = lists(reference)
    assert expected_lists
    wait_until(lambda: lists(world.job) == expected_lists)
    for topic in (world.job.topics.late, world.job.topics.dead_letter):
        assert world.job.read(topic) == []


def test_every_result_is_written_once_when_the_checkpoint_is_lost(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    conditions = {**CONDITIONS, "blocks": BLOCKS}
    world = World(kafka_bootstrap, tmp_path, conditions)
    job = world.job
    try:
        job.start()
        for _ in range(2):
            world.send()
            world.wait_until_read()
            world.send()
            job.kill()
            lose_checkpoint(job)
            world.send()
            job.start()
        world.close(job)
        assert_as_uninterrupted(world, tmp_path)
        slots = job.wait_for_slots(
            lambda slots: total(slots, "events_consumed_total") == 2 * len(world.sent)
        )
        assert total(slots, "alarms_total") > 0
    finally:
        job.process.stop(5)


def test_state_is_distributed_to_another_number_of_slots(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    world = World(kafka_bootstrap, tmp_path, CONDITIONS)
    job = world.job
    try:
        job.start()
        world.send()
        world.wait_until_read()
        job.kill()
        # With the checkpoint, and without it.
        for generation, (slots, is_lost) in enumerate(((3, False), (1, True)), start=1):
            if is_lost:
                lose_checkpoint(job)
            world.send()
            job.process = job.make_process(COINCIDE_SLOTS=str(slots))
            job.start()
            world.wait_until_read()
            assert job.stop() == 0
            assert {key for key in present_keys(job) if key.startswith(b"%d/" % generation)} == {
                b"%d/%d%b" % (generation, slot, part)
                for slot in range(slots)
                for part in (b"", b"/totals")
            }
        world.send()
        world.close(job)
        job.start()
        # The records of former generations are removed.
        wait_until(lambda: {key.partition(b"/")[0] for key in present_keys(job)} == {b"2"})
        assert_as_uninterrupted(world, tmp_path)
    finally:
        job.process.stop(5)


def test_lost_records_of_the_buffers_are_named_and_can_be_given_up(
    kafka_bootstrap: str, tmp_path: Path
) -> None:
    world = World(kafka_bootstrap, tmp_path, {"near": near(WINDOW_US)})
    job = world.job
    admin = UserAdmin({"bootstrap.servers": kafka_bootstrap})
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
        assert "the buffers hold events from offset" in record["exception"]
        assert "COINCIDE_WITHOUT_CHECKPOINT=now" in record["exception"]

        lose_checkpoint(job)
        job.process = job.make_process(COINCIDE_WITHOUT_CHECKPOINT="now")
        job.start()
        world.send()
        world.wait_until_read()
        found = results(job)
        assert before - found == Counter()
        assert max(found.values()) == 1
        assert found.total() > before.total()

        assert job.stop() == 0
        lose_checkpoint(job)
        job.process = job.make_process(COINCIDE_WITHOUT_CHECKPOINT="beginning")
        job.start()
        # The alarms of the records that are left are written again, with the same ids.
        ids = {it: count for it, count in results(job, found.total() + 1).items() if count > 1}
        assert ids
    finally:
        job.process.stop(5)
