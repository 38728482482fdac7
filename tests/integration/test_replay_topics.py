"""``coincide replay --topics`` on a real Kafka: the pairs of files, and topics that change."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from cli.client.topics import connected
from cli.errors import BrokerError
from cli.replay import topic_reader
from cli.replay.topic_reader import TopicReader
from cli.settings import Settings
from correlation.resources.streams import Stream
from kafka_client.topic_offsets import KafkaOffsets
from tests.support.command import COMMAND, coincide
from tests.support.job import JobUnderTest
from tests.support.kafka import (
    Sent,
    create_topics,
    produce,
    produce_in_transaction,
    read_committed,
    recreate_topic,
)
from tests.support.messages import assert_names
from tests.support.patience import MAX_DELAY_US, PATIENCE_SECONDS
from tests.support.workload import NearCondition, Occurrence, Workload

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cli.stack.broker import EmbeddedBroker

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

MAX_UNCERTAINTY_US = 20_000
NEAR = NearCondition("near", "a", "b", 30_000, "0.6")
RESOURCES = """\
{{kind: stream, name: b, topic: {prefix}-b, max_uncertainty: 20ms, max_delay: 1s, clock: replay}}
---
{{kind: stream, name: a, topic: {prefix}-a, max_uncertainty: 20ms, max_delay: 1s}}
---
{{kind: mutual_deadline, name: near, a: a, b: b, window: 30ms, threshold: 0.6}}
---
{{kind: mutual_deadline, name: blocks, a: a, b: b, window: 30ms, threshold: 0.6,
  block_size: 1000000, block_interval: 1h}}
---
{{kind: within, name: alone, a: a, b: b, lower: 0s, upper: 30ms, threshold: 0.9,
  emit: unmatched, output_topic: {prefix}-live}}
