"""The sink's transactions on a real Kafka: repeated batches, fenced producers, large records."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import orjson
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from cli.stack.broker import EmbeddedBroker
from correlation.resources.topics import OMITTED_HEADER, Channel, Topics
from spark_jobs.driver.stale_checkpoint import check_marks
from spark_jobs.errors import ClaimLostError, DeliveryError, StaleCheckpointError
from spark_jobs.sink import transactional_producer
from spark_jobs.sink.marker import Marker, read_marks
from spark_jobs.sink.state_topic import read_state
from spark_jobs.sink.transactions import PartitionProducer
from spark_jobs.worker.envelope import Record
from tests.support.claims import claim, target
from tests.support.kafka import Received, create_topics, read_committed, recreate_topic
from tests.support.patience import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from spark_jobs.settings import Properties

pytestmark = pytest.mark.kafka

# The producer compresses: a limit is on what reaches the broker.
INCOMPRESSIBLE = random.Random(1).randbytes(10_000_000)  # noqa: S311 - no secret

AUTHORISING = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}


class Sink:
    """An installation's topics, and producers that write as one partition of the sink."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self.bootstrap = bootstrap
        topics = Topics(prefix)
        self.topic, self.dead_letter, self.missing = topics.alarms, topics.dead_letter, topics.late
        self.properties: Properties = {"bootstrap.servers": bootstrap}
        names = (self.topic, self.dead_letter, topics.config, topics.state)
        create_topics(bootstrap, dict.fromkeys(names, 1))
        self.target = target(topics, claim(topics, self.properties))

    def producer(self) -> PartitionProducer:
        return PartitionProducer(self.target, self.properties)

    def records(self, *values: str) -> list[Record]:
        return [Record(self.topic, b"key", value.encode()) for value in values]

    def written(self, topic: str | None = None) -> list[bytes | None]:
        found = read_committed(self.bootstrap, topic or self.topic)
        return [record.value for record in found]

    def dead_letters(self) -> list[Received]:
        return read_committed(self.bootstrap, self.dead_letter)


@pytest.fixture
def sink(kafka_bootstrap: str, topic_prefix: str) -> Sink:
    return Sink(kafka_bootstrap, topic_prefix)


def test_batch_is_written_once_when_repeated_by_the_same_and_by_another_worker(sink: Sink) -> None:
    first = sink.producer()
    assert first.write(7, sink.records("a", "b")) == 2
    assert first.write(7, sink.records("a", "b")) == 0
    second = sink.producer()
    assert second.write(7, sink.records("a", "b")) == 0
    assert second.write(8, sink.records("c")) == 1
    assert sink.written() == [b"a", b"b", b"c"]


def test_producer_goes_on_after_a_restart_of_the_broker(tmp_path: Path, topic_prefix: str) -> None:
    """The client of the first batch waits for the broker's former connection (librdkafka 5511)."""
    with EmbeddedBroker(tmp_path / "broker") as broker:
        sink = Sink(broker.bootstrap, topic_prefix)
        producer = sink.producer()
        producer.write(0, sink.records("a0"))
        broker.stop()
        broker.start()
        assert producer.write(1, sink.records("a1", "a2")) == 2
        assert sink.written() == [b"a0", b"a1", b"a2"]
        assert sink.producer().next_batch() == 2


def test_fenced_worker_opens_anew_and_sees_what_the_other_wrote(sink: Sink) -> None:
    first, second = sink.producer(), sink.producer()
    assert first.write(0, sink.records("a")) == 1
    assert second.write(1, sink.records("b")) == 1
    assert first.write(1, sink.records("b")) == 0
    assert first.write(2, sink.records("c")) == 1
    assert second.write(3, sink.records("d")) == 1
    assert sink.written() == [b"a", b"b", b"c", b"d"]


def test_producers_opened_early_write_each_batch_once(sink: Sink) -> None:
    first, second = sink.producer(), sink.producer()
    first.open_early()
    # Opened meanwhile, or later: it is fenced off once, or fences off the first.
    assert second.write(0, sink.records("a")) == 1
    assert first.write(0, sink.records("a")) == 0
    assert first.write(1, sink.records("b")) == 1
    second.open_early()
    assert second.write(2, sink.records("c")) == 1
    assert second.write(3, sink.records("d")) == 1
    assert sink.written() == [b"a", b"b", b"c", b"d"]


def test_error_of_a_producer_opened_early_is_raised_by_write(sink: Sink) -> None:
    late = sink.producer()
    claim(sink.target.topics, sink.properties)
    late.open_early()
    with pytest.raises(ClaimLostError):
        late.write(0, sink.records("a"))
    assert sink.written() == []


