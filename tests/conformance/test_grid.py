"""Grids against the oracle: all slots together report the pairs of one slot, each pair once."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.buffers.partitioner import Partitioner
from correlation.engine.contract import ContractFacts
from correlation.engine.program import Block, Outcome, Program
from correlation.resources.partitioning import Partitioning
from correlation.timing.conditions import ALGORITHM_CHOICES
from tests.support.messages import assert_names
from tests.support.slots import (
    CONDITIONS,
    DELAY,
    PARTITIONS,
    Arrival,
    Slot,
    beat,
    control_record,
    control_records,
    draw_arrivals,
    judged_pairs,
    make_block,
    read_alarms,
)

NAMES = ("near", "narrow", "self", "self_within")


class Grid:
    """Slots among which the events of both streams are spread."""

    def __init__(self, groups: int, slots: int, **changes: Any) -> None:  # noqa: ANN401 - of Stream
        self.slots = [Slot() for _ in range(slots)]
        self.partition(groups, **changes)
        for slot in self.slots:
            slot.program = Program(slot.streams, slot.partitions)

    def partition(self, groups: int, **changes: Any) -> None:  # noqa: ANN401 - of Stream
        """Let the streams be declared so from the next restart on."""
        partitioning = Partitioning("grid", groups)
        self.partitioner = Partitioner(partitioning, len(self.slots))
        for slot in self.slots:
            slot.streams = {
                name: replace(stream, partitioning=partitioning, **changes)
                for name, stream in slot.streams.items()
            }

    def advance(self, block: Block) -> list[Outcome]:
        """Evaluate a block in each slot; as in the job all see controls and progress."""
        copies = [copy for events in block.events for copy in self.partitioner.spread(events)]
        return [
            slot.advance(replace(block, events=[mine for to, mine in copies if to == number]))
            for number, slot in enumerate(self.slots)
        ]

    def alarms(self, block: Block) -> list[dict[str, Any]]:
        """Evaluate a block and read the alarms."""
        return [alarm for outcome in self.advance(block) for alarm in read_alarms(outcome)]

    def restart(self) -> None:
        """Store and restore every slot."""
        for slot in self.slots:
            slot.restart()


def _keyless(arrivals: Sequence[Arrival]) -> list[Arrival]:
    """Without keys, for the judge too."""
    return [replace(arrival, key="") for arrival in arrivals]


def _facts(alarm: dict[str, Any]) -> dict[str, Any]:
    """Leave out how the pair was found, which may differ by what else is in the slot."""
    return {name: value for name, value in alarm.items() if name != "decided_by"}


@pytest.mark.parametrize("algorithm", ALGORITHM_CHOICES)
@pytest.mark.parametrize("groups", [1, 2, 3, 5])
@given(
    seed=st.integers(0, 2**32),
    count=st.integers(0, 40),
    slots=st.integers(1, 7),
    restarts=st.booleans(),
)
def test_p_grid_slots_report_the_judges_pairs_once(
    algorithm: str, groups: int, seed: int, count: int, slots: int, *, restarts: bool
) -> None:
    rng = random.Random(seed)  # noqa: S311 - a reproducible shuffle, no secret
    arrivals = _keyless(draw_arrivals(rng, count))
    grid, one = Grid(groups, slots), Grid(1, 1)
    controls = [it for it in control_records(algorithm) if it.key[10:].decode() in NAMES]
    alarms, expected = grid.alarms(make_block([], controls)), one.alarms(make_block([], controls))
    rest = list(arrivals)
    while rest:
        size = rng.randint(1, 12)
        block, rest = make_block(rest[:size], []), rest[size:]
        alarms += grid.alarms(block)
        expected += one.alarms(block)
        if restarts and rng.random() < 0.5:
            grid.restart()
    by_id = {alarm["alarm_id"]: _facts(alarm) for alarm in alarms}
    assert len(by_id) == len(alarms)
    assert by_id == {alarm["alarm_id"]: _facts(alarm) for alarm in expected}
    for name in NAMES:
        found = {(it["a"]["id"], it["b"]["id"]) for it in alarms if it["condition"] == name}
        assert found == judged_pairs(arrivals, CONDITIONS[name]), name
    assert all(alarm["a"]["key"] is alarm["b"]["key"] is None for alarm in alarms)


@pytest.mark.parametrize("groups", [1, 2, 3, 5])
def test_events_count_once_however_many_copies_there_are(groups: int) -> None:
    grid = Grid(groups, 3, clock="live")
    grid.advance(make_block([], control_records("lazy_lookup")))
    rng = random.Random(7)  # noqa: S311 - a reproducible shuffle, no secret
    arrivals = draw_arrivals(rng, 120)
    grid.advance(make_block(arrivals, []))
    # 50 behind the max `latest` of its partition, and D is 9.
    late = [replace(arrivals[0], id=f"late{n}", earliest=0, latest=0, offset=900) for n in range(3)]
    grid.restart()
    outcomes = grid.advance(make_block(late, []))
    written = [ident for it in outcomes for part in it.late for ident in part.id.to_list()]
    assert sorted(written) == [b"late0", b"late1", b"late2"]
    counters: Counter[tuple[str, str]] = Counter()
    histograms: Counter[tuple[str, str]] = Counter()
    facts: dict[str, ContractFacts] = {}
    for metrics in (outcome.metrics for outcome in outcomes):
        for name, labels, value in metrics["counters"]:
            counters[name, labels.get("stream", "")] += value
        for name, labels, value in metrics["histograms"]:
            histograms[name, labels.get("stream", "")] += value["buckets"][-1][1]
        for name, record in metrics["contracts"].items():
            part = ContractFacts.from_record(record)
            facts[name] = part.merged(facts[name]) if name in facts else part
    for name in "xy":
        events = sum(arrival.stream == name for arrival in [*arrivals, *late])
        behind = sum(arrival.stream == name for arrival in late)
        assert counters["events_consumed_total", name] == events
        assert counters["events_late_total", name] == behind
        assert histograms["interval_length_seconds", name] == events
        assert histograms["transmission_delay_seconds", name] == events
        assert (facts[name].events, facts[name].late) == (events, behind)


@pytest.mark.parametrize("groups", [1, 2, 5])
def test_buffered_events_are_copies(groups: int) -> None:
    grid = Grid(groups, 3)
    grid.advance(make_block([], control_records("lazy_lookup")))
    arrivals = [Arrival("x", 0, "", f"x{n}", n, n, n) for n in range(20)]
    buffered = sum(
        value
        for outcome in grid.advance(make_block(arrivals, []))
        for name, _, value in outcome.metrics["gauges"]
        if name == "buffered_events"
    )
    assert buffered == 20 * groups


@pytest.mark.parametrize("groups", [1, 3])
def test_events_that_a_condition_needs_are_copies(groups: int) -> None:
    grid = Grid(groups, 2)
    grid.advance(make_block([], [control_record(0, "sure", CONDITIONS["sure"])]))
    arrivals = [Arrival("x", 0, "", f"x{n}", n, n, n) for n in range(20)]
    grid.advance(make_block(arrivals, []))
    # An event of y is at most 40 later, so those of x are needed from 11 on.
    block = Block(heartbeats=[beat("y", 51)])
    found: Counter[str] = Counter()
    for outcome in grid.advance(block):
        for kind in ("gauges", "counters"):
            for name, labels, value in outcome.metrics[kind]:
                found[name] += value if labels.get("stream") == "x" else 0
    assert found["condition_buffered_events"] == 9 * groups
    copies = found["events_collected_total"] + found["buffered_events"]
    assert copies - found["condition_buffered_events"] == 11 * groups
    assert found["events_consumed_total"] == 20


def test_twins_of_a_self_correlation_are_one_pair_in_a_grid() -> None:
    controls = [it for it in control_records("lazy_lookup") if it.key.endswith(b"/self")]
    # Equal in everything, ids included: only their places in Kafka differ, and so their groups.
    twins = [Arrival("x", 0, "", "twin", 5, 9, offset) for offset in range(9)]
    for cut in range(9):
        grid = Grid(3, 2)
        grid.advance(make_block([], controls))
        alarms = grid.alarms(make_block(twins[:cut], []))
        assert len(alarms + grid.alarms(make_block(twins[cut:], []))) == 9 * 8 / 2


def _states(grid: Grid) -> set[tuple[str, str | None]]:
    found = [outcome.metrics["conditions"]["c"] for outcome in grid.advance(Block())]
    return {(it["state"], it["detail"]) for it in found}


def test_a_condition_fails_while_its_streams_have_other_groups_than_each_other() -> None:
    grid = Grid(2, 2)
    grid.advance(make_block([], [control_record(0, "c", CONDITIONS["near"])]))
    assert _states(grid) == {("running", None)}
    same = dict(grid.slots[0].streams)
    for slot in grid.slots:
        slot.streams["y"] = replace(same["y"], partitioning=Partitioning("grid", 3))
    grid.restart()
    ((state, detail),) = _states(grid)
    assert state == "failed"
    assert str(detail).startswith("b: ")
    assert_names(detail, "grid with 3 groups", "grid with 2 groups", "same partitioning")
    for slot in grid.slots:
        slot.streams["y"] = same["y"]
    grid.restart()
    assert _states(grid) == {("running", None)}


@pytest.mark.parametrize("emit", ["best", "unmatched"])
def test_a_condition_that_judges_an_event_fails_when_its_streams_get_groups(emit: str) -> None:
    grid = Grid(1, 2)
    grid.advance(make_block([], [control_record(0, "c", {**CONDITIONS["near"], "emit": emit})]))
    assert _states(grid) == {("running", None)}
    grid.partition(2)
    grid.restart()
    ((state, detail),) = _states(grid)
    assert state == "failed"
    assert str(detail).startswith(f"emit: {emit} ")
    assert_names(detail, "in one slot")


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1), (3, 2)])
def test_other_groups_begin_with_empty_buffers(before: int, after: int) -> None:
    grid = Grid(before, 2)
    control = control_record(0, "c", CONDITIONS["near"])
    grid.advance(make_block([], [control]))
    old = [Arrival("x", p, "", f"old{p}", 20, 20, 0) for p in range(PARTITIONS)]
    grid.advance(make_block(old, []))
    grid.partition(after)
    grid.restart()
    # In the cell of an old copy, its key may mean another cell by now: none of them is paired.
    new = [Arrival("y", p, "", f"new{p}", 20, 20, 0) for p in range(PARTITIONS)]
    assert grid.alarms(make_block(new, [])) == []
    again = [Arrival("x", 0, "", "again", 20, 20, 1)]
    met = [alarm["b"]["id"] for alarm in grid.alarms(make_block(again, []))]
    assert sorted(met) == ["new0", "new1"]


def test_an_a_whose_b_went_with_the_old_groups_is_not_unmatched() -> None:
    grid = Grid(2, 2)
    grid.advance(make_block([], [control_record(0, "keeper", CONDITIONS["near"])]))
    gone = [Arrival("y", p, "", f"y{p}", 20, 20, 0) for p in range(PARTITIONS)]
    grid.advance(make_block(gone, []))
    grid.partition(1)
    grid.restart()
    lonely = control_record(1, "c", {**CONDITIONS["near"], "emit": "unmatched"})
    times = ((20, "in reach"), (20 + 4 * DELAY + 25, "out of reach"))
    events = [Arrival("x", 0, "", name, time, time, time) for time, name in times]
    grid.advance(make_block(events, [lonely]))
    later = [Arrival(s, p, "", f"{s}{p}later", 900, 900, 900) for s in "xy" for p in (0, 1)]
    alarms = [it for it in grid.alarms(make_block(later, [])) if it["condition"] == "c"]
    assert [alarm["a"]["id"] for alarm in alarms] == ["out of reach"]


def test_events_that_met_by_key_are_not_taken_for_those_of_a_grid() -> None:
    """The condition changes in the very batch: y0 waits under its key, where no x looks for it."""
    slot = Slot()
    slot.advance(make_block([], [control_record(0, "c", CONDITIONS["near"])]))
    slot.advance(make_block([Arrival("y", 0, "k", "y0", 20, 20)], []))
    for name, stream in slot.streams.items():
        slot.streams[name] = replace(stream, partitioning=Partitioning("grid", 1))
    slot.restart()
    lonely = control_record(1, "c", {**CONDITIONS["near"], "emit": "unmatched"}, 2)
    alarms = read_alarms(slot.advance(make_block([Arrival("x", 0, "0", "x0", 20, 20)], [lonely])))
    later = [Arrival(name, p, "0", f"{name}{p}", 900, 900, 9) for name in "xy" for p in (0, 1)]
    alarms += read_alarms(slot.advance(make_block(later, [])))
    assert "x0" not in {alarm["a"]["id"] for alarm in alarms}
