"""A job with conditions of every kind that is interrupted, and an uninterrupted one to compare."""

from __future__ import annotations

import json
import random
import shutil
import uuid
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from correlation.resources.partitioning import Partitioning
from correlation.resources.records import Resource
from correlation.resources.streams import Stream
from correlation.resources.tokens import Tokens
from correlation.timing.factored.expanding import Expander, is_factored
from tests.support.every_kind import LIST, conditions_of
from tests.support.job import MANY_BATCHES, JobUnderTest, query_folder, total
from tests.support.kafka import Sent, produce
from tests.support.patience import PATIENCE_SECONDS, wait_until
from tests.support.workload import Occurrence, Workload, stream_resource

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.support.kafka import Received

MAX_UNCERTAINTY_US, DELAY_US = 2_000, 20_000
SEED = 20_060_613
PART = 400
WINDOW_US = 4_000
CONDITIONS = {
    **conditions_of(WINDOW_US, self_window_us=1_500),
    "list": {**LIST, "a": "sets", "per_key": True, "report": "batch"},
}


class World:
    """Events of some streams in their topics, read by a job and once more as a reference.

    With `groups`, the sets are also the events of a stream "cells", which is partitioned by a grid.
    """

    def __init__(
        self,
        bootstrap: str,
        folder: Path,
        conditions: dict[str, Any],
        groups: int | None = None,
        **settings: str,
    ) -> None:
        prefix = f"rebuild{uuid.uuid4().hex[:10]}"
        self.job = JobUnderTest(bootstrap, prefix, folder, MANY_BATCHES | settings)
        self.conditions = conditions
        self.sent: list[Occurrence] = []
        self._workload = Workload("ab", SEED, max_uncertainty_us=MAX_UNCERTAINTY_US)
        self._words = random.Random(SEED)  # noqa: S311 - no secret
        for name in ("a", "b"):
            self.job.add_stream(
                Stream(name, f"{prefix}-{name}", MAX_UNCERTAINTY_US, DELAY_US, clock="replay")
            )
        sets = Stream(
            "sets", f"{prefix}-sets", 0, DELAY_US, clock="replay", tokens=Tokens(("words",))
        )
        self.job.add_stream(sets)
        if groups is not None:
            grid = Partitioning("grid", groups)
            topic = f"{prefix}-cells"
            self.job.add_stream(replace(sets, name="cells", topic=topic, partitioning=grid))
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
        for name in ("sets", "cells"):
            if name in self.job.streams:
                produce(self.job.bootstrap, self.job.streams[name].topic, records)
        self.sent += events

    def wait_until_read(self) -> None:
        """Wait until the job has read all events of `send`."""
        count = len(self.sent)

        def are_read(slots: list[dict[str, Any]]) -> bool:
            read = {
                name: total(slots, "events_consumed_total", stream=name)
                for name in self.job.streams
            }
            return read["a"] + read["b"] == read["sets"] == read.get("cells", count) == count

        self.job.wait_for_slots(are_read)

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
            found[record.key] = [(it["older"]["id"], it["newer"]["id"]) for it in pairs]
    return found


def present_keys(job: JobUnderTest) -> set[bytes]:
    """Return the keys of the published states of slots; other records are marks of the sink."""
    values = {record.key or b"": record.value for record in job.read(job.topics.state)}
    return {key for key, value in values.items() if value is not None and b"/" in key}


def lose_checkpoint(job: JobUnderTest) -> None:
    shutil.rmtree(job.folder / "checkpoint")


def kill_in_the_first_batch(job: JobUnderTest) -> None:
    """Kill a job that rebuilds its state while it writes the offsets of its first batch."""
    job.process.start()
    plan = job.folder / "checkpoint" / "rebuild.json"
    job.process.wait_until(plan.exists, PATIENCE_SECONDS)
    job.kill()
    offsets = query_folder(job) / "offsets"
    if not (offsets / "0").exists():
        # The file that Spark writes before it has its name.
        offsets.mkdir(parents=True, exist_ok=True)
        (offsets / ".0.8f74e7f0.tmp").write_bytes(b"")


def assert_as_uninterrupted(world: World, folder: Path) -> None:
    """Check that every result of an uninterrupted job was written, once."""
    reference = world.reference(folder)
    expected = results(reference)
    assert len(expected) > 1_000
    alarming = {name for name, it in world.conditions.items() if it["kind"] != LIST["kind"]}
    assert {json.loads(it)["condition"] for it in expected} == alarming
    found = results(world.job, expected.total())
    assert found - expected == Counter()
    assert expected - found == Counter()
    expected_lists = lists(reference)
    assert expected_lists
    wait_until(lambda: lists(world.job) == expected_lists)
    for topic in (world.job.topics.late, world.job.topics.dead_letter):
        assert world.job.read(topic) == []