def open_transaction(sink: Sink) -> Producer:
    """Return a producer that has written half a batch."""
    producer = Producer(
        {
            **sink.properties,
            "transactional.id": sink.target.transactional_id,
            # The broker does not end it meanwhile.
            "transaction.timeout.ms": 600_000,
        }
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(sink.topic, value=b"half a batch")
    producer.flush(30)
    return producer


def test_open_transaction_of_a_dead_worker_is_aborted(sink: Sink) -> None:
    open_transaction(sink)
    assert sink.producer().write(0, sink.records("a whole batch")) == 1
    assert sink.written() == [b"a whole batch"]


def test_batch_before_the_last_one_is_refused_also_by_another_worker(sink: Sink) -> None:
    first = sink.producer()
    assert first.write(7, sink.records("a")) == 1
    assert first.write(9, sink.records("b")) == 1
    for producer in (first, sink.producer()):
        with pytest.raises(StaleCheckpointError) as raised:
            producer.write(8, sink.records("new, under an old number"))
        assert (raised.value.newest, raised.value.written) == (8, 9)
        assert producer.write(9, sink.records("b")) == 0
    assert sink.written() == [b"a", b"b"]


def test_marks_tell_a_checkpoint_that_is_older_than_they_are(sink: Sink) -> None:
    silent = target(sink.target.topics, sink.target.owner, 1)
    targets = (silent, sink.target)
    # A new checkpoint, and one whose first batch was begun: no marks yet.
    for newest in (-1, 0):
        check_marks(newest, targets, sink.properties)
    sink.producer().write(9, sink.records("a"))
    # Written but not completed, repeated, and followed by a batch of which nothing is written.
    for newest in (9, 10):
        check_marks(newest, targets, sink.properties)
    # The next batch of such a checkpoint would be 9, or one before it.
    for newest in (8, 7, -1):
        with pytest.raises(StaleCheckpointError) as raised:
            check_marks(newest, targets, sink.properties)
        assert (raised.value.newest, raised.value.written) == (newest, 9)


def test_mark_of_a_transaction_that_a_killed_job_left_open_does_not_count(sink: Sink) -> None:
    sink.producer().write(9, sink.records("a"))
    dead = open_transaction(sink)
    marker = Marker(sink.target.topics, sink.target.group, sink.properties)
    dead.send_offsets_to_transaction([marker.of(10)], marker.group, 30)
    check_marks(9, [sink.target], sink.properties)


def test_marks_of_the_state_topic_remain_when_those_of_the_group_have_expired(sink: Sink) -> None:
    client = AdminClient(sink.properties)
    first = sink.producer()
    first.write(8, sink.records("a"))
    first.write(9, sink.records("b"))
    client.delete_consumer_groups([sink.target.group])[sink.target.group].result()
    marks = read_marks(read_state(sink.properties, sink.target.topics.state))
    assert marks == {sink.target.group: 10}
    late = PartitionProducer(sink.target._replace(stored=marks[sink.target.group]), sink.properties)
    assert late.write(9, sink.records("b")) == 0
    with pytest.raises(StaleCheckpointError, match="batch 9 is in"):
        late.write(8, sink.records("a"))
    assert late.write(10, sink.records("c")) == 1
    assert sink.written() == [b"a", b"b", b"c"]


def test_record_keeps_key_value_and_headers_also_when_they_are_null(sink: Sink) -> None:
    headers = (("name", b"\x00\xff"), ("null", None), ("name", b"twice"))
    sink.producer().write(0, [Record(sink.topic, None, None, headers)])
    (record,) = read_committed(sink.bootstrap, sink.topic)
    assert (record.key, record.value) == (None, None)
    assert record.headers == {"name": b"twice"}


def test_more_records_than_the_queue_holds_are_all_written(sink: Sink) -> None:
    sink.properties = {**sink.properties, "queue.buffering.max.messages": 100}
    values = [str(number) for number in range(5_000)]
    assert sink.producer().write(0, sink.records(*values)) == 5_000
    assert sink.written() == [value.encode() for value in values]


def test_value_above_the_limit_of_its_topic_is_left_out_and_said_so(sink: Sink) -> None:
    large = Record(sink.topic, b"large", INCOMPRESSIBLE, (("mine", b"kept"),))
    producer = sink.producer()
    assert producer.write(0, [*sink.records("a"), large, *sink.records("b")]) == 3
    assert producer.write(1, sink.records("c")) == 1
    found = read_committed(sink.bootstrap, sink.topic)
    assert [record.value for record in found] == [b"a", None, b"b", b"c"]
    assert found[1].key == b"large"
    assert found[1].headers == {"mine": b"kept", OMITTED_HEADER: b"10000009"}


def test_list_above_the_limit_of_its_channel_is_replaced_and_not_withdrawn(
    kafka_bootstrap: str, topic_prefix: str
) -> None:
    present = Channel("present", compacted=True)
    sink = Sink(kafka_bootstrap, topic_prefix)
    topics = replace(sink.target.topics, channels=(present,))
    topic = topics.of(present)
    create_topics(kafka_bootstrap, {topic: 1}, {"cleanup.policy": "compact"})
    large = {"max.message.bytes": str(16 * 1024 * 1024)}
    recreate_topic(kafka_bootstrap, sink.dead_letter, 1, large)
    bulk = INCOMPRESSIBLE.hex()[:4_000_000]
    fields = {"v": 1, "condition": "c", "version": 2, "as_of": 7, "key": "k"}
    value = orjson.dumps({**fields, "items": [{"id": bulk}]})
    tombstone = Record(topic, b"c/other", None)
    producer = PartitionProducer(sink.target._replace(topics=topics), sink.properties)
    producer.write(0, [Record(topic, b"c/k", value, (("mine", b"kept"),)), tombstone])
    found = read_committed(kafka_bootstrap, topic)
    assert [it.key for it in found] == [b"c/k", b"c/other"]
    short = {**fields, "error": "too_large", "omitted_bytes": len(value) + 7}
    assert orjson.loads(found[0].value or b"") == short
    assert found[0].headers["mine"] == b"kept"
    assert found[1].value is None
    (letter,) = sink.dead_letters()
    assert (letter.key, letter.value) == (b"c/k", value)
    assert letter.headers["coincide.error.reason"] == b"too_large"
    assert letter.headers["coincide.error.topic"] == topic.encode()


def test_value_above_the_limit_of_the_client_is_left_out_too(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactional_producer, "_MAX_BYTES", 2_000_000)
    large = Record(sink.topic, b"large", INCOMPRESSIBLE[:3_000_000])
    assert sink.producer().write(0, [*sink.records("a"), large, *sink.records("b")]) == 3
    assert sink.written() == [b"a", None, b"b"]


def test_large_value_is_written_untouched_where_its_topic_takes_it(sink: Sink) -> None:
    topic = f"{sink.topic}.large"
    create_topics(sink.bootstrap, {topic: 1}, {"max.message.bytes": str(16 * 1024 * 1024)})
    value = INCOMPRESSIBLE
    sink.producer().write(0, [Record(topic, b"large", value)])
    (record,) = read_committed(sink.bootstrap, topic)
    assert record.value == value


def test_batch_fails_whole_when_a_topic_of_the_installation_is_missing(sink: Sink) -> None:
    producer = sink.producer()
    late = Record(sink.missing, None, b"x")
    with pytest.raises(DeliveryError, match=r"(?i)unknown topic"):
        producer.write(0, [*sink.records("a"), late])
    assert sink.written() == []
    create_topics(sink.bootstrap, {late.topic: 1})
    assert producer.write(0, [*sink.records("a"), late]) == 2
    assert sink.written() == [b"a"]
    assert sink.written(late.topic) == [b"x"]


def test_records_of_a_missing_output_topic_are_dead_letters_until_it_is_there(sink: Sink) -> None:
    mine = Record(f"{sink.topic}.mine", b"key", b"x", (("ce_id", b"7"),))
    assert sink.producer().write(0, [*sink.records("a"), mine, *sink.records("b")]) == 3
    assert sink.written() == [b"a", b"b"]
    (letter,) = sink.dead_letters()
    assert (letter.key, letter.value) == (b"key", b"x")
    detail = letter.headers["coincide.error.detail"]
    assert b"Unknown topic" in (detail or b"")
    assert letter.headers == {
        "ce_id": b"7",
        "coincide.error.detail": detail,
        "coincide.error.reason": b"output_refused",
        "coincide.error.topic": mine.topic.encode(),
    }
    create_topics(sink.bootstrap, {mine.topic: 1})
    assert sink.producer().write(1, [mine]) == 1
    assert sink.written(mine.topic) == [b"x"]
    assert len(sink.dead_letters()) == 1


def test_output_topic_may_be_deleted_while_it_is_written(sink: Sink) -> None:
    mine = Record(f"{sink.topic}.mine", b"key", b"x")
    create_topics(sink.bootstrap, {mine.topic: 1})
    producer = sink.producer()
    assert producer.write(0, [mine]) == 1
    client = AdminClient(sink.properties)
    client.delete_topics([mine.topic])[mine.topic].result(PATIENCE_SECONDS)
    # For a moment after that the broker still takes records for it.
    wait_until(lambda: mine.topic not in client.list_topics(timeout=PATIENCE_SECONDS).topics)
    assert producer.write(1, [*sink.records("a"), mine]) == 2
    assert sink.written() == [b"a"]
    assert [letter.value for letter in sink.dead_letters()] == [b"x"]
    # Known now, so nothing waits for it.
    assert producer.write(2, [*sink.records("b"), mine]) == 2
    assert len(sink.dead_letters()) == 2


def test_output_topic_that_takes_only_tiny_records_stops_nothing(sink: Sink) -> None:
    mine = Record(f"{sink.topic}.mine", b"key", INCOMPRESSIBLE[:10_000])
    create_topics(sink.bootstrap, {mine.topic: 1}, {"max.message.bytes": "1000"})
    assert sink.producer().write(0, [*sink.records("a"), mine]) == 2
    assert sink.written() == [b"a"]
    (letter,) = sink.dead_letters()
    assert letter.value == mine.value
    assert b"max.message.bytes" in letter.headers["coincide.error.detail"]


def test_records_that_are_too_large_together_are_written_in_smaller_batches(sink: Sink) -> None:
    mine = f"{sink.topic}.mine"
    create_topics(sink.bootstrap, {mine: 1}, {"max.message.bytes": "100000"})
    pieces = [INCOMPRESSIBLE[start : start + 500] for start in range(0, 1_000_000, 500)]
    producer = sink.producer()
    assert producer.write(0, [Record(mine, None, piece) for piece in pieces]) == len(pieces)
    assert sink.written(mine) == pieces
    assert sink.dead_letters() == []


def test_only_the_record_that_is_too_large_is_shortened_whatever_the_others_keys(
    sink: Sink,
) -> None:
    sizes = (100_000, 10_000_000, 900_000, 10)
    records = [Record(sink.topic, None, INCOMPRESSIBLE[:size]) for size in sizes]
    producer = sink.producer()
    assert producer.write(0, records) == len(sizes)
    lengths = [None if value is None else len(value) for value in sink.written()]
    assert lengths == [100_000, None, 900_000, 10]


def test_alarms_of_an_output_topic_that_may_not_be_written_are_dead_letters(
    tmp_path: Path, topic_prefix: str
) -> None:
    with EmbeddedBroker(tmp_path / "broker", properties=AUTHORISING) as broker:
        sink = Sink(broker.bootstrap, topic_prefix)
        mine, later = (Record(f"{sink.topic}.{name}", b"k", b"x") for name in ("mine", "later"))
        create_topics(sink.bootstrap, dict.fromkeys((mine.topic, later.topic), 1))
        deny_writing(sink, mine.topic)
        producer = sink.producer()
        assert producer.write(0, [*sink.records("a"), mine, later]) == 3
        # Taken away while the producer knows that it may write.
        deny_writing(sink, later.topic)
        assert producer.write(1, [*sink.records("b"), later]) == 2
        assert sink.written() == [b"a", b"b"]
        assert sink.written(later.topic) == [b"x"]
        letters = sink.dead_letters()
        topics = [letter.headers["coincide.error.topic"] for letter in letters]
        assert topics == [mine.topic.encode(), later.topic.encode()]
        details = {letter.headers["coincide.error.detail"] for letter in letters}
        assert details == {b"the Kafka user of this process does not have the right Write"}


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__anything"])
def test_internal_topics_are_never_written(
    kafka_bootstrap: str, topic_prefix: str, topic: str
) -> None:
    sink = Sink(kafka_bootstrap, topic_prefix)
    records = [*sink.records("a"), Record(topic, b"key", b"alarm")]
    assert sink.producer().write(0, records) == 2
    assert sink.written() == [b"a"]
    (letter,) = sink.dead_letters()
    assert (letter.key, letter.value) == (b"key", b"alarm")
    assert letter.headers["coincide.error.reason"] == b"output_refused"
    assert letter.headers["coincide.error.topic"] == topic.encode()
    assert letter.headers["coincide.error.detail"] == b"it is an internal topic of Kafka"


def deny_writing(sink: Sink, topic: str) -> None:
    """Let every user read a topic and no user write it."""
    client = AdminClient(sink.properties)
    place = (ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, "User:*", "*")
    bindings = [
        AclBinding(*place, operation, permission)
        for operation, permission in (
            (AclOperation.WRITE, AclPermissionType.DENY),
            (AclOperation.DESCRIBE, AclPermissionType.ALLOW),
            (AclOperation.READ, AclPermissionType.ALLOW),
        )
    ]
    for created in client.create_acls(bindings).values():
        created.result(PATIENCE_SECONDS)
