"""Ranges of offsets that tasks read from a real broker: markers, gaps, missing records."""

from __future__ import annotations

import uuid
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from correlation.resources.topics import Topics
from spark_jobs.source import range_reader
from spark_jobs.source.offset_planner import OffsetPlanner, Range
from spark_jobs.source.range_reader import RangeReader, reader_of
from spark_jobs.source.reading import Reading, StreamReading
from spark_jobs.worker.packing import Packing
from tests.support.kafka import (
    Sent,
    create_topics,
    produce,
    produce_with_unreadable_header,
    recreate_topic,
)
from tests.support.messages import naming
from tests.support.patience import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_client.settings import Properties

pytestmark = [pytest.mark.kafka]


@pytest.fixture
def topic(kafka_bootstrap: str) -> str:
    """Return a topic with two partitions."""
    name = f"ranges-{uuid.uuid4().hex}"
    create_topics(kafka_bootstrap, {name: 2})
    return name


@pytest.fixture
def reader(kafka_bootstrap: str) -> Iterator[RangeReader]:
    """Return a reader that all reads of a test share."""
    packing = Packing(Topics("p"), (), (1,), 1_000)
    properties: Properties = {"bootstrap.servers": kafka_bootstrap}
    with closing(reader_of(Reading(uuid.uuid4().hex, "p.source", properties, packing, 1))) as it:
        yield it


def read(
    reader: RangeReader, *ranges: Range, skips_missing: bool = True
) -> dict[tuple[str, int], list[tuple[int, bytes | None]]]:
    """Return offset and value of all records of ranges, by partition."""
    found: dict[tuple[str, int], list[tuple[int, bytes | None]]] = {}
    for block in reader.read(ranges, skips_missing=skips_missing):
        for run in block:
            assert len(run.offsets)
            mine = found.setdefault((run.topic, run.partition), [])
            mine += zip(run.offsets.tolist(), run.values, strict=True)
    return found


