"""Offsets are read with another client after a range that was not read in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_client import clients, renewed, topic_offsets
from kafka_client.topic_offsets import KafkaOffsets

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest
    from confluent_kafka import TopicPartition

PLACE = ("events", 0)


class SilentConsumer:
    """A consumer that never receives anything."""

    def __init__(self, properties: Mapping[str, Any]) -> None:
        # It may not be polled for days.
        assert properties["statistics.interval.ms"] == 0
        self.is_closed = False

    def assign(self, partitions: list[TopicPartition]) -> None:
        pass

    def unassign(self) -> None:
        pass

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        return partitions

    def poll(self, _: float) -> None:
        pass

    def close(self) -> None:
        self.is_closed = True


def test_consumer_is_replaced_after_a_range_that_was_not_read_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[SilentConsumer] = []

    def opening(properties: Mapping[str, Any]) -> SilentConsumer:
        opened.append(SilentConsumer(properties))
        return opened[-1]

    monkeypatch.setattr(clients, "Consumer", opening)
    monkeypatch.setattr(renewed, "_RENEWAL_SECONDS", 0.0)
    monkeypatch.setattr(topic_offsets, "_TIMEOUT_SECONDS", 0.01)
    offsets = KafkaOffsets({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}, "group")
    assert offsets.after_last_records({PLACE: 5}, {PLACE: 0}) == {}
    assert [it.is_closed for it in opened] == [True, False]
