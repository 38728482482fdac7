"""Requests of offsets are repeated while a partition has no leader."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from kafka_client.clients import UserConsumer
from kafka_client.partition_offsets import find_offsets

if TYPE_CHECKING:
    from collections.abc import Sequence

NO_LEADER = KafkaError._NOENT  # noqa: SLF001 - librdkafka's own codes carry the underscore
UNKNOWN = KafkaError._UNKNOWN_PARTITION  # noqa: SLF001 - as above


class Failing(UserConsumer):
    """A consumer whose first requests fail with given codes."""

    def __init__(self, *codes: int, known: bool) -> None:
        super().__init__({"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0})
        self.codes = list(codes)
        self.known = known

    def offsets_for_times(
        self, partitions: Sequence[TopicPartition], timeout: float = -1.0
    ) -> list[TopicPartition]:
        assert timeout > 0
        if self.codes:
            raise KafkaException(KafkaError(self.codes.pop(0)))
        return [TopicPartition(it.topic, it.partition, 7) for it in partitions]

    def list_topics(self, topic: str | None = None, timeout: float = -1.0) -> Any:  # noqa: ANN401 - the client's own
        assert timeout > 0
        if topic is not None:
            return SimpleNamespace(topics={topic: SimpleNamespace(error=None)})
        found = {"t": SimpleNamespace(partitions={0: None})} if self.known else {}
        return SimpleNamespace(topics=found)


@pytest.mark.parametrize(
    ("codes", "known"),
    [
        ([NO_LEADER, NO_LEADER], True),
        # The metadata do not have a new topic at once.
        ([NO_LEADER, NO_LEADER], False),
        ([UNKNOWN, NO_LEADER, UNKNOWN], True),
        ([KafkaError.NOT_LEADER_FOR_PARTITION], False),
    ],
)
def test_request_is_repeated(codes: list[int], *, known: bool) -> None:
    consumer = Failing(*codes, known=known)
    assert find_offsets(consumer, [("t", 0)], 0, 300) == {("t", 0): 7}
    assert consumer.codes == []


@pytest.mark.parametrize(
    ("code", "known"), [(UNKNOWN, False), (KafkaError.UNKNOWN_TOPIC_OR_PART, True)]
)
def test_request_for_an_unknown_partition_is_not_repeated(code: int, *, known: bool) -> None:
    consumer = Failing(code, code, known=known)
    with pytest.raises(KafkaException) as raised:
        find_offsets(consumer, [("t", 0)], 0, 300)
    assert raised.value.args[0].code() == code
    assert consumer.codes == [code]
