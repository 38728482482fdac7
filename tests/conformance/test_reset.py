"""Reset of a watermark that was too far ahead: later pairs are found, and no pair twice."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.buffers.segment import Segment
from correlation.engine.heartbeats import CLOSED, RESET, Heartbeat
from tests.support.slots import (
    CONDITIONS,
    DELAY,
    PARTITIONS,
    Arrival,
    Slot,
    advance_slot,
    beat,
    control_record,
    draw_arrivals,
    judged_pairs,
    judged_verdicts,
    make_block,
    point,
    read_alarms,
    slot_of_points,
)

FAR = 10**6
NEAR: dict[str, object] = {**CONDITIONS["near"], "window_us": 10}
SHAPES: tuple[dict[str, object], ...] = ({}, {"block_size": 7}, {"emit": "best"})
UNMATCHED: dict[str, object] = {"emit": "unmatched"}
BEST = SHAPES[-1]


def name_of(name: str, shape: dict[str, object]) -> str:
    """Name a condition by its window and by what it reports."""
    return f"{name}-{'-'.join(str(value) for value in shape.values())}"


def draw_faulty_arrivals(rng: random.Random, count: int, at: int, stream: str) -> list[Arrival]:
    """Put an event of a clock that runs far ahead among others."""
    wrong = Arrival(stream, rng.randrange(PARTITIONS), "k", "wrong", FAR, FAR)
    arrivals = draw_arrivals(rng, count)
    arrivals.insert(at, wrong)
    offsets: Counter[tuple[str, int]] = Counter()
    numbered = []
    for arrival in arrivals:
        place = (arrival.stream, arrival.partition)
        numbered.append(replace(arrival, offset=offsets[place]))
        offsets[place] += 1
    return numbered


def reset_heartbeats(seen: list[Arrival], *, whole: bool) -> list[Heartbeat]:
    """Reset both streams as of what was read; `whole` names no partition and no offset."""
    if whole:
        return [Heartbeat(stream, None, RESET, None) for stream in "xy"]
    return [
        Heartbeat(
            stream, number, RESET, sum((a.stream, a.partition) == (stream, number) for a in seen)
        )
        for stream in "xy"
        for number in range(PARTITIONS)
    ]


@dataclass
class Run:
    """Reported pairs of a slot, and the events that it had or got at the reset."""

    alarms: list[dict[str, Any]] = field(default_factory=list)
    kept: set[str] = field(default_factory=set)
    later: set[str] = field(default_factory=set)

    def pairs(self, condition: str) -> Counter[tuple[str, str]]:
        """Count how often each pair was reported."""
        mine = (alarm for alarm in self.alarms if alarm["condition"] == condition)
        return Counter((alarm["a"]["id"], alarm["b"] and alarm["b"]["id"]) for alarm in mine)


def run_with_reset(
    rng: random.Random,
    arrivals: list[Arrival],
    controls: list[Any],
    fault_at: int,
    wrong: list[Heartbeat],
) -> Run:
    """Advance a slot by blocks: wrong heartbeats with one of them, a reset with a later one."""
    slot, found = Slot(), Run()
    slot.advance(make_block([], controls))
    reset_at = rng.randrange(fault_at + 1, len(arrivals) + 1)
    seen: list[Arrival] = []
    is_reset = False
    while len(seen) < len(arrivals):
        taken = arrivals[len(seen) : len(seen) + rng.randint(1, 9)]
        beats = wrong if 0 <= fault_at - len(seen) < len(taken) else []
        if not is_reset and len(seen) >= reset_at:
            slot.restore()
            numbers = [number for found in slot.manifest["buffers"].values() for number in found]
            segments = [Segment.from_bytes(slot.blobs[number]) for number in numbers]
            found.kept = {it.decode() for segment in segments for it in segment.id.to_list()}
            beats = reset_heartbeats(seen, whole=rng.random() < 0.5)
            is_reset = True
        elif is_reset:
            found.later |= {arrival.id for arrival in taken}
        seen += taken
        if is_reset:
            found.kept |= {arrival.id for arrival in taken}
        found.alarms += read_alarms(slot.advance(replace(make_block(taken, []), heartbeats=beats)))
        if rng.random() < 0.4:
            slot.restart()
    closing = [Heartbeat(name, None, CLOSED, None) for name in "xy"]
    found.alarms += read_alarms(slot.advance(replace(make_block([], []), heartbeats=closing)))
    return found


@given(
    seed=st.integers(0, 2**32),
    count=st.integers(1, 60),
    name=st.sampled_from(sorted(CONDITIONS)),
    fault=st.sampled_from(["event", "far", "closed"]),
    stream=st.sampled_from("xy"),
)
def test_p_reset_what_was_buffered_or_came_after_is_found_once(
    seed: int, count: int, name: str, fault: str, stream: str
) -> None:
    rng = random.Random(seed)  # noqa: S311 - a reproducible shuffle, no secret
    document = CONDITIONS[name]
    shapes = (*SHAPES, UNMATCHED)
    controls = [
        control_record(number, name_of(name, shape), {**document, **shape})
        for number, shape in enumerate(shapes)
    ]
    arrivals, fault_at = draw_arrivals(rng, count), rng.randrange(count)
    wrong: list[Heartbeat] = []
    if fault == "event":
        arrivals = draw_faulty_arrivals(rng, count, fault_at, stream)
    else:
        wrong = [Heartbeat(stream, None, FAR if fault == "far" else CLOSED, None)]
    found = run_with_reset(rng, arrivals, controls, fault_at, wrong)
    judged = judged_pairs(arrivals, document)
    for shape in SHAPES[:2]:
        pairs = found.pairs(name_of(name, shape))
        assert max(pairs.values(), default=1) == 1
        assert pairs.keys() <= judged
        assert {pair for pair in judged if set(pair) <= found.kept} <= pairs.keys()
    best, alone = (found.pairs(name_of(name, shape)) for shape in (BEST, UNMATCHED))
    # Each A once, by either of the two.
    times = Counter(a for pairs in (best, alone) for a, _ in pairs.elements())
    assert max(times.values(), default=1) == 1
    there = [arrival for arrival in arrivals if arrival.id in found.kept]
    verdicts = judged_verdicts(there, document)
    everything = judged_verdicts(arrivals, document)
    for a in (it for it in there if it.id in found.later and it.stream == document["a"]):
        if verdicts[a.id] is not None:
            assert best[a.id, verdicts[a.id] or ""] == 1
        elif alone[a.id, None]:  # type: ignore[index]  # an A alone has no B
            assert everything[a.id] is None
        else:
            # Nothing is said where a B may have been forgotten before the reset.
            assert times[a.id] == 0


@pytest.mark.parametrize("emit", ["best", "unmatched"])
def test_p_reset_an_a_below_the_time_that_was_reset_waits_until_it_is_final(emit: str) -> None:
    slot = slot_of_points(control_record(0, "c", {**NEAR, "emit": emit}))
    old = [point("x1", 100), *([point("y1", 95)] if emit == "best" else [])]
    verdict = ("x1", "y1" if emit == "best" else None, False)
    advance_slot(slot, old, [beat("x", 90), beat("y", 90)])
    # y1's clock: x1 is judged too early.
    assert advance_slot(slot, [], [beat("y", 3_000)]) == [verdict]
    reset = [Heartbeat("y", None, RESET, None), beat("y", 99)]
    assert advance_slot(slot, [], reset) == []
    # x1 was judged, x2 comes after the reset at the same time, and its B has not arrived.
    assert advance_slot(slot, [point("x2", 120, offset=1)]) == []
    near = [point("y2", 125, offset=2)] if emit == "best" else []
    assert advance_slot(slot, near, [beat("y", 130)]) == []
    expected = [("x2", "y2" if emit == "best" else None, False)]
    assert advance_slot(slot, [], [beat("y", 131)]) == expected
    assert advance_slot(slot, [], [beat("y", 4_000), beat("x", 4_000)]) == []
    assert slot.program.advance(make_block([], []), lambda: 0).metrics["gauges"][0][2] == 0


def test_p_reset_nothing_is_said_of_an_a_whose_b_was_dropped_before_it() -> None:
    slot = slot_of_points(control_record(0, "c", {**NEAR, "emit": "unmatched"}))
    advance_slot(slot, [point("y1", 100)], [beat("x", 90), beat("y", 2_000)])
    # The wrong time of x has y1 dropped, with which x1 would be a pair.
    advance_slot(slot, [], [beat("x", 3_000)])
    advance_slot(slot, [], [Heartbeat("x", None, RESET, None)])
    after = advance_slot(slot, [point("x1", 101), point("x2", 400, offset=1)])
    assert after == [("x2", None, False)]


def test_p_reset_events_that_wait_for_a_block_keep_their_partners() -> None:
    block = {**NEAR, "block_size": 3, "block_interval_us": 10**9}
    slot = slot_of_points(control_record(0, "c", block))
    advance_slot(slot, [], [beat("x", 50), beat("y", 50)])
    assert advance_slot(slot, [point("x1", 100)], [beat("x", 3_000), beat("y", 3_000)]) == []
    assert advance_slot(slot, [], [Heartbeat(it, None, RESET, None) for it in "xy"]) == []
    # Older than x1's mark was, as older events may come again; they wait too.
    assert advance_slot(slot, [point("y1", 30)], [beat("x", 60), beat("y", 60)]) == []
    found = advance_slot(slot, [point("x2", 60, offset=1), point("y2", 105, offset=1)])
    assert found == [("x1", "y2", False)]
    assert DELAY < 10
