"""The memory of recent results: its bounds, and what a reader has missed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from service.alarms.memory import RecentRecords, Start
from service.alarms.records import Place
from tests.support.recent_results import TAG, add, memory_of, record

P0, P1 = Place(TAG, 0), Place(TAG, 1)


def offsets(memory: RecentRecords, partition: int = 0) -> list[int]:
    """Return the offsets in memory of a partition, the newest first."""
    return [it.age.offset for it in memory.newest()[0] if it.place.partition == partition]


def test_a_busy_partition_does_not_drop_the_records_of_others() -> None:
    memory = memory_of(most=3, partitions=2)
    add(memory, record(0, 1), *(record(offset) for offset in range(10)))
    assert offsets(memory) == [9, 8, 7]
    assert offsets(memory, 1) == [0]
    assert memory.newest()[1] == {P0: 10, P1: 1}
    assert memory.followed_total == 11


def test_bytes_are_bounded_over_all_partitions() -> None:
    size = record(0, value=b"x" * 1000).nbytes
    memory = memory_of(most_bytes=5 * size, partitions=2)
    add(memory, *(record(offset, 1, value=b"x" * 1000) for offset in range(2)))
    add(memory, *(record(offset, value=b"x" * 1000) for offset in range(9)))
    # The partition with the most bytes loses records.
    assert (offsets(memory), offsets(memory, 1)) == ([8, 7, 6], [1, 0])
    # A record that is larger than all of the memory is not kept.
    add(memory, record(9, value=b"x" * 6000))
    assert sum(map(len, (offsets(memory), offsets(memory, 1)))) <= 5


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3000)), max_size=60),
    st.integers(1, 10),
    st.integers(0, 20_000),
)
def test_bounds_hold_and_partitions_have_no_holes(
    arrivals: list[tuple[int, int]], most: int, most_bytes: int
) -> None:
    memory = memory_of(most, most_bytes, partitions=3)
    ends = [0, 0, 0]
    for partition, size in arrivals:
        add(memory, record(ends[partition], partition, value=b"x" * size))
        ends[partition] += 1
        records, positions = memory.newest()
        assert sum(it.nbytes for it in records) <= most_bytes
        assert positions == {Place(TAG, number): end for number, end in enumerate(ends)}
        oldest = memory.oldest()
        for number, end in enumerate(ends):
            found = offsets(memory, number)
            assert len(found) <= most
            assert found[::-1] == list(range(oldest[Place(TAG, number)], end))


def test_reader_takes_records_in_their_order() -> None:
    memory = memory_of(partitions=2)
    number, positions = memory.last_number()
    add(memory, record(0), record(0, 1), record(1))
    first = memory.after(number, positions, 2, 10**6)
    assert [it.age.offset for it in first.records] == [0, 0]
    second = memory.after(first.number, positions, 2, 10**6)
    assert [it.age.offset for it in second.records] == [1]
    assert memory.after(second.number, positions, 2, 10**6).records == []
    # One record is taken, however large.
    assert len(memory.after(number, positions, 2, 1).records) == 1


def test_reader_has_missed_what_was_dropped_before_it_came() -> None:
    memory = memory_of(most=2)
    number, positions = memory.last_number()
    add(memory, record(0), record(1))
    assert memory.missed(positions) == []
    add(memory, record(2))
    assert memory.missed(positions) == ["t"]
    assert memory.after(number, positions, 9, 10**6).missed == ["t"]
    assert memory.missed({P0: 1}) == []


def test_position_continues_or_names_what_is_missed() -> None:
    memory = memory_of(most=2, partitions=2)
    add(memory, *(record(offset) for offset in range(5)), record(0, 1))
    assert memory.begin_after({P0: 3, P1: 0}) == ({P0: 3, P1: 0}, None)
    assert memory.begin_after({P0: 2, P1: 1}) == ({P0: 3, P1: 1}, ["t"])
    # A partition that is not in the position is new: its records are taken from the beginning.
    assert memory.begin_after({P0: 5}) == ({P0: 5, P1: 0}, None)
    # Records of a topic that is not followed any more may be missed.
    gone = Place(b"gone....", 0)
    assert memory.begin_after({P0: 5, P1: 1, gone: 7}) == ({P0: 5, P1: 1}, [])


def test_topics_come_and_go() -> None:
    memory = memory_of()
    add(memory, record(0))
    _, positions = memory.last_number()
    memory.follow("u", b"u" * 8, {0: Start(0, 90)})
    add(memory, record(90, tag=b"u" * 8, topic="u"))
    assert memory.topics() == {"t": (TAG, 1), "u": (b"u" * 8, 1)}
    batch = memory.after(0, positions, 9, 10**6)
    assert positions == {P0: 1, Place(b"u" * 8, 0): 90}
    assert (batch.missed, batch.gone) == ([], set())
    memory.forget("t")
    batch = memory.after(0, positions, 9, 10**6)
    assert [it.age.topic for it in batch.records] == ["u"]
    assert batch.gone == {P0}
    memory.forget("u")
    assert memory.newest() == ([], {})
    # Reading started after the beginning of the topic, so older records are missed.
    memory.follow("u", b"u" * 8, {0: Start(0, 90)})
    assert memory.begin_after({})[1] == ["u"]