"""
# Records of stream b that take more memory than a replay uses for reading ahead.
LARGE_BYTES = 10_000


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
            # No Java and no Java archives.
            "JAVA_HOME": str(self.folder),
            "COINCIDE_JARS": str(self.folder / "jars"),
            "COINCIDE_MAX_RECORD_BYTES": "20000",
        }

    def replay(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return coincide(
            *("replay", "-f", self.resources, *arguments),
            environment=self.environment,
        )

    def files(self) -> list[str]:
        """Write the events to files; return the options that name them."""
        options = []
        for stream in "ab":
            path = self.folder / f"{stream}.jsonl"
            mine = [it for it in self.events if it.stream == stream]
            lines = [json.dumps({**json.loads(it.value), "key": it.key}) for it in mine]
            path.write_text("\n".join(lines))
            options += ["--events", f"{stream}={path}"]
        return options

    @contextmanager
    def begun(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """Start a replay, and wait until it has written an alarm.

        Stream b, declared first, has been read only for the first, small block. The alarms of the
        next block fill the pipe, so the replay waits for a reader.
        """
        # The command under test.
        process = subprocess.Popen(  # noqa: S603
            [*COMMAND, "replay", "-f", self.resources, "--topics", *arguments],
            env={**os.environ, **self.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Reads no byte after the first line.
            bufsize=0,
        )
        try:
            assert process.stdout is not None
            assert process.stdout.readline()
            yield process
        finally:
            process.kill()
            process.communicate()

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
    wrong = [Sent(b"{", b"k"), Sent(None, b"k"), Sent(b" " * 20_001)]
    produce(recording.bootstrap, a, [*sent(recording.events, "a"), *wrong])
    # Each partition ends with a transaction marker, which a consumer does not receive.
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
    # The end of the topics also closes blocks that are not full, and events without a pair.
    by_condition = Counter(condition for condition, _, _ in found.elements())
    assert by_condition["blocks"] == by_condition["near"] > 1_000
    assert by_condition["alone"] > 30

    report = json.loads(done.stderr)
    assert (report["events"], report["rows"]) == (1_500, 1_503)
    assert report["conditions"]["near"]["pairs"] == by_condition["near"]
    assert report["streams"]["a"] == {
        "topic": a,
        "rows": len(sent(recording.events, "a")) + 3,
        "events": len(sent(recording.events, "a")),
        "late": 0,
        "rejected": {"malformed_json": 1, "null_value": 1, "too_large": 1},
        "first_rejected": report["streams"]["a"]["first_rejected"],
        "lost": 0,
    }
    letters = [json.loads(line) for line in rejects.read_text().splitlines()]
    fields = ("stream", "topic", "reason", "key", "record")
    assert sorted(tuple(str(it[name]) for name in fields) for it in letters) == [
        ("a", a, "malformed_json", "k", "{"),
        ("a", a, "null_value", "k", "None"),
        ("a", a, "too_large", "None", " " * 20_001),
    ]
    for letter in letters:
        first = report["streams"]["a"]["first_rejected"][letter["reason"]]
        place = f"{a}, partition {letter['partition']}, offset {letter['offset']}"
        assert first == f"{place}: {letter['detail']}"

    # The number of processes does not change the output, nor does a second replay.
    again = recording.replay("--topics", "--processes", "2")
    assert again.returncode == 0, again.stderr
    assert again.stdout == done.stdout
    counts = recording.replay("--topics", "--condition", "near", "--thresholds", "0.6")
    assert counts.stdout.split() == ["threshold", "near", "0.6", f"{by_condition['near']:,}"]

    # Nothing was written to Kafka.
    assert recording.topics() == before
    assert read_committed(recording.bootstrap, f"{recording.prefix}-live") == []


def test_missing_topic_is_an_error(recording: Recording) -> None:
    resources = Path(recording.resources)
    resources.write_text(resources.read_text().replace(f"{recording.prefix}-b", "nowhere"))
    done = recording.replay("--topics")
    assert (done.returncode, done.stdout) == (5, "")
    assert_names(done.stderr, "stream b", "topic nowhere", recording.bootstrap)


@pytest.fixture
def large(recording: Recording) -> Recording:
    """Fill the topics: one partition of stream b is read in many pieces."""
    recording.events = recorded(4_000)
    produce(recording.bootstrap, f"{recording.prefix}-a", sent(recording.events, "a"))
    padded = [
        Sent(
            (it.value or b"")[:-1] + b', "pad": "' + b"x" * LARGE_BYTES + b'"}', it.key, partition=0
        )
        for it in sent(recording.events, "b")
    ]
    produce(recording.bootstrap, f"{recording.prefix}-b", padded)
    return recording


def test_records_of_later_are_skipped_and_removed_records_are_counted(large: Recording) -> None:
    count = len(sent(large.events, "b"))
    with large.begun("--condition", "near", "--strict") as process:
        last = large.events[-1]
        for name in "ab":
            later = Occurrence(name, "later", last.key, last.earliest, last.latest)
            produce(large.bootstrap, f"{large.prefix}-{name}", sent([later], name))
        # Up to a record that cannot have been read ahead.
        place = TopicPartition(f"{large.prefix}-b", 0, count - 100)
        client = AdminClient({"bootstrap.servers": large.bootstrap})
        client.delete_records([place])[place].result(PATIENCE_SECONDS)
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 1, err.decode()
    matched = re.search(r"b: ([\d,]+) records lost: .* retention", err.decode())
    assert matched is not None, err.decode()
    lost = int(matched[1].replace(",", ""))
    assert 0 < lost < count - 100
    read = sent(large.events, "b")[: count - 100 - lost] + sent(large.events, "b")[count - 100 :]
    ids = {json.loads(it.value or b"")["id"] for it in read}
    found = {it for it in NEAR.pairs(large.events) if it[2] in ids}
    # The first alarm was read when the replay began.
    assert len(pairs(out.decode())) == len(found) - 1
    assert set(pairs(out.decode())) <= found
    assert f"--strict: 0 rows rejected, 0 events late, {lost:,} records lost" in err.decode()


def test_chunks_hold_the_records_of_their_partition(recording: Recording) -> None:
    settings = Settings(bootstrap=recording.bootstrap)
    topic = f"{recording.prefix}-live"
    written = [Sent(b"%d" % it, b"k%d" % it, 0, 1_700_000_000_123 + it) for it in range(5)]
    produce(recording.bootstrap, topic, written[:3])
    with connected(settings, KafkaOffsets) as offsets:
        reader = TopicReader(settings, offsets)
        stream = Stream("live", topic, 0, 0)
        reader.count_partitions(stream)
        (present,) = reader.find_partitions([stream])
        (chunk,) = reader.read_chunks(present)
        assert chunk.table.to_pylist() == [
            {
                "key": it.key,
                "value": it.value,
                "offset": offset,
                "timestamp_us": it.timestamp_ms * 1_000,
            }
            for offset, it in enumerate(written[:3])
        ]
        assert chunk.lost == 0
        # Records after the end of the range are not counted as lost.
        produce(recording.bootstrap, topic, written[3:])
        place = TopicPartition(topic, 0, 5)
        client = AdminClient({"bootstrap.servers": recording.bootstrap})
        client.delete_records([place])[place].result(PATIENCE_SECONDS)
        (chunk,) = reader.read_chunks(present)
        assert (chunk.table.num_rows, chunk.lost) == (0, 3)


@pytest.mark.parametrize("again", [False, True])
def test_topic_that_is_deleted_ends_the_replay(large: Recording, *, again: bool) -> None:
    topic = f"{large.prefix}-b"
    rejects = large.folder / "rejects.jsonl"
    with large.begun("--rejects", str(rejects)) as process:
        if again:
            recreate_topic(large.bootstrap, topic, 3)
            produce(large.bootstrap, topic, sent(large.events, "b"))
        else:
            client = AdminClient({"bootstrap.servers": large.bootstrap})
            client.delete_topics([topic])[topic].result(PATIENCE_SECONDS)
        _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 5, err.decode()
    assert f"error: topic {topic} " in err.decode()
    assert_names(err.decode(), "start the replay again")
    assert not list(large.folder.glob("rejects.jsonl*"))


def test_interrupted_replay_ends_with_130(large: Recording) -> None:
    with large.begun("--rejects", str(large.folder / "rejects.jsonl")) as process:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 130, err.decode()
    assert not list(large.folder.glob("rejects.jsonl*"))


def test_broker_that_stops_ends_the_replay(
    own_broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(bootstrap=own_broker.bootstrap)
    create_topics(settings.bootstrap, {"t": 1})
    produce(settings.bootstrap, "t", [Sent(b"x" * LARGE_BYTES)] * 2_000)
    with connected(settings, KafkaOffsets) as offsets:
        reader = TopicReader(settings, offsets)
        stream = Stream("s", "t", 0, 0)
        assert reader.count_partitions(stream) == 1
        (partition,) = reader.find_partitions([stream])
        assert (partition.begin, partition.end) == (0, 2_000)
        chunks = reader.read_chunks(partition)
        assert next(chunks).table.num_rows > 0
        own_broker.kill()
        monkeypatch.setattr(topic_reader, "_SILENCE_SECONDS", 0.5)
        with pytest.raises(BrokerError, match="no broker answers at"):
            list(chunks)


@pytest.mark.spark
def test_job_until_the_end_goes_on_where_it_was_killed(
    kafka_bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    events = recorded(3_000)
    # Several batches: a closing heartbeat is written long before the records that it closes.
    settings = {"COINCIDE_UNTIL_END": "true", "COINCIDE_MAX_EVENTS_PER_BATCH": "300"}
    job = JobUnderTest(kafka_bootstrap, topic_prefix, tmp_path, settings)
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
    job.catch(lambda: bool(job.read(job.topics.alarms)))
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