@contextmanager
def transactions(bootstrap: str) -> Iterator[Producer]:
    """Open a producer of transactions."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(PATIENCE_SECONDS)
    yield producer


def write(producer: Producer, topic: str, *values: bytes, commits: bool = True) -> None:
    """Write a transaction to partition 0."""
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=0)
    producer.flush(PATIENCE_SECONDS)
    (producer.commit_transaction if commits else producer.abort_transaction)(PATIENCE_SECONDS)


def test_records_keep_all_their_fields(
    kafka_bootstrap: str, topic: str, reader: RangeReader
) -> None:
    sent = [
        Sent(b"v", b"k", 0, 1_700_000_000_001, (("h", b"\xff"), ("h", b""))),
        Sent(None, b"", 0, 1_700_000_000_002),
        Sent(b"", None, 0, 1_700_000_000_003),
    ]
    produce(kafka_bootstrap, topic, sent)
    ((run,),) = reader.read([(topic, 0, 0, 3)], skips_missing=True)
    assert list(run.values) == [b"v", None, b""]
    assert list(run.keys) == [b"k", b"", None]
    assert run.record_timestamp_us.tolist() == [it.timestamp_ms * 1_000 for it in sent]
    assert [list(run.headers_of(row)) for row in run.rows] == [[("h", b"\xff"), ("h", b"")], [], []]


def test_ranges_end_between_markers_and_without_aborted_records(
    kafka_bootstrap: str, topic: str, reader: RangeReader
) -> None:
    with transactions(kafka_bootstrap) as producer:
        write(producer, topic, b"0", b"1")  # the marker has offset 2
        write(producer, topic, b"3", b"4", commits=False)  # 5
        write(producer, topic, b"6")  # 7
        write(producer, topic, b"8", commits=False)  # 9
    place = (topic, 0)
    whole = [(0, b"0"), (1, b"1"), (6, b"6")]
    for begin in range(11):
        for end in range(begin, 11):
            expected = [it for it in whole if begin <= it[0] < end]
            assert read(reader, (topic, 0, begin, end)).get(place, []) == expected, (begin, end)
    with transactions(kafka_bootstrap) as producer:
        write(producer, topic, b"10")
    assert read(reader, (topic, 0, 7, 12)) == {place: [(10, b"10")]}


def test_partitions_are_read_together_and_up_to_their_ends(
    kafka_bootstrap: str, topic: str, reader: RangeReader
) -> None:
    for number in range(2):
        values = [Sent(b"%d" % it, None, number) for it in range(5_000)]
        produce(kafka_bootstrap, topic, values)
    found = read(reader, (topic, 0, 10, 4_000), (topic, 1, 0, 3))
    assert found == {
        (topic, 0): [(it, b"%d" % it) for it in range(10, 4_000)],
        (topic, 1): [(it, b"%d" % it) for it in range(3)],
    }
    # Later ranges are read although the client has fetched other records before.
    assert read(reader, (topic, 1, 3, 5)) == {(topic, 1): [(3, b"3"), (4, b"4")]}
    assert read(reader) == {}


def test_large_records_come_in_blocks_of_limited_size(
    kafka_bootstrap: str, topic: str, reader: RangeReader
) -> None:
    size = 900_000
    produce(kafka_bootstrap, topic, [Sent(bytes(size), None, 0)] * 60)
    blocks = [
        sum(len(value or b"") for value in run.values)
        for (run,) in reader.read([(topic, 0, 0, 60)], skips_missing=True)
    ]
    assert sum(blocks) == 60 * size
    assert len(blocks) > 1
    # The limit may be exceeded by the records of one poll, which the client's queue limits.
    assert max(blocks) < 24 * 1024 * 1024


def test_missing_records_are_skipped_or_an_error(
    kafka_bootstrap: str, topic: str, reader: RangeReader
) -> None:
    produce(kafka_bootstrap, topic, [Sent(b"%d" % it, None, 0) for it in range(10)])
    admin = AdminClient({"bootstrap.servers": kafka_bootstrap})
    for removed in admin.delete_records([TopicPartition(topic, 0, 6)]).values():
        removed.result(PATIENCE_SECONDS)
    place = (topic, 0)
    kept = [(it, b"%d" % it) for it in range(6, 10)]
    assert read(reader, (topic, 0, 2, 10)) == {place: kept}
    assert read(reader, (topic, 0, 2, 5)) == {}
    with pytest.raises(KafkaException):
        read(reader, (topic, 0, 2, 10), skips_missing=False)
    assert read(reader, (topic, 0, 6, 10), skips_missing=False) == {place: kept}


def test_range_of_a_recreated_topic_has_no_records(
    kafka_bootstrap: str, topic: str, reader: RangeReader
) -> None:
    produce(kafka_bootstrap, topic, [Sent(b"old", None, 0)] * 10)
    other = f"{topic}-other"
    create_topics(kafka_bootstrap, {other: 1})
    produce(kafka_bootstrap, other, [Sent(b"other", None, 0)] * 2)
    recreate_topic(kafka_bootstrap, topic, 2)
    produce(kafka_bootstrap, topic, [Sent(b"new", None, 0)])
    found = read(reader, (topic, 0, 4, 10), (other, 0, 0, 2))
    assert found == {(other, 0): [(0, b"other"), (1, b"other")]}


def test_headers_whose_names_are_not_utf8_are_left_out(
    kafka_bootstrap: str, topic: str, reader: RangeReader
) -> None:
    readable: list[tuple[tuple[str, bytes], ...]] = [(("name", b"1"),), (), (("name", b"2"),)]
    for number in (0, 1, 2):
        sent = Sent(b"v", None, 0, headers=readable[number])
        produce(kafka_bootstrap, topic, [sent])
        produce_with_unreadable_header(kafka_bootstrap, topic, sent)
        produce_with_unreadable_header(kafka_bootstrap, topic, sent)
    ((run,),) = reader.read([(topic, 0, 0, 9)], skips_missing=True)
    found = [list(run.headers_of(row)) for row in run.rows]
    assert found == [it for one in readable for it in ([*one], [], [])]


def test_batches_are_planned_up_to_the_committed_records(kafka_bootstrap: str, topic: str) -> None:
    topics = Topics(f"p{uuid.uuid4().hex[:8]}")
    create_topics(kafka_bootstrap, {topics.heartbeats: 1, topics.config: 1})
    produce(kafka_bootstrap, topic, [Sent(b"v", None, 1)] * 20)
    produce(kafka_bootstrap, topics.config, [Sent(b"c", b"k", 0)] * 30)

    def plan(**changes: object) -> OffsetPlanner:
        given = {"partitions": {topic: 2}, "max_records": 10, **changes}
        packing = Packing(topics, (), (1,), 1_000)
        properties: Properties = {"bootstrap.servers": kafka_bootstrap}
        return OffsetPlanner(StreamReading("run", "p.source", properties, packing, 2, **given))  # type: ignore[arg-type]

    empty = {topics.heartbeats: {0: 0}, topic: {0: 0, 1: 0}, topics.config: {0: 0}}
    planner = plan()
    assert planner.starts() == empty
    # The limit does not hold for config records.
    limited = {topics.heartbeats: {0: 0}, topic: {0: 0, 1: 10}, topics.config: {0: 30}}
    assert planner.ends(empty, 10) == limited
    whole = {topics.heartbeats: {0: 0}, topic: {0: 0, 1: 20}, topics.config: {0: 30}}
    assert planner.ends(limited, 10) == planner.ends(limited, None) == planner.newest == whole
    # A batch reads partitions that were added, and no topic that is not read any more.
    found = planner.distribute({topic: {0: 0}, "gone": {0: 3}}, {**whole, "gone": {0: 9}})
    assert sorted(it for share in found for it in share) == sorted(
        [(topic, 1, 0, 20), (topics.config, 0, 0, 30)]
    )
    given = plan(starts={topic: {1: 7}}, ends={topic: {1: 12}})
    assert given.starts() == {**empty, topic: {0: 0, 1: 7}}
    assert given.ends(empty, None)[topic] == {0: 0, 1: 12}
    planner.stop_at_present()
    with transactions(kafka_bootstrap) as producer:
        write(producer, topic, b"later")
    assert planner.ends(empty, None) == whole
    assert plan().ends(empty, None)[topic] == {0: 2, 1: 20}
    admin = AdminClient({"bootstrap.servers": kafka_bootstrap})
    admin.delete_topics([topic])[topic].result(PATIENCE_SECONDS)
    assert planner.ends(whole, None) == whole


def test_deleted_topic_ends_the_reading_without_a_long_wait(
    kafka_bootstrap: str, reader: RangeReader, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(range_reader, "_SILENT_SECONDS", 2.0 * PATIENCE_SECONDS)
    monkeypatch.setattr(range_reader, "_ASK_SECONDS", 0.5)
    produce(kafka_bootstrap, topic, [Sent(b"%d" % it, partition=0) for it in range(5)])
    # The reader knows the topic; one that exists is waited for.
    assert len(read(reader, (topic, 0, 0, 5))[topic, 0]) == 5
    wanted = (topic, 0, 0, 10)
    reading = reader.read([wanted], skips_missing=True)
    client = AdminClient({"bootstrap.servers": kafka_bootstrap})
    client.delete_topics([topic])[topic].result(PATIENCE_SECONDS)
    wait_until(lambda: topic not in client.list_topics(timeout=PATIENCE_SECONDS).topics)
    with pytest.raises(KafkaException, match=naming(topic, "offset 10", "deleted")):
        next(reading)
