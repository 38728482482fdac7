"""Ranges of offsets from a client that delivers messages in a given order."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from confluent_kafka import KafkaError, KafkaException

from kafka_client.partition_offsets import OffsetRange
from spark_jobs.source import range_reader
from spark_jobs.source.range_reader import RangeReader
from tests.support.messages import naming

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from confluent_kafka import TopicPartition

    from kafka_client.clients import UserConsumer
    from kafka_client.partition_offsets import Place
    from spark_jobs.source.offset_planner import Range

NO_OFFSET = KafkaError._AUTO_OFFSET_RESET  # noqa: SLF001 - librdkafka's own codes carry the underscore
END = KafkaError._PARTITION_EOF  # noqa: SLF001 - as above
P0, P1 = ("t", 0), ("t", 1)


@dataclass
class Message:
    """A message of the client: a record, or an error."""

    place: Place
    at: int
    code: int | None = None
    size: int = 1

    def topic(self) -> str | None:
        return self.place[0] or None

    def partition(self) -> int:
        return self.place[1]

    def offset(self) -> int:
        return self.at

    def error(self) -> KafkaError | None:
        return None if self.code is None else KafkaError(self.code)

    def key(self) -> bytes:
        return bytes(self.size)

    def value(self) -> bytes:
        return b"%d" % self.at

    def headers(self) -> None:
        return None

    def timestamp(self) -> tuple[int, int]:
        return 1, 5


class Consumer:
    """Delivers lists of messages in turn, and afterwards none."""

    user = None

    def __init__(self, *messages: Sequence[Message]) -> None:
        self._messages = list(messages)
        self.assigned: list[dict[Place, int]] = []

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        self.assigned.append({(it.topic, it.partition): it.offset for it in partitions})

    def unassign(self) -> None:
        self.assigned.append({})

    def consume(self, *_: object) -> Sequence[Message]:
        return self._messages.pop(0) if self._messages else []


def records(place: Place, begin: int, end: int) -> list[Message]:
    return [Message(place, it) for it in range(begin, end)]


def read(consumer: Consumer, *ranges: Range, skips_missing: bool = True) -> dict[Place, list[int]]:
    """Return the offsets of all records, by partition."""
    found: dict[Place, list[int]] = {}
    reader = RangeReader(cast("UserConsumer", consumer))
    for block in reader.read(ranges, skips_missing=skips_missing):
        for run in block:
            found.setdefault((run.topic, run.partition), []).extend(run.offsets.tolist())
    assert consumer.assigned[-1] == {}
    return found


@pytest.fixture
def exists(monkeypatch: pytest.MonkeyPatch) -> dict[Place, OffsetRange]:
    """Return the ranges that the broker has."""
    found: dict[Place, OffsetRange] = {}

    def list_ranges(_: object, places: Sequence[Place], __: float) -> Mapping[Place, OffsetRange]:
        return {place: found[place] for place in places}

    monkeypatch.setattr(range_reader, "list_ranges", list_ranges)
    return found


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_reader, "_SILENT_SECONDS", 0.05)


def test_records_that_arrive_beside_a_gap_are_not_read_twice(
    exists: dict[Place, OffsetRange],
) -> None:
    exists[P0] = OffsetRange(5, 10)
    consumer = Consumer(
        [Message(P0, -1, NO_OFFSET), *records(P1, 0, 10)],
        # The new assignment begins before the records above were taken.
        [*records(P1, 0, 20), *records(P0, 5, 10)],
    )
    found = read(consumer, ("t", 0, 2, 10), ("t", 1, 0, 20))
    assert found == {P0: [*range(5, 10)], P1: [*range(20)]}


def test_error_of_records_that_exist_is_raised(exists: dict[Place, OffsetRange]) -> None:
    exists[P0] = OffsetRange(0, 10)
    with pytest.raises(KafkaException):
        read(Consumer([Message(P0, -1, NO_OFFSET)]), ("t", 0, 2, 10))


@pytest.mark.parametrize("found", [OffsetRange(10, 20), OffsetRange(0, 2)])
def test_range_without_records_is_skipped(
    found: OffsetRange, exists: dict[Place, OffsetRange]
) -> None:
    exists[P0] = found
    assert read(Consumer([Message(P0, -1, NO_OFFSET)]), ("t", 0, 2, 10)) == {}


@pytest.mark.parametrize("place", [P0, ("", 0)])
def test_other_errors_are_raised_also_without_a_partition(place: Place) -> None:
    error = Message(place, -1, KafkaError.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(KafkaException):
        read(Consumer([error]), ("t", 0, 0, 10))


def test_records_of_a_complete_partition_do_not_extend_the_time_of_others() -> None:
    busy = [records(P1, it, it + 1) for it in range(3, 1_000_000)]
    consumer = Consumer(records(P1, 0, 3), *busy)
    with pytest.raises(KafkaException, match="offset 10 in time"):
        read(consumer, ("t", 0, 0, 10), ("t", 1, 0, 3))


def test_end_of_a_partition_from_before_the_range_does_not_end_it() -> None:
    consumer = Consumer([Message(P0, 2, END)], [*records(P0, 2, 4), Message(P0, 5, END)])
    assert read(consumer, ("t", 0, 2, 5)) == {P0: [2, 3]}


def test_blocks_are_limited_by_keys_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(range_reader, "_BLOCK_BYTES", 1_000)
    consumer = Consumer(*([Message(P0, it, size=600)] for it in range(4)))
    reader = RangeReader(cast("UserConsumer", consumer))
    blocks = [len(run.offsets) for (run,) in reader.read([("t", 0, 0, 4)], skips_missing=True)]
    assert blocks == [2, 2]


def test_record_after_the_range_ends_it() -> None:
    # The last offsets of the range have no records.
    consumer = Consumer([*records(P0, 0, 3), *records(P0, 6, 9)])
    assert read(consumer, ("t", 0, 0, 5)) == {P0: [0, 1, 2]}
    assert read(Consumer(records(P0, 6, 9)), ("t", 0, 3, 5)) == {}


def test_topics_that_exist_are_asked_for_and_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(range_reader, "_ASK_SECONDS", 0.0)
    asked: list[str] = []

    class Existing(Consumer):
        def list_topics(self, topic: str, _: float) -> SimpleNamespace:
            asked.append(topic)
            return SimpleNamespace(topics={topic: SimpleNamespace(error=None)})

    with pytest.raises(KafkaException, match=naming("t [0]", "offset 10", "in time")):
        read(Existing(), ("t", 0, 0, 10), ("t", 1, 0, 10))
    # One question for both partitions, again and again.
    assert set(asked) == {"t"}
