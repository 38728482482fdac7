"""Plans of a rebuild: which state the slots begin with, and where the query begins."""

from __future__ import annotations

from dataclasses import replace

import pytest

from correlation.engine.program import Program
from correlation.engine.published import Published
from correlation.resources.streams import Stream
from spark_jobs.driver.layout import Layout
from spark_jobs.driver.rebuild import (
    Plan,
    describe_problems,
    find_ranges,
    holding,
    make_states,
    without_events,
)
from spark_jobs.driver.streams_in_force import StreamsInForce
from spark_jobs.errors import RebuildError
from spark_jobs.worker.positions import Positions
from spark_jobs.worker.slot_records import Generation, SlotRecord, read_generations
from tests.support.messages import assert_names

STREAM = Stream("s", "topic", 10, 10)
IN_FORCE = StreamsInForce({"s": STREAM}, {"s": 2}, {"s": "id"})
BEGINS = {("topic", 0): 0, ("topic", 1): 0}


def state(
    positions: Positions, sources: list[list[int]] | None = None, slots: int = 2, **fields: object
) -> SlotRecord:
    """Return the state of a slot with events of some sources; None: they are not known."""
    published = Program({"s": STREAM}, {"s": 2}).publish()
    position = {**published.position, "topic_ids": {"s": "id"}, "sources": {"s": sources}, **fields}
    return SlotRecord("c", slots, "config", positions, Published(position, published.totals))


def at(
    first: int,
    second: int,
    sources: list[list[int]] | None = None,
    slots: int = 2,
    **fields: object,
) -> SlotRecord:
    found = [] if sources is None else sources
    return state({"topic": {0: first, 1: second}}, found, slots, **fields)


def plan(*slots: SlotRecord | None) -> Plan:
    return Plan(Layout(1, tuple(range(len(slots))), "c", 0), slots)


def test_query_begins_at_the_min_positions() -> None:
    lagging = plan(at(5, 9), at(7, 9))
    assert lagging.starts == {"topic": {0: 5, 1: 9}}
    assert lagging.written == ({"topic": {0: 5, 1: 9}}, {"topic": {0: 7, 1: 9}})
    assert not lagging.is_reached({("topic", 0): 6, ("topic", 1): 9})
    assert lagging.is_reached({("topic", 0): 7, ("topic", 1): 9})
    assert plan(at(5, 9), at(5, 9)).written == ()


def test_first_batch_ends_where_the_last_slot_begins() -> None:
    lagging = [at(5, 9)._replace(positions={"topic": {0: 5, 1: 9}, "config": {0: 3}}), at(7, 8)]
    places = {("topic", 0), ("topic", 1), ("new", 0)}
    ends = {"topic": {0: 7, 1: 9}, "new": {0: 0}}
    assert plan(*lagging).ends(places, "config") == {**ends, "config": {0: 3}}
    # The config topic was created again: no slot has read it.
    assert plan(*lagging).ends(places, "other") == ends


def test_a_slot_that_has_not_written_reads_all() -> None:
    found = plan(at(5, 9), None)
    assert found.starts == {"topic": {0: 0, 1: 0}}
    assert found.written == ({"topic": {0: 5, 1: 9}}, {})


def test_plan_is_read_as_it_was_written() -> None:
    found = plan(at(5, 9, [[0, 1, 2, 3]]), None)
    assert Plan.from_bytes(found.to_bytes()) == found
    from_now = replace(found, from_now=True)
    assert Plan.from_bytes(from_now.to_bytes()) == from_now


@pytest.mark.parametrize(
    ("records", "slots", "expected"),
    [
        ([at(5, 9), at(5, 9)], 2, (4, [2, 2])),
        ([at(5, 9), at(5, 9)], 3, (5, [3, 3, 3])),
        ([at(5, 9), at(5, 9)], 1, (5, [1])),
        # One batch apart: first with the present number.
        ([at(5, 9), at(5, 8)], 3, (4, [2, 2])),
        ([at(5, 9), at(5, 9, held_by=["c"])], 3, (4, [2, 2])),
        ([at(5, 9), at(5, 9, operators={"c": "00"})], 3, (4, [2, 2])),
    ],
)
def test_state_is_distributed_when_all_slots_are_at_the_same_batch(
    records: list[SlotRecord], slots: int, expected: tuple[int, list[int]]
) -> None:
    generation = Generation(4, 2, dict(enumerate(records)))
    number, found = make_states([generation], slots)
    assert (number, [None if it is None else it.slots for it in found]) == expected


