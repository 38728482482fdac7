"""Filters against the oracle: all algorithms and outputs, for all blocks and restarts."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.engine.heartbeats import CLOSED, Heartbeat
from correlation.engine.program import Block, Control, Program
from correlation.timing.conditions import ALGORITHM_CHOICES
from tests.conformance.test_grid import Grid
from tests.support.factored import expand
from tests.support.filters import DECLARED, draw_attributes, draw_where
from tests.support.histogram_slots import (
    expected_pairs,
    give_shapes,
    histogram_slot,
    histogram_verdicts,
)
from tests.support.slots import (
    CONDITIONS,
    Arrival,
    Slot,
    control_record,
    draw_arrivals,
    judged_pairs,
    judged_verdicts,
    make_block,
    read_alarms,
)

CLOSING = Block(heartbeats=[Heartbeat(name, None, CLOSED, None) for name in "xy"])
SEEDS = st.integers(0, 2**32)
NAMES = st.sampled_from(sorted(CONDITIONS))
Document = dict[str, Any]


def with_attributes(slot: Slot) -> Slot:
    """Return a new slot whose streams declare attributes."""
    slot.streams = {name: replace(it, attributes=DECLARED) for name, it in slot.streams.items()}
    slot.program = Program(slot.streams, slot.partitions)
    return slot


def draw_events(rng: random.Random, count: int) -> list[Arrival]:
    return [replace(it, attributes=draw_attributes(rng)) for it in draw_arrivals(rng, count)]


def draw_document(rng: random.Random, name: str, **more: object) -> Document:
    where = draw_where(rng)
    return {**CONDITIONS[name], **more} | ({} if where is None else {"where": where})


def feed(
    advance: Callable[[Block], list[Document]],
    restart: Callable[[], None],
    rng: random.Random,
    arrivals: list[Arrival],
) -> list[Document]:
    """Advance by blocks of random sizes, with restarts; close the streams; return the alarms."""
    rest, alarms = list(arrivals), []
    while rest:
        size = rng.randint(1, 12)
        taken, rest = rest[:size], rest[size:]
        alarms += advance(make_block(taken, []))
        if rng.random() < 0.4:
            restart()
    return alarms + advance(CLOSING)


def feed_slot(
    slot: Slot, rng: random.Random, arrivals: list[Arrival], *controls: Control
) -> list[Document]:
    slot.advance(make_block([], list(controls)))
    # A restart replaces the program, so the slot is looked up again for each block.
    return feed(lambda block: read_alarms(slot.advance(block)), slot.restart, rng, arrivals)


def pairs_of(alarms: list[Document]) -> list[tuple[str, str]]:
    return sorted((alarm["a"]["id"], alarm["b"]["id"]) for alarm in alarms)


def check_attributes(alarms: list[Document], arrivals: list[Arrival]) -> None:
    """Check that the events of alarms have the attributes with which they arrived."""
    by_id = {arrival.id: arrival.attributes for arrival in arrivals}
    for event in (alarm[role] for alarm in alarms for role in "ab" if alarm[role] is not None):
        assert event["attributes"] == by_id[event["id"]]


@pytest.mark.parametrize("algorithm", ALGORITHM_CHOICES)
@given(seed=SEEDS, count=st.integers(0, 60), name=NAMES)
def test_p_filter_pairs_are_the_judges_pairs(
    algorithm: str, seed: int, count: int, name: str
) -> None:
    rng = random.Random(seed)  # noqa: S311 - a reproducible shuffle, no secret
    arrivals = draw_events(rng, count)
    document = draw_document(rng, name, algorithm=algorithm)
    alarms = feed_slot(with_attributes(Slot()), rng, arrivals, control_record(0, name, document))
    assert pairs_of(alarms) == sorted(judged_pairs(arrivals, document))
    check_attributes(alarms, arrivals)


@given(seed=SEEDS, count=st.integers(0, 60), name=NAMES, size=st.integers(1, 20))
def test_p_filter_pairs_of_blocks_are_the_judges_pairs(
    seed: int, count: int, name: str, size: int
) -> None:
    rng = random.Random(seed)  # noqa: S311 - a reproducible shuffle, no secret
    arrivals = draw_events(rng, count)
    interval = rng.choice([0, 3, 20, 1_000])
    document = draw_document(rng, name, block_size=size, block_interval_us=interval)
    alarms = feed_slot(with_attributes(Slot()), rng, arrivals, control_record(0, name, document))
    assert pairs_of(alarms) == sorted(judged_pairs(arrivals, document))


@given(seed=SEEDS, count=st.integers(0, 60), name=NAMES)
def test_p_filter_best_and_unmatched_are_the_judges_verdicts(
    seed: int, count: int, name: str
) -> None:
    rng = random.Random(seed)  # noqa: S311 - a reproducible shuffle, no secret
    arrivals = draw_events(rng, count)
    document = draw_document(rng, name)
    controls = [
        control_record(offset, emit, document | {"emit": emit})
        for offset, emit in enumerate(("best", "unmatched"))
    ]
    alarms = feed_slot(with_attributes(Slot()), rng, arrivals, *controls)
    verdicts = {alarm["a"]["id"]: alarm["b"] and alarm["b"]["id"] for alarm in alarms}
    assert len(verdicts) == len(alarms)
    assert verdicts == judged_verdicts(arrivals, document)
    check_attributes(alarms, arrivals)


@given(seed=SEEDS, count=st.integers(0, 80), name=NAMES, size=st.none() | st.integers(1, 20))
def test_p_filter_factored_records_expand_to_the_judges_pairs(
    seed: int, count: int, name: str, size: int | None
) -> None:
    rng = random.Random(seed)  # noqa: S311 - a reproducible shuffle, no secret
    if CONDITIONS[name]["a"] == CONDITIONS[name]["b"]:
        name = "near"
    arrivals = draw_events(rng, count)
    document = draw_document(rng, name, output="factored", block_size=size)
    records = feed_slot(with_attributes(Slot()), rng, arrivals, control_record(0, name, document))
    alarms = list(expand(map(json.dumps, records)))
    assert pairs_of(alarms) == sorted(judged_pairs(arrivals, document))
    check_attributes(alarms, arrivals)


@pytest.mark.parametrize("groups", [1, 3])
@given(seed=SEEDS, count=st.integers(0, 40), name=NAMES)
def test_p_filter_pairs_of_a_grid_are_the_judges_pairs(
    groups: int, seed: int, count: int, name: str
) -> None:
    rng = random.Random(seed)  # noqa: S311 - a reproducible shuffle, no secret
    arrivals = [replace(it, key="") for it in draw_events(rng, count)]
    document = draw_document(rng, name)
    grid = Grid(groups, 3, attributes=DECLARED)
    grid.alarms(make_block([], [control_record(0, name, document)]))
    alarms = feed(grid.alarms, grid.restart, rng, arrivals)
    assert pairs_of(alarms) == sorted(judged_pairs(arrivals, document))


@pytest.mark.parametrize("declared", ["templates", "own"])
@given(seed=SEEDS, count=st.integers(0, 40), name=NAMES)
def test_p_filter_histograms_are_judged_as_the_oracle_does(
    declared: str, seed: int, count: int, name: str
) -> None:
    rng = random.Random(seed)  # noqa: S311 - a reproducible shuffle, no secret
    arrivals = give_shapes(rng, draw_events(rng, count), declared)
    document = draw_document(rng, name, algorithm=rng.choice(ALGORITHM_CHOICES))
    controls = [
        control_record(offset, emit, document | {"emit": emit})
        for offset, emit in enumerate(("pairs", "best", "unmatched"))
    ]
    alarms = feed_slot(with_attributes(histogram_slot(declared)), rng, arrivals, *controls)
    pairs = [alarm for alarm in alarms if alarm["condition"] == "pairs"]
    assert pairs_of(pairs) == sorted(expected_pairs(arrivals, document))
    others = [alarm for alarm in alarms if alarm["condition"] != "pairs"]
    verdicts = {alarm["a"]["id"]: alarm["b"] and alarm["b"]["id"] for alarm in others}
    assert len(verdicts) == len(others)
    assert verdicts == histogram_verdicts(arrivals, document)
    check_attributes(alarms, arrivals)


def test_a_changed_filter_applies_to_results_that_are_completed_later() -> None:
    slot = with_attributes(Slot())
    wanted: list[Document | None] = [{"rule": "A"}, {"rule": "B"}, None]
    before = [
        Arrival("x", 0, "k", f"x{rule}", 10, 10, offset, attributes={"rule": rule})
        for offset, rule in enumerate("AB")
    ]
    found = []
    for version, where in enumerate(wanted):
        document: dict[str, object] = {**CONDITIONS["near"], "where": where and {"a": where}}
        control = control_record(version, "c", document, version + 1)
        b = Arrival("y", 0, "k", f"y{version}", 10, 10, version, attributes={})
        block = make_block([b] if version else [*before, b], [control])
        found.append(pairs_of(read_alarms(slot.advance(block))))
        slot.restart()
    assert found == [[("xA", "y0")], [("xB", "y1")], [("xA", "y2"), ("xB", "y2")]]


def test_a_filter_that_the_stream_no_longer_fits_stops_the_condition_with_a_reason() -> None:
    slot = with_attributes(Slot())
    document = {**CONDITIONS["near"], "where": {"b": {"severity": {"min": 3}}}}
    slot.advance(make_block([], [control_record(0, "c", document)]))
    slot.streams["y"] = replace(slot.streams["y"], attributes=())
    slot.restart()
    state = slot.advance(Block()).metrics["conditions"]["c"]
    assert state["state"] == "failed"
    assert state["detail"].startswith("where.b.severity: is not an attribute")


def test_blocks_count_the_events_that_match() -> None:
    slot = with_attributes(Slot())
    document = {**CONDITIONS["near"], "where": {"a": {"rule": "A"}, "b": {"rule": "A"}}}
    slot.advance(make_block([], [control_record(0, "c", {**document, "block_size": 2})]))
    alarms = []
    for offset, (stream, rule) in enumerate([("x", "A"), ("y", "B"), ("y", None), ("y", "A")]):
        event = Arrival(stream, 0, "k", f"e{offset}", 0, 0, offset, attributes={"rule": rule})
        alarms.append(pairs_of(read_alarms(slot.advance(make_block([event], [])))))
        slot.restart()
    assert alarms == [[], [], [], [("e0", "e3")]]


def test_an_event_is_not_its_own_best_where_filters_move_its_row() -> None:
    slot = with_attributes(Slot())
    alike: Document = {"a": {"rule": "A"}, "b": {"rule": {"not": "B"}}}
    document = {**CONDITIONS["self"], "emit": "best", "where": alike}
    slot.advance(make_block([], [control_record(0, "c", document)]))
    arrivals = [
        Arrival("x", 0, "k", f"x{offset}", time, time, offset, attributes={"rule": rule})
        for offset, (time, rule) in enumerate([(1, "B"), (2, "A"), (4, "A"), (9, "C")])
    ]
    alarms = read_alarms(slot.advance(make_block(arrivals[:3], [])))
    slot.restart()
    alarms += read_alarms(slot.advance(make_block(arrivals[3:], [])))
    alarms += read_alarms(slot.advance(CLOSING))
    assert pairs_of(alarms) == [("x1", "x2"), ("x2", "x1")]
