"""Shares of a batch's limit, and the distribution of its records over tasks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.resources.topics import Topics
from kafka_client.partition_offsets import Edge, Place
from spark_jobs.source.offset_planner import OffsetPlanner, Range, distribute, share_limit
from spark_jobs.source.reading import StreamReading
from spark_jobs.worker.packing import Packing

TOPICS = Topics("p")
PLACES = [("t", 0), ("t", 1), ("u", 0)]


@given(
    st.lists(st.integers(0, 1_000), min_size=3, max_size=3),
    st.lists(st.integers(-5, 1_000), min_size=3, max_size=3),
    st.integers(1, 2_000),
)
def test_limit_is_shared_in_proportion(
    begins: list[int], unread: list[int], max_records: int
) -> None:
    begin = dict(zip(PLACES, begins, strict=True))
    end = {it: begin[it] + size for it, size in zip(PLACES, unread, strict=True)}
    found = share_limit(begin, end, max_records)
    sizes = {it: found[it] - begin[it] for it in PLACES}
    total = sum(max(it, 0) for it in unread)
    if total <= max_records:
        assert found == end
        return
    # Each share is at least 1, which may exceed the limit by one record for each partition.
    assert sum(max(it, 0) for it in sizes.values()) < max_records + len(PLACES)
    for place, size in zip(PLACES, unread, strict=True):
        if size <= 0:
            # Also the end of a truncated partition.
            assert found[place] == end[place]
        else:
            assert 1 <= sizes[place] <= size
            assert sizes[place] == max(size * max_records // total, 1)


def test_ranges_are_distributed_by_their_sizes() -> None:
    ranges: list[Range] = [("a", 0, 0, 60_000), ("a", 1, 5, 40_005), ("b", 0, 0, 30_000)]
    assert distribute(ranges, 2) == [[ranges[0]], [ranges[1], ranges[2]]]
    assert distribute(ranges, 8) == [[it] for it in ranges]


def test_few_records_are_read_by_one_task() -> None:
    ranges: list[Range] = [("a", 0, 0, 2_000), ("a", 1, 0, 3_000)]
    assert distribute(ranges, 4) == [[ranges[1], ranges[0]]]
    assert distribute([], 4) == []


def test_heartbeats_are_looked_at_first_and_the_config_topic_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Place] = []

    def list_offsets(
        _admin: object, places: list[Place], edge: Edge, *_: object, **__: object
    ) -> dict[Place, int]:
        if edge is Edge.COMMITTED_END:
            asked.extend(places)
        return dict.fromkeys(places, 5)

    monkeypatch.setattr("spark_jobs.source.offset_planner.list_offsets", list_offsets)
    packing = Packing(TOPICS, (), (1,), 1_000)
    reading = StreamReading("run", "p.source", {}, packing, 1, {"t": 2, "u": 1}, 10)
    OffsetPlanner(reading).ends({}, None)
    assert asked == [(TOPICS.heartbeats, 0), *PLACES, (TOPICS.config, 0)]


@pytest.mark.parametrize(
    ("begin", "real", "expected"),
    [(50, 1_000, 100), (250, 1_000, 250), (250, 60, 60), (50, 80, 80)],
)
def test_fixed_end_limits_a_batch_and_does_not_move_it_back(
    monkeypatch: pytest.MonkeyPatch, begin: int, real: int, expected: int
) -> None:
    def list_offsets(
        _: object, places: list[Place], *__: object, **___: object
    ) -> dict[Place, int]:
        return dict.fromkeys(places, real)

    monkeypatch.setattr("spark_jobs.source.offset_planner.list_offsets", list_offsets)
    packing = Packing(TOPICS, (), (1,), 1_000)
    reading = StreamReading("run", "p.source", {}, packing, 1, {"t": 1}, 10, ends={"t": {0: 100}})
    planner = OffsetPlanner(reading)
    assert planner.ends({"t": {0: begin}}, None)["t"] == {0: expected}
    assert "password" not in repr(StreamReading("run", "g", {"sasl.password": "x"}, packing, 1))
