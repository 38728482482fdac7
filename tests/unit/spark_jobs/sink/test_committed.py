"""The committed offset of a group is read with another client after queries without an answer."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from kafka_client import renewed
from spark_jobs.sink import committed
from spark_jobs.sink.committed import CommittedOffset

NO_ANSWER = KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001 - librdkafka's own codes carry the underscore


class FakeConsumer:
    """A consumer whose queries fail a number of times."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.asked = 0

    def committed(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:  # noqa: ARG002 - as typed
        self.asked += 1
        if self.asked <= self.failures:
            raise NO_ANSWER
        return [TopicPartition(it.topic, it.partition, 5) for it in partitions]

    def poll(self, _: float) -> None:
        pass


@pytest.mark.parametrize(("failures", "asked"), [([1], [2]), ([9, 0], [2, 1])])
def test_a_client_without_two_answers_in_a_row_is_replaced(
    failures: list[int], asked: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    consumers = [FakeConsumer(it) for it in failures]
    waiting = iter(consumers)

    def opening(*_: Any, **__: Any) -> FakeConsumer:  # noqa: ANN401 - as the client
        return next(waiting)

    monkeypatch.setattr(renewed, "_RENEWAL_SECONDS", 0.0)
    monkeypatch.setattr(committed, "Consumer", opening)
    found = CommittedOffset("topic", "group", {}).read()
    assert found is not None
    assert found.offset == 5
    assert [it.asked for it in consumers] == asked