def test_slots_of_an_incomplete_generation_come_from_the_former_one() -> None:
    former = Generation(4, 2, {0: at(5, 9), 1: at(5, 9)})
    newer = Generation(5, 3, {1: at(6, 9, slots=3)})
    number, found = make_states([newer, former], 3)
    assert number == 5
    assert [it and it.positions["topic"][0] for it in found] == [5, 6, 5]


def test_first_batch_of_an_installation_may_be_incomplete() -> None:
    assert make_states([Generation(0, 2, {1: at(6, 9)})], 2) == (0, [None, at(6, 9)])


def test_ranges_cover_the_sources_of_all_slots() -> None:
    found, problems = find_ranges(
        plan(at(50, 90, [[0, 10, 20, 0], [1, 5, 9, 0]]), at(55, 90, [[0, 7, 30, 0]])),
        IN_FORCE,
        BEGINS,
    )
    assert found == {"topic": {0: (7, 55), 1: (5, 90)}}
    assert problems == []


def test_missing_records_are_named() -> None:
    slots = plan(at(50, 90, [[0, 10, 20, 0]]), at(50, 90, [[1, 5, 9, 0]]))
    _, (problem,) = find_ranges(slots, IN_FORCE, {("topic", 0): 15, ("topic", 1): 5})
    assert "topic-0" in problem
    assert "offset 10 " in problem
    assert problem in describe_problems([problem])
    _, (unknown,) = find_ranges(plan(state({"topic": {0: 9}})), IN_FORCE, BEGINS)
    assert "are not known" in unknown
    other = StreamsInForce({"s": STREAM}, {"s": 2}, {"s": "another"})
    _, (recreated,) = find_ranges(slots, other, BEGINS)
    assert_names(recreated, "topic", "is not the topic")


def test_events_of_removed_streams_are_not_read() -> None:
    slots = plan(at(50, 90, [[0, 10, 20, 0]]))
    assert find_ranges(slots, StreamsInForce({}, {}, {}), {}) == ({}, [])


def test_recreated_topics_are_read_from_their_beginning() -> None:
    other = StreamsInForce({"s": STREAM}, {"s": 2}, {"s": "another"})
    found = plan(at(50, 90))
    assert found.changed_topics(IN_FORCE) == []
    assert found.changed_topics(other) == ["topic"]
    (slot,) = found.for_topics(["config"], "config", "config", 3).slots
    assert slot is not None
    assert slot.positions == {}
    assert slot.published.position["config_epoch"] == 3


def test_another_config_topic_is_read_from_its_beginning() -> None:
    found = plan(state({"topic": {0: 3}, "p.config": {0: 7}}))
    (slot,) = found.for_topics(["topic", "p.config"], "p.config", "another", 1).slots
    assert slot is not None
    assert slot.positions == {"topic": {0: 3}}
    assert slot.published.position["config_epoch"] == -1


def test_events_can_be_given_up() -> None:
    record = at(
        50,
        90,
        [[0, 10, 20, 0]],
        forgotten={"s": [30, 12]},
        held={"s": [[4, [[0, 1, 2, 0]]]]},
        held_by=["c"],
        operators={"c": "00", "d": "11"},
    )
    found = without_events(record)
    assert holding(Generation(0, 1, {0: record})) == ["c"]
    assert holding(Generation(0, 1, {0: found})) == []
    position = found.published.position
    assert position["forgotten"] == {"s": [30, 31]}
    assert position["operators"] == {}
    assert find_ranges(plan(found), IN_FORCE, {}) == ({}, [])


def records_of(record: SlotRecord, slot: int) -> dict[bytes, bytes]:
    found = record.to_records("p.state", 3, slot, with_totals=True)
    return {it.key or b"": it.value or b"" for it in found}


def test_generations_are_read_from_their_records() -> None:
    first, second = at(5, 9), at(6, 9)
    values = {**records_of(first, 0), **records_of(second, 1)}
    assert read_generations(values) == [Generation(3, 2, {0: first, 1: second})]
    del values[b"3/1/totals"]
    assert read_generations(values) == [Generation(3, 2, {0: first})]


def test_a_state_that_was_too_large_is_an_error() -> None:
    values = records_of(at(5, 9), 0)
    values[b"3/0"] = b'{"v":1,"slots":2,"error":"too_large","omitted_bytes":9}'
    with pytest.raises(RebuildError, match=r"exceeded max\.message\.bytes"):
        read_generations(values)
