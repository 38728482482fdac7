"""Offsets of partitions from a real broker, and from a broker that does not answer."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec

from cli.stack.broker import EmbeddedBroker
from kafka_client.clients import UserAdmin, UserConsumer
from kafka_client.consumers import open_consumer
from kafka_client.partition_offsets import Edge, find_offsets, list_offsets, list_ranges
from tests.support.hanging import hanging
from tests.support.kafka import Sent, create_topics, produce
from tests.support.patience import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_client.settings import Properties

pytestmark = [pytest.mark.kafka]


def test_edges_are_listed_and_a_broker_that_hangs_is_an_error(own_broker: EmbeddedBroker) -> None:
    topic = f"offsets-{uuid.uuid4().hex}"
    create_topics(own_broker.bootstrap, {topic: 2})
    produce(own_broker.bootstrap, topic, [Sent(b"", partition=0)] * 3)
    admin = UserAdmin({"bootstrap.servers": own_broker.bootstrap})
    first, second = (topic, 0), (topic, 1)
    for edge in Edge:
        found = list_offsets(admin, [first, second], edge, PATIENCE_SECONDS)
        assert found == {first: 0 if edge is Edge.BEGIN else 3, second: 0}
    with hanging(own_broker):
        for edge in Edge:
            with pytest.raises(KafkaException) as raised:
                list_offsets(admin, [first], edge, 0.5, skip_unknown=True)
            assert raised.value.args[0].code() == KafkaError._TIMED_OUT  # noqa: SLF001 - its public name


def test_unknown_partitions_are_left_out_only_when_asked(kafka_bootstrap: str) -> None:
    topic = f"offsets-{uuid.uuid4().hex}"
    create_topics(kafka_bootstrap, {topic: 1})
    admin = UserAdmin({"bootstrap.servers": kafka_bootstrap})
    for unknown in ((topic, 1), (f"{topic}-unknown", 0)):
        places = [(topic, 0), unknown]
        with pytest.raises(KafkaException):
            list_offsets(admin, places, Edge.END, PATIENCE_SECONDS)
        found = list_offsets(admin, places, Edge.END, PATIENCE_SECONDS, skip_unknown=True)
        assert found == {(topic, 0): 0}
    assert list_offsets(admin, [], Edge.END, PATIENCE_SECONDS) == {}


class CountingConsumer(UserConsumer):
    """A consumer that counts its requests of offsets by time."""

    asked = 0

    def offsets_for_times(
        self, partitions: Sequence[TopicPartition], timeout: float = -1.0
    ) -> list[TopicPartition]:
        self.asked += 1
        return super().offsets_for_times(partitions, timeout)


def test_offsets_of_a_time_are_those_of_the_first_records_from_it_on(kafka_bootstrap: str) -> None:
    topic = f"offsets-{uuid.uuid4().hex}"
    create_topics(kafka_bootstrap, {topic: 3})
    records = [Sent(b"", partition=0, timestamp_ms=at) for at in (1_000, 2_000, 3_000)]
    produce(kafka_bootstrap, topic, [*records, Sent(b"", partition=1, timestamp_ms=1_000)])
    consumer = CountingConsumer({"bootstrap.servers": kafka_bootstrap, "group.id": "offsets"})
    places = [(topic, number) for number in range(3)]
    found = find_offsets(consumer, places, 1_001, PATIENCE_SECONDS)
    assert found == dict(zip(places, [1, None, None], strict=True))
    assert find_offsets(consumer, [], 0, PATIENCE_SECONDS) == {}
    # The request is not repeated: the metadata do not have the partition.
    for unknown in ((topic, 3), (f"{topic}-unknown", 0)):
        consumer.asked = 0
        with pytest.raises(KafkaException):
            find_offsets(consumer, [unknown], 0, PATIENCE_SECONDS)
        assert consumer.asked == 1
    consumer.close()


def test_offsets_are_read_after_the_leader_changed() -> None:
    """A broker that stalls loses its partitions and takes them back under a new leader epoch."""
    session_ms = 2000
    with EmbeddedBroker(properties={"broker.session.timeout.ms": str(session_ms)}) as broker:
        topic = f"offsets-{uuid.uuid4().hex}"
        create_topics(broker.bootstrap, {topic: 1})
        produce(broker.bootstrap, topic, [Sent(b"")])
        place = (topic, 0)
        properties: Properties = {"bootstrap.servers": broker.bootstrap}
        admin = UserAdmin(properties)
        # Each has its own metadata: a function that is called first would renew that of the other.
        consumer, other = (open_consumer(properties, "offsets") for _ in range(2))
        assert list_offsets(admin, [place], Edge.END, PATIENCE_SECONDS) == {place: 1}
        assert list_ranges(consumer, [place], PATIENCE_SECONDS) == {place: (0, 1)}
        assert find_offsets(other, [place], 1, PATIENCE_SECONDS) == {place: 0}
        epoch = _leader_epoch(properties, place)

        def has_changed() -> bool:
            with hanging(broker):
                time.sleep(2 * session_ms / 1000)
            return _leader_epoch(properties, place) != epoch

        wait_until(has_changed)
        assert list_offsets(admin, [place], Edge.END, PATIENCE_SECONDS) == {place: 1}
        assert find_offsets(other, [place], 1, PATIENCE_SECONDS) == {place: 0}
        assert list_ranges(consumer, [place], PATIENCE_SECONDS) == {place: (0, 1)}
        consumer.close()
        other.close()


def _leader_epoch(properties: Properties, place: tuple[str, int]) -> int:
    """Return the leader epoch of a partition, as a new client reads it."""
    partition = TopicPartition(*place)
    found: list[int] = []

    def is_found() -> bool:
        admin = UserAdmin(properties)
        listed = admin.list_offsets({partition: OffsetSpec.latest()})  # type: ignore[no-untyped-call]  # untyped in the client
        try:
            found.append(listed[partition].result(PATIENCE_SECONDS).leader_epoch or 0)
        except KafkaException:
            return False
        return True

    wait_until(is_found)
    return found[0]
