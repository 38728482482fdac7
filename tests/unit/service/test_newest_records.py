"""The newest records of a topic are kept by timestamp, within their number and size."""

from __future__ import annotations

import pytest
from confluent_kafka import Message

from service import newest_records
from service.newest_records import NewestRecords


def record(stamp: int, partition: int, offset: int, size: int = 1) -> Message:
    """Return a record with a value of some bytes; of no bytes, a tombstone."""
    value = b"x" * size if size else None
    return Message(topic="t", partition=partition, offset=offset, value=value, timestamp=(1, stamp))


def places(found: NewestRecords) -> list[tuple[int | None, int | None]]:
    return [(it.partition(), it.offset()) for it in found.messages]


def read(most: int, *records: Message) -> NewestRecords:
    found = NewestRecords(most)
    for it in records:
        found.add(it)
    found.prune()
    return found


def test_records_with_the_newest_timestamps_are_kept_in_order_of_place() -> None:
    ones = [record(stamp, 1, at) for at, stamp in enumerate((10, 40, 30, 50))]
    twos = [record(stamp, 0, at) for at, stamp in enumerate((20, 45, 60))]
    assert places(read(4, *ones, *twos)) == [(0, 1), (0, 2), (1, 1), (1, 3)]
    assert places(read(100, *ones)) == [(1, 0), (1, 1), (1, 2), (1, 3)]


def test_memory_is_bounded_by_number_and_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(newest_records, "NEWEST_BYTES", 10)
    held = []
    found = NewestRecords(3)
    for at in range(50):
        found.add(record(at, 0, at, size=4 * (at % 2)))
        held.append(len(found.messages))
    assert max(held) <= 6
    found.prune()
    assert places(found) == [(0, 47), (0, 48), (0, 49)]
    # Of large records, fewer are kept.
    assert places(read(5, *(record(at, 0, at, size=5) for at in range(9)))) == [(0, 7), (0, 8)]
    assert places(read(5, record(0, 0, 0, size=11))) == []


def test_partitions_with_records_that_were_not_read_are_found() -> None:
    """Partitions 0 and 1 have older records, of which those of 0 are in the time of the sample."""
    busy = [record(stamp, 0, at) for at, stamp in enumerate((50, 51, 52), start=9)]
    quiet = [record(stamp, 1, at) for at, stamp in enumerate((10, 30, 52), start=9)]
    full = [record(stamp, 2, at) for at, stamp in enumerate((40, 41))]

    def cut(most: int, *records: Message) -> list[int]:
        found = NewestRecords(most, {0, 1})
        for it in records:
            found.add(it)
        found.prune()
        return found.cut

    assert cut(100, *busy, *quiet, *full) == [0]
    assert cut(100, *busy, *full) == [0]
    assert cut(100, *full) == cut(100, *quiet) == cut(100) == []
    # The newest three records are from 51 on: all of this time were read.
    assert cut(3, *busy, *quiet, *full) == []
