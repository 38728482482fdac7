"""``coincide replay --topics`` on a real Kafka: the pairs of the files, and no leftovers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from correlation.resources.streams import Stream
from tests.support.command import COMMAND, coincide
from tests.support.job import JobUnderTest
from tests.support.kafka import (
    Sent,
    create_topics,
    produce,
    produce_in_transaction,
    read_committed,
)
from tests.support.patience import MAX_DELAY_US, PATIENCE_SECONDS
from tests.support.workload import NearCondition, Occurrence, Workload

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

MAX_UNCERTAINTY_US = 20_000
NEAR = NearCondition("near", "a", "b", 30_000, "0.6")
RESOURCES = """\
{{kind: stream, name: a, topic: {prefix}-a, max_uncertainty: 20ms, max_delay: 1s}}
---
{{kind: stream, name: b, topic: {prefix}-b, max_uncertainty: 20ms, max_delay: 1s, clock: replay}}
---
{{kind: mutual_deadline, name: near, a: a, b: b, window: 30ms, threshold: 0.6}}
---
{{kind: mutual_deadline, name: blocks, a: a, b: b, window: 30ms, threshold: 0.6,
  block_size: 1000000, block_interval: 1h}}
---
{{kind: within, name: alone, a: a, b: b, lower: 0s, upper: 30ms, threshold: 0.9,
  emit: unmatched, output_topic: {prefix}-live}}
