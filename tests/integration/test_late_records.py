"""Records of late events, read again from a real broker."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from correlation.resources.topics import MISSING_HEADER, Topics
from spark_jobs.sink import batches, late_records
from spark_jobs.sink.kept_shares import KeptShares
from spark_jobs.sink.late_records import LateRecords
from spark_jobs.sink.options import SinkOptions
from spark_jobs.worker.envelope import LATE, RECORDS, SHARE, Record, RecordPacker, unpack_records
from spark_jobs.worker.late_events import LateEvents
from spark_jobs.worker.row_schemas import OUTPUT_SCHEMA
from tests.support.claims import BareInstallation, claim
from tests.support.kafka import (
    Sent,
    create_topics,
    produce,
    produce_in_transaction,
    read_committed,
    recreate_topic,
)
from tests.support.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

pytestmark = [pytest.mark.kafka]

BEGIN_MS = 1_700_000_000_000


@pytest.fixture
def topic(kafka_bootstrap: str) -> str:
    """Return a topic with two partitions."""
    name = f"late-{uuid.uuid4().hex}"
    create_topics(kafka_bootstrap, {name: 2})
    return name


@pytest.fixture
def late(kafka_bootstrap: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[LateRecords]:
    monkeypatch.setattr(late_records, "_GONE_SECONDS", 2.0)
    with LateRecords(Topics("p"), {"bootstrap.servers": kafka_bootstrap}) as found:
        yield found


def sent(number: int, partition: int = 0, *headers: tuple[str, bytes]) -> Sent:
    """Return a record whose Kafka timestamp is its number, in ms."""
    return Sent(b"v%d" % number, b"k", partition, BEGIN_MS + number, headers)


def events(
    topic: str, places: Sequence[tuple[int, int]], stream: str = "s", first: int = 0
) -> LateEvents:
    """Return late events at partitions and offsets, with the timestamps of `sent`."""
    columns = np.array(places, np.int64)
    stamps = (BEGIN_MS + first + columns[:, 1]) * 1_000
    return LateEvents(stream, topic, columns[:, 0].astype(np.int32), columns[:, 1], stamps)


def copied(late: LateRecords, *found: LateEvents) -> list[Record]:
    return [record for blob in late.copy(found) for record in unpack_records(blob)]


def places_of(records: Sequence[Record]) -> list[tuple[bytes | None, int, int, bytes | None]]:
    """Return stream, partition, offset and value of records."""
    found = []
    for record in records:
        headers = dict(record.headers)
        partition, offset = (
            int(headers[f"coincide.error.{it}"] or b"") for it in ("partition", "offset")
        )
        found.append((headers["coincide.error.stream"], partition, offset, record.value))
    return sorted(found)


def test_records_are_copied_as_they_were(
    kafka_bootstrap: str, topic: str, late: LateRecords
) -> None:
    odd = [
        Sent(b"\xff{", b"", 0, BEGIN_MS, (("mine", b"\xff"), ("mine", b""))),
        Sent(b"{}", None, 0, BEGIN_MS + 1),
    ]
    produce(kafka_bootstrap, topic, odd)
    first, second = copied(late, events(topic, [(0, 0), (0, 1)]))
    assert (first.topic, first.key, first.value) == ("p.late", b"", b"\xff{")
    assert list(first.headers[:2]) == [("mine", b"\xff"), ("mine", b"")]
    assert dict(first.headers[2:]) == {
        "coincide.error.reason": b"late",
        "coincide.error.detail": dict(first.headers)["coincide.error.detail"],
        "coincide.error.stream": b"s",
        "coincide.error.topic": topic.encode(),
        "coincide.error.partition": b"0",
        "coincide.error.offset": b"0",
    }
    assert (second.key, second.value) == (None, b"{}")


def test_only_late_records_are_copied_wherever_they_are(
    kafka_bootstrap: str, topic: str, late: LateRecords, monkeypatch: pytest.MonkeyPatch
) -> None:
    produce(kafka_bootstrap, topic, [sent(n, p) for p in (0, 1) for n in range(40)])
    # Several ranges of a partition, and another number of them in the other one.
    monkeypatch.setattr(late_records, "_MAX_GAP", 5)
    mine = [(0, 0), (0, 3), (0, 20), (0, 39), (1, 7)]
    other = [(0, 3), (1, 8)]
    found = copied(late, events(topic, mine), events(topic, other, "other"))
    assert places_of(found) == sorted(
        [(b"s", *at, b"v%d" % at[1]) for at in mine]
        + [(b"other", *at, b"v%d" % at[1]) for at in other]
    )
    assert places_of(copied(late, events(topic, [(1, 39)]))) == [(b"s", 1, 39, b"v39")]


def test_records_before_and_after_markers_of_transactions_are_copied(
    kafka_bootstrap: str, topic: str, late: LateRecords
) -> None:
    produce_in_transaction(kafka_bootstrap, topic, [sent(0), sent(1)])
    produce_in_transaction(kafka_bootstrap, topic, [sent(3)])
    found = copied(late, events(topic, [(0, 1), (0, 3)]))
    assert places_of(found) == [(b"s", 0, 1, b"v1"), (b"s", 0, 3, b"v3")]


def test_records_that_are_gone_are_named(
    kafka_bootstrap: str, topic: str, late: LateRecords
) -> None:
    produce(kafka_bootstrap, topic, [sent(n) for n in range(6)])
    client = AdminClient({"bootstrap.servers": kafka_bootstrap})
    for removed in client.delete_records([TopicPartition(topic, 0, 3)]).values():
        removed.result(PATIENCE_SECONDS)
    missing = f"{topic}-missing"
    found = copied(
        late, events(topic, [(0, 1), (0, 2), (0, 4), (1, 5), (9, 0)]), events(missing, [(0, 0)])
    )
    assert places_of(found) == [
        (b"s", 0, 0, None),
        (b"s", 0, 1, None),
        (b"s", 0, 2, None),
        (b"s", 0, 4, b"v4"),
        (b"s", 1, 5, None),
        (b"s", 9, 0, None),
    ]
    assert all(it.key is None for it in found if it.value is None)
    assert [MISSING_HEADER in dict(it.headers) for it in found] == [
        it.value is None for it in found
    ]


def test_partition_that_one_response_omits_is_read(
    kafka_bootstrap: str, topic: str, late: LateRecords, monkeypatch: pytest.MonkeyPatch
) -> None:
    produce(kafka_bootstrap, topic, [sent(0), sent(0, 1)])
    asked = late._offsets.committed_ends  # noqa: SLF001 - a broker that omits a partition once
    answers = 0

    def omits_once(places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
        nonlocal answers
        answers += 1
        found = asked(places)
        return {it: end for it, end in found.items() if answers > 1 or it != (topic, 1)}

    monkeypatch.setattr(late._offsets, "committed_ends", omits_once)  # noqa: SLF001 - as above
    found = copied(late, events(topic, [(0, 0), (1, 0)]))
    assert places_of(found) == [(b"s", 0, 0, b"v0"), (b"s", 1, 0, b"v0")]


def test_existing_partition_that_is_never_described_is_an_error(
    kafka_bootstrap: str, topic: str, late: LateRecords, monkeypatch: pytest.MonkeyPatch
) -> None:
    produce(kafka_bootstrap, topic, [sent(0)])
    monkeypatch.setattr(late._offsets, "committed_ends", lambda _: {})  # noqa: SLF001 - as above
    with pytest.raises(KafkaException, match=topic):
        copied(late, events(topic, [(0, 0)]))


def test_task_writes_late_events_once_when_its_batch_is_repeated(
    kafka_bootstrap: str, topic_prefix: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = BareInstallation(kafka_bootstrap, topic_prefix)
    create_topics(kafka_bootstrap, {bare.topics.late: 1})
    produce(kafka_bootstrap, topic, [sent(n) for n in range(4)])
    options = SinkOptions(topic_prefix, bare.properties, claim(bare.topics, bare.properties), {})
    monkeypatch.setattr(batches, "_read_place", lambda: (7, "query", 0))
    packer = RecordPacker()
    packer.add(bare.record("alarm"))
    rows = [
        *((blob, RECORDS) for blob in packer.finish()),
        (events(topic, [(0, 1), (0, 3)]).to_bytes(), LATE),
        (b"share", SHARE),
    ]
    columns = [pa.array(it) for it in zip(*rows, strict=True)]
    batch = pa.RecordBatch.from_arrays(columns, names=OUTPUT_SCHEMA.names)

    # The alarm, two late events, and the share, which is kept in the state topic.
    assert batches.write_task(iter([batch]), options) == (4, "query", (b"share",))
    state = read_committed(kafka_bootstrap, bare.topics.state)
    kept = {it.key or b"": it.value or b"" for it in state if it.value is not None}
    assert KeptShares.newest(kept, {options.owner.checkpoint}, None) == KeptShares(
        "query", 7, [b"share"]
    )
    # A batch that is written is not read again.
    monkeypatch.setattr(batches, "LateRecords", None)
    assert batches.write_task(iter([batch]), options) == (0, "query", (b"share",))
    assert bare.written() == ["alarm"]
    found = read_committed(kafka_bootstrap, bare.topics.late)
    assert [(it.key, it.value) for it in found] == [(b"k", b"v1"), (b"k", b"v3")]


def test_records_of_a_topic_that_was_created_again_are_not_taken_for_the_former(
    kafka_bootstrap: str, topic: str, late: LateRecords
) -> None:
    produce(kafka_bootstrap, topic, [sent(n) for n in range(4)])
    recreate_topic(kafka_bootstrap, topic, 2)
    produce(kafka_bootstrap, topic, [sent(100), sent(101)])
    found = copied(late, events(topic, [(0, 0), (0, 1), (0, 3)]))
    assert places_of(found) == [(b"s", 0, 0, None), (b"s", 0, 1, None), (b"s", 0, 3, None)]
