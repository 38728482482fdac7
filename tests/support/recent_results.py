"""Records and a memory of recent results, for tests without Kafka."""

from __future__ import annotations

from service.alarms.memory import RecentRecords, Start
from service.alarms.records import Age, Place, ResultRecord

TAG = b"12345678"


def record(
    offset: int,
    partition: int = 0,
    *,
    tag: bytes = TAG,
    topic: str = "t",
    value: bytes = b'{"detected_at": 5}',
    condition: str = "c",
    key: bytes = b"k",
    ce_type: str | None = "coincide.alarm.v1",
) -> ResultRecord:
    """Return a record; its Kafka timestamp is its offset, in ms."""
    place = Place(tag, partition)
    return ResultRecord(
        place, Age(offset, offset, partition, topic), key, value, condition, ce_type
    )


def memory_of(most: int = 100, most_bytes: int = 2**20, partitions: int = 1) -> RecentRecords:
    """Return a memory that follows the topic t from its offset 0."""
    memory = RecentRecords(most, most_bytes)
    memory.follow("t", TAG, {number: Start(0, 0) for number in range(partitions)})
    return memory


def add(memory: RecentRecords, *records: ResultRecord) -> None:
    """Add records, and move the positions past them."""
    memory.add(records, {it.place: it.age.offset + 1 for it in records})