"""
# Several batches: a closing heartbeat comes long before what it closes.
SMALL_BATCHES = {"COINCIDE_MAX_EVENTS_PER_BATCH": "300"}


def recorded(count: int) -> list[Occurrence]:
    return Workload("ab", 1, begin_us=10**15, max_uncertainty_us=MAX_UNCERTAINTY_US).take(count)


def sent(events: list[Occurrence], stream: str) -> list[Sent]:
    return [Sent(it.value, it.key.encode()) for it in events if it.stream == stream]


def pairs(lines: str) -> Counter[tuple[str, str, str | None]]:
    """Count (condition, id of A, id of B) in lines of alarms."""
    alarms: list[dict[str, Any]] = [json.loads(line) for line in lines.splitlines()]
    return Counter(
        (it["condition"], it["a"]["id"], it["b"]["id"] if it["b"] else None) for it in alarms
    )


@dataclass
class Recording:
    """Topics that hold recorded events; the same events in files."""

    bootstrap: str
    prefix: str
    folder: Path
    events: list[Occurrence]

    def __post_init__(self) -> None:
        create_topics(self.bootstrap, {f"{self.prefix}-a": 2, f"{self.prefix}-b": 3})
        create_topics(self.bootstrap, {f"{self.prefix}-live": 1})
        self.resources = str(self.folder / "resources.yaml")
        Path(self.resources).write_text(RESOURCES.format(prefix=self.prefix))
        self.environment = {
            "COINCIDE_BOOTSTRAP": self.bootstrap,
            "COINCIDE_PREFIX": self.prefix,
            **SMALL_BATCHES,
        }

    def replay(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return coincide(
            *("replay", "-f", self.resources, *arguments),
            environment=self.environment,
        )

    def files(self) -> list[str]:
        """Write the events into files; give the options that name them."""
        options = []
        for stream in "ab":
            path = self.folder / f"{stream}.jsonl"
            mine = [it for it in self.events if it.stream == stream]
            lines = [json.dumps({**json.loads(it.value), "key": it.key}) for it in mine]
            path.write_text("\n".join(lines))
            options += ["--events", f"{stream}={path}"]
        return options

    def topics(self) -> set[str]:
        """Return the names of the topics that begin with the prefix."""
        client = AdminClient({"bootstrap.servers": self.bootstrap})
        return {
            it
            for it in client.list_topics(timeout=PATIENCE_SECONDS).topics
            if it.startswith(self.prefix)
        }


@pytest.fixture
def recording(kafka_bootstrap: str, topic_prefix: str, tmp_path: Path) -> Recording:
    return Recording(kafka_bootstrap, topic_prefix, tmp_path, recorded(1_500))


def test_topics_give_the_pairs_of_the_same_events_in_files(recording: Recording) -> None:
    a, b = f"{recording.prefix}-a", f"{recording.prefix}-b"
    produce(recording.bootstrap, a, [*sent(recording.events, "a"), Sent(b"{", b"k")])
    # The last thing in each partition is a mark of a transaction, which no reader ever sees.
    produce_in_transaction(recording.bootstrap, b, sent(recording.events, "b"))
    undone = [Sent(b"{}", b"k", partition=number) for number in range(3)]
    produce_in_transaction(recording.bootstrap, b, undone, aborted=True)
    before = recording.topics()

    rejects = recording.folder / "rejects.jsonl"
    done = recording.replay("--topics", "--rejects", str(rejects), "--json")
    assert done.returncode == 0, done.stderr
    of_files = recording.replay(*recording.files())
    assert of_files.returncode == 0, of_files.stderr
    found = pairs(done.stdout)
    assert found == pairs(of_files.stdout)
    assert {it for it in found if it[0] == "near"} == NEAR.pairs(recording.events)
    # What waited for the end came out too: the block that is not full, and events without a pair.
    by_condition = Counter(condition for condition, _, _ in found.elements())
    assert by_condition["blocks"] == by_condition["near"] > 1_000
    assert by_condition["alone"] > 30

    report = json.loads(done.stderr)
    assert (report["events"], report["rows"]) == (1_500, 1_501)
    assert report["conditions"]["near"]["pairs"] == by_condition["near"]
    assert report["streams"]["a"]["rejected"] == {"malformed_json": 1}
    (letter,) = [json.loads(line) for line in rejects.read_text().splitlines()]
    assert (letter["topic"], letter["record"], letter["reason"]) == (a, "{", "malformed_json")

    # Nothing is left, and nothing was written anywhere else.
    assert recording.topics() == before
    assert read_committed(recording.bootstrap, f"{recording.prefix}-live") == []


def test_missing_topic_is_told_before_anything_is_made(recording: Recording) -> None:
    resources = Path(recording.resources)
    resources.write_text(resources.read_text().replace(f"{recording.prefix}-b", "nowhere"))
    before = recording.topics()
    done = recording.replay("--topics")
    assert (done.returncode, done.stdout) == (5, "")
    assert "stream b: there is no topic nowhere at" in done.stderr
    assert recording.topics() == before


def test_interrupted_replay_leaves_nothing(recording: Recording) -> None:
    before = recording.topics()
    # The command under test.
    process = subprocess.Popen(  # noqa: S603
        [*COMMAND, "replay", "-f", recording.resources, "--topics"],
        env={**os.environ, **recording.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not any(it.endswith(".metrics") for it in recording.topics()):
        assert process.poll() is None
        assert time.monotonic() < deadline
    process.send_signal(signal.SIGINT)
    out, told = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, out) == (130, b""), told.decode()
    assert recording.topics() == before


def test_job_until_the_end_goes_on_where_it_was_killed(
    kafka_bootstrap: str, topic_prefix: str, spark_jar_paths: list[Path], tmp_path: Path
) -> None:
    events = recorded(3_000)
    settings = {"COINCIDE_UNTIL_END": "true", **SMALL_BATCHES}
    job = JobUnderTest(kafka_bootstrap, topic_prefix, spark_jar_paths[0].parent, tmp_path, settings)
    for name in "ab":
        topic = f"{topic_prefix}-{name}"
        job.add_stream(
            Stream(name, topic, MAX_UNCERTAINTY_US, MAX_DELAY_US, clock="replay"), partitions=1
        )
    job.register(NEAR.resource)
    job.send(events)
    ends = {f"{topic_prefix}-{name}": {"0": len(sent(events, name))} for name in "ab"}
    job.process = job.make_process(COINCIDE_UNTIL_OFFSETS=json.dumps(ends))
    job.process.start()
    job.process.wait_until(lambda: bool(job.read(job.topics.alarms)), PATIENCE_SECONDS)
    job.kill()
    assert len(job.alarms("near")) < len(NEAR.pairs(events))
    # Later records are behind the given end offsets: they are skipped.
    job.send([Occurrence("a", "behind", "k0", it.earliest, it.latest) for it in events[:300]])
    job.process.start()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while job.process.running:
        assert time.monotonic() < deadline
        job.states()
    assert job.process.exit_code == 0, job.process.log_end()
    assert job.alarms("near") == sorted(NEAR.pairs(events))
