"""Consumers of a real broker: records they read, ends, and errors."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from kafka_client.consumers import open_consumer, place_of, read_ranges
from kafka_client.partition_offsets import OffsetRange, is_timeout, list_ranges
from tests.support.hanging import hanging
from tests.support.kafka import Sent, create_topics, produce, produce_in_transaction
from tests.support.messages import naming
from tests.support.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cli.stack.broker import EmbeddedBroker
    from kafka_client.clients import UserConsumer
    from kafka_client.partition_offsets import Place
    from kafka_client.settings import Properties

pytestmark = [pytest.mark.kafka]


@pytest.fixture
def consumer(kafka_bootstrap: str, topic_prefix: str) -> Iterator[UserConsumer]:
    with closing(open_consumer({"bootstrap.servers": kafka_bootstrap}, topic_prefix)) as opened:
        yield opened


def _read(consumer: UserConsumer, ranges: Mapping[Place, OffsetRange]) -> dict[Place, list[bytes]]:
    found: dict[Place, list[bytes]] = {place: [] for place in ranges}
    for message in read_ranges(consumer, ranges, time.monotonic() + PATIENCE_SECONDS):
        value = message.value()
        assert isinstance(value, bytes)
        found[place_of(message)].append(value)
    return found


def test_reader_yields_the_records_of_the_ranges_in_order(
    consumer: UserConsumer, kafka_bootstrap: str, topic_prefix: str
) -> None:
    places = [(topic_prefix, number) for number in range(3)]
    create_topics(kafka_bootstrap, {topic_prefix: 3})
    for topic, number in places[:2]:
        produce(kafka_bootstrap, topic, [Sent(b"%d" % it, partition=number) for it in range(5)])
    ranges = list_ranges(consumer, places, PATIENCE_SECONDS)
    assert ranges == dict(zip(places, [(0, 5), (0, 5), (0, 0)], strict=True))
    ranges[places[0]] = OffsetRange(1, 3)
    ranges[places[1]] = OffsetRange(4, 9)
    expected = [[b"1", b"2"], [b"4"], []]
    # The consumer can read again, from the beginning too.
    for _ in range(2):
        assert _read(consumer, ranges) == dict(zip(places, expected, strict=True))
    assert _read(consumer, {}) == {}


def test_reader_ends_at_markers_and_open_transactions(
    consumer: UserConsumer, kafka_bootstrap: str, topic_prefix: str
) -> None:
    place = (topic_prefix, 0)
    create_topics(kafka_bootstrap, {topic_prefix: 1})
    for value, aborted in ((b"0", False), (b"2", True)):
        sent = [Sent(value, partition=0)]
        produce_in_transaction(kafka_bootstrap, topic_prefix, sent, aborted=aborted)
    producer = Producer({"bootstrap.servers": kafka_bootstrap, "transactional.id": topic_prefix})
    producer.init_transactions(PATIENCE_SECONDS)
    producer.begin_transaction()
    producer.produce(topic_prefix, b"4")
    assert producer.flush(PATIENCE_SECONDS) == 0
    try:
        assert list_ranges(consumer, [place], PATIENCE_SECONDS) == {place: (0, 4)}
        assert _read(consumer, {place: OffsetRange(0, 9)}) == {place: [b"0"]}
    finally:
        producer.abort_transaction(PATIENCE_SECONDS)


def test_consumer_commits_nothing(
    consumer: UserConsumer, kafka_bootstrap: str, topic_prefix: str
) -> None:
    create_topics(kafka_bootstrap, {topic_prefix: 1})
    produce(kafka_bootstrap, topic_prefix, [Sent(b"1", partition=0)])
    _read(consumer, {(topic_prefix, 0): OffsetRange(0, 1)})
    consumer.close()
    admin = AdminClient({"bootstrap.servers": kafka_bootstrap})
    listed = admin.list_consumer_groups().result(PATIENCE_SECONDS)
    assert topic_prefix not in {group.group_id for group in listed.valid}


def test_options_are_properties_and_an_error_of_a_partition_is_raised(
    kafka_bootstrap: str, topic_prefix: str
) -> None:
    create_topics(kafka_bootstrap, {topic_prefix: 1})
    properties: Properties = {"bootstrap.servers": kafka_bootstrap}
    with closing(open_consumer(properties, topic_prefix, auto_offset_reset="error")) as consumer:
        with pytest.raises(KafkaException) as raised:
            _read(consumer, {(topic_prefix, 0): OffsetRange(7, 9)})
        assert raised.value.args[0].code() == KafkaError._AUTO_OFFSET_RESET  # noqa: SLF001 - its public name
        assert not is_timeout(raised.value)
    with pytest.raises(KafkaException, match=r"no\.such"):
        open_consumer(properties, topic_prefix, no_such=1)


def test_reader_ends_at_its_deadline_when_the_broker_hangs(own_broker: EmbeddedBroker) -> None:
    place = ("hanging", 0)
    create_topics(own_broker.bootstrap, {"hanging": 1})
    produce(own_broker.bootstrap, "hanging", [Sent(b"1", partition=0)])
    with closing(open_consumer({"bootstrap.servers": own_broker.bootstrap}, "hanging")) as consumer:
        assert list_ranges(consumer, [place], PATIENCE_SECONDS) == {place: (0, 1)}
        with hanging(own_broker):
            with pytest.raises(KafkaException) as raised:
                list_ranges(consumer, [place], 0.5)
            assert is_timeout(raised.value)
            reading = read_ranges(consumer, {place: OffsetRange(0, 1)}, time.monotonic() + 0.5)
            with pytest.raises(KafkaException, match=naming("hanging [0]", "offset 1")):
                next(reading)
