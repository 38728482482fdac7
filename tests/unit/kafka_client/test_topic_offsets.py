"""Offsets are read with another consumer after a range that was not read in time."""

from __future__ import annotations

from typing import Any, NoReturn

import pytest
from confluent_kafka import KafkaError, KafkaException

from kafka_client import topic_offsets
from kafka_client.partition_offsets import timed_out
from kafka_client.topic_offsets import KafkaOffsets

PLACE = ("events", 0)
REFUSED = KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))


class FakeConsumer:
    """A consumer."""

    is_closed = False

    def close(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize(
    ("error", "closed"), [(timed_out(PLACE, "late"), [True, False]), (REFUSED, [False])]
)
def test_consumer_is_replaced_after_a_range_that_was_not_read_in_time(
    error: KafkaException, closed: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[FakeConsumer] = []

    def open_consumer(*_: object, **options: Any) -> FakeConsumer:  # noqa: ANN401 - as the client
        # Nobody may poll it for days.
        assert options["statistics_interval_ms"] == 0
        opened.append(FakeConsumer())
        return opened[-1]

    def read_ranges(*_: object) -> NoReturn:
        raise error

    monkeypatch.setattr(topic_offsets, "open_consumer", open_consumer)
    monkeypatch.setattr(topic_offsets, "read_ranges", read_ranges)
    offsets = KafkaOffsets({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}, "group")
    assert offsets.after_last_records({PLACE: 5}, {PLACE: 0}) == {}
    assert [it.is_closed for it in opened] == closed
