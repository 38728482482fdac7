"""`emit: best` and `emit: unmatched` against the oracle, for all blocks and restarts."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.engine.heartbeats import CLOSED, Heartbeat
from correlation.engine.program import Block, Outcome, Program
from correlation.errors import UnknownRecordVersionError
from tests.oracle.emit import rank_target
from tests.oracle.intervals import is_satisfied, probability
from tests.support.slots import (
    CONDITIONS,
    DELAY,
    PARTITIONS,
    Arrival,
    Slot,
    Verdicts,
    advance_slot,
    beat,
    control_record,
    draw_arrivals,
    draw_late_arrivals,
    judged_verdicts,
    judged_window,
    make_block,
    point,
    read_alarms,
    rivals_of,
    slot_of_points,
)

MODES = ("best", "unmatched")
CLOSING = Block(heartbeats=[Heartbeat(name, None, CLOSED, None) for name in "xy"])


def controls_of(names: set[str]) -> list[Any]:
    """Each condition twice: for the best B, and for A without one."""
    documents = [
        (f"{name}-{emit}", {**CONDITIONS[name], "emit": emit})
        for name in sorted(names)
        for emit in MODES
    ]
    return [control_record(n, name, document) for n, (name, document) in enumerate(documents)]


def read_verdicts(alarms: list[dict[str, Any]], name: str) -> Verdicts:
    """Read what both conditions reported, each A once at most."""
    mine = {emit: [a for a in alarms if a["condition"] == f"{name}-{emit}"] for emit in MODES}
    assert all(alarm["b"] is not None for alarm in mine["best"])
    assert all(alarm["b"] is None for alarm in mine["unmatched"])
    found = [*mine["best"], *mine["unmatched"]]
    assert max(Counter(alarm["a"]["id"] for alarm in found).values(), default=1) == 1
    return {alarm["a"]["id"]: alarm["b"] and alarm["b"]["id"] for alarm in found}


def sure_heartbeat(rng: random.Random, rest: list[Arrival]) -> Heartbeat:
    """Return the highest true watermark of a stream, or a slightly lower one."""
    name = rng.choice("xy")
    least = min((a.latest for a in rest if a.stream == name), default=200)
    return Heartbeat(name, None, least + DELAY - rng.choice([0, 0, 1, 7]), None)


@given(
    seed=st.integers(0, 2**32),
    count=st.integers(0, 70),
    restarts=st.booleans(),
    names=st.sets(st.sampled_from(sorted(CONDITIONS)), min_size=1, max_size=2)
    | st.just(set(CONDITIONS)),
)
def test_p_final_every_a_is_released_once_with_the_judges_verdict(
    seed: int, count: int, names: set[str], *, restarts: bool
) -> None:
    rng = random.Random(seed)  # noqa: S311 - a reproducible shuffle, no secret
    arrivals = draw_arrivals(rng, count)
    slot = Slot()
    alarms = read_alarms(slot.advance(make_block([], controls_of(names))))
    rest = list(arrivals)
    while rest:
        size = rng.randint(1, 12)
        # A block takes from each Kafka partition in order, not from all of them equally far.
        skipped = {(rng.choice("xy"), rng.randrange(PARTITIONS))} if rng.random() < 0.4 else set()
        taken = [a for a in rest if (a.stream, a.partition) not in skipped][:size]
        chosen = {a.id for a in taken}
        rest = [a for a in rest if a.id not in chosen]
        block = make_block(taken, [])
        beats = [sure_heartbeat(rng, rest)] if rng.random() < 0.4 else []
        alarms += read_alarms(slot.advance(replace(block, heartbeats=beats)))
        if restarts and rng.random() < 0.5:
            slot.restart()
    alarms += read_alarms(slot.advance(CLOSING))
    assert not any(alarm["late"] for alarm in alarms)
    by_id = {arrival.id: arrival for arrival in arrivals}
    for name in names:
        assert read_verdicts(alarms, name) == judged_verdicts(arrivals, CONDITIONS[name]), name
    for alarm in alarms:
        if alarm["b"] is not None:
            window = judged_window(CONDITIONS[alarm["condition"].removesuffix("-best")])
            a, b = (by_id[alarm[side]["id"]].interval for side in "ab")
            assert alarm["probability"] == pytest.approx(float(probability(a, b, window)), abs=1e-9)
    metrics = slot.advance(Block()).metrics
    assert all(v == 0 for name, _, v in metrics["gauges"] if name == "buffered_events")


@given(
    seed=st.integers(0, 2**32), count=st.integers(0, 80), name=st.sampled_from(sorted(CONDITIONS))
)
def test_late_events_change_nothing_that_was_said(seed: int, count: int, name: str) -> None:
    rng = random.Random(seed)  # noqa: S311 - a reproducible shuffle, no secret
    document, window = CONDITIONS[name], judged_window(CONDITIONS[name])
    rest = draw_late_arrivals(rng, count)
    slot = Slot()
    slot.rebuilds = False  # the mark `late` is checked
    slot.advance(make_block([], controls_of({name})))
    seen: list[Arrival] = []
    late: set[str] = set()
    said: Verdicts = {}
    while rest or not seen:
        size = rng.randint(1, 12)
        taken, rest = rest[:size], rest[size:]
        block = make_block(taken, [])
        outcome = slot.advance(block if rest else replace(block, heartbeats=CLOSING.heartbeats))
        slot.restart()
        seen += taken
        late |= {ident.decode() for events in outcome.late for ident in events.id.to_list()}
        alarms = read_alarms(outcome)
        found = read_verdicts(alarms, name)
        assert not found.keys() & said.keys()
        said |= found
        for alarm in alarms:
            ids = [alarm[side]["id"] for side in "ab" if alarm[side] is not None]
            assert alarm["late"] == any(ident in late for ident in ids)
        for a in [a for a in seen if a.id in found]:
            b = next((b for b in seen if b.id == found[a.id]), None)
            assert b is None or is_satisfied(a.interval, b.interval, window)
            if a.id not in late:
                # Events in time, now or later, are judged rightly; a late B only adds to them.
                best = min(
                    (
                        rank_target(a.interval, (rival.interval, rival.id.encode()), window)
                        for rival in rivals_of(a, [*seen, *rest], document)
                        if is_satisfied(a.interval, rival.interval, window)
                        and rival.id not in late
                        # Future events that will be late are not rivals either.
                        and (rival in seen or rival.latest >= mark(outcome, rival.stream))
                    ),
                    default=None,
                )
                if b is None:
                    assert best is None
                else:
                    mine = rank_target(a.interval, (b.interval, b.id.encode()), window)
                    assert mine == best or b.id in late
                    assert best is None or mine <= best
        if not rest:
            break
    assert said.keys() == {a.id for a in seen if a.stream == document["a"]}


def mark(outcome: Outcome, stream: str) -> int:
    found = outcome.metrics["watermarks"][stream]["watermark"]
    return -(10**9) if found is None else int(found)


# Points: a pair is satisfied if and only if its times lie within the window.
NEAR: dict[str, object] = {**CONDITIONS["near"], "window_us": 10}
AHEAD: dict[str, object] = {
    "kind": "within",
    "a": "x",
    "b": "y",
    "lower_us": 5,
    "upper_us": 20,
    "threshold": "1",
}


def slot_of(document: dict[str, object]) -> Slot:
    """Return a slot of points with one condition."""
    return slot_of_points(control_record(0, "c", document))


@pytest.mark.parametrize("emit", MODES)
def test_p_final_an_a_is_released_as_soon_as_no_b_can_come(emit: str) -> None:
    slot = slot_of({**NEAR, "emit": emit})
    here = [point("x1", 100), *([point("y1", 95)] if emit == "best" else [])]
    assert advance_slot(slot, here) == []
    # At the very end of the window a B may still come.
    assert advance_slot(slot, [], [beat("y", 110)]) == []
    expected = [("x1", "y1" if emit == "best" else None, False)]
    assert advance_slot(slot, [], [beat("y", 111)]) == expected
    assert advance_slot(slot, [], [beat("y", 300), beat("x", 300)]) == []


def test_p_final_the_b_that_waiting_events_need_are_kept() -> None:
    slot = slot_of({**NEAR, "emit": "best"})
    assert advance_slot(slot, [point("x1", 100), point("y1", 90)]) == []
    # A is far ahead: all that keeps y1 is x1, which waits for the watermark of y.
    assert advance_slot(slot, [], [beat("x", 1_000), beat("y", 110)]) == []
    assert advance_slot(slot, [], [beat("y", 111)]) == [("x1", "y1", False)]
    gauges = slot.advance(Block()).metrics["gauges"]
    assert all(value == 0 for name, _, value in gauges if name == "buffered_events")


@pytest.mark.parametrize("emit", MODES)
def test_p_final_an_a_of_a_slower_stream_is_released_when_it_comes(emit: str) -> None:
    slot = slot_of({**AHEAD, "emit": emit})
    assert advance_slot(slot, [point("y1", 20)], [beat("y", 500), beat("x", 0)]) == []
    slow = [point("x1", 0), point("x2", 1)]
    found = {"best": [("x1", "y1", False), ("x2", "y1", False)], "unmatched": []}
    assert advance_slot(slot, slow) == found[emit]
    lone = [point("x3", 300, offset=2)]
    assert advance_slot(slot, lone) == ([] if emit == "best" else [("x3", None, False)])


def test_late_a_is_released_at_once_with_what_is_there() -> None:
    for emit, expected in (("best", [("x2", "y1", True)]), ("unmatched", [("x3", None, True)])):
        slot = slot_of({**NEAR, "emit": emit})
        advance_slot(slot, [point("x1", 100), point("y1", 95)], [beat("x", 90), beat("y", 104)])
        # x2 still has its B; x3 is too old for any that is left.
        late = [point("x2", 86, offset=1), point("x3", 40, offset=2)]
        assert advance_slot(slot, late, [beat("y", 105)]) == expected


def test_late_b_counts_until_its_a_is_released() -> None:
    slot = slot_of({**NEAR, "emit": "best"})
    advance_slot(slot, [point("x1", 100)], [beat("y", 110)])
    late = [point("y1", 104), point("y2", 105, offset=1)]
    assert advance_slot(slot, late) == []
    assert advance_slot(slot, [point("y3", 100, offset=2)], [beat("y", 111)]) == [
        ("x1", "y3", True)
    ]
    assert advance_slot(slot, [point("y4", 100, offset=3)]) == []


def test_what_comes_after_a_stream_was_closed_is_late_and_released_at_once() -> None:
    slot = slot_of({**NEAR, "emit": "unmatched"})
    advance_slot(slot, [point("x1", 100), point("y1", 104)])
    assert advance_slot(slot, [], [Heartbeat("y", None, CLOSED, None)]) == []
    # A itself may go on, and is never held up.
    assert advance_slot(slot, [point("x2", 500, offset=1)]) == [("x2", None, False)]
    assert advance_slot(
        slot, [point("x3", 200, offset=2)], [Heartbeat("x", None, CLOSED, None)]
    ) == [("x3", None, False)]
    assert advance_slot(slot, [point("x4", 700, offset=3)]) == [("x4", None, True)]


@pytest.mark.parametrize(
    ("document", "best", "alone"),
    [
        # Each is the best of the other; a single event has no best.
        (CONDITIONS["self"], [("x1", "x2"), ("x2", "x3"), ("x3", "x2")], ["x9"]),
        # Each by itself as A: only what follows counts.
        (
            {**CONDITIONS["self_within"], "lower_us": 1},
            [("x1", "x2"), ("x2", "x3")],
            ["x3", "x9"],
        ),
    ],
)
def test_a_self_correlation_takes_each_event_as_a_against_all_others(
    document: dict[str, object], best: list[tuple[str, str]], alone: list[str]
) -> None:
    events = [point("x1", 10), point("x2", 20), point("x3", 25), point("x9", 80)]
    events = [replace(event, offset=n) for n, event in enumerate(events)]
    for split in range(len(events) + 1):
        for emit, expected in (
            ("best", [(*pair, False) for pair in best]),
            ("unmatched", [(name, None, False) for name in alone]),
        ):
            slot = slot_of({**document, "emit": emit})
            found = advance_slot(slot, events[:split]) + advance_slot(slot, events[split:])
            found += advance_slot(slot, [], CLOSING.heartbeats)
            assert sorted(found) == expected


def test_of_equally_probable_b_the_nearest_is_reported() -> None:
    for order in permutations(["y80", "y95", "y106", "y105a", "y105b"]):
        slot = slot_of({**NEAR, "window_us": 50, "emit": "best"})
        for offset, name in enumerate(order):
            time = int(name[1:].rstrip("ab"))
            advance_slot(slot, [point(name, time, offset=offset)])
        advance_slot(slot, [point("x1", 100)])
        # y105a is as near, and later.
        assert advance_slot(slot, [], CLOSING.heartbeats) == [("x1", "y95", False)]


def test_twins_of_a_best_b_are_told_apart_by_id_across_blocks() -> None:
    for names in permutations(["y1", "y2", "y3"]):
        slot = slot_of({**NEAR, "emit": "best"})
        for offset, name in enumerate(names):
            advance_slot(slot, [point(name, 103, offset=offset)])
        assert advance_slot(slot, [point("x1", 100)], CLOSING.heartbeats) == [("x1", "y1", False)]


def test_a_b_that_came_in_time_is_preferred_to_its_late_twin() -> None:
    slot = slot_of({**NEAR, "emit": "best"})
    advance_slot(slot, [point("y1", 103)], [beat("y", 104)])
    advance_slot(slot, [point("y1", 103, offset=1)])
    assert advance_slot(slot, [point("x1", 100)], CLOSING.heartbeats) == [("x1", "y1", False)]


@pytest.mark.parametrize("emit", MODES)
def test_totals_of_what_was_released(emit: str) -> None:
    slot = slot_of({**NEAR, "emit": emit})
    advance_slot(slot, [point("x1", 50), point("x2", 90, offset=1), point("y1", 95)])
    found = slot.advance(CLOSING).metrics
    counters = {name: value for name, labels, value in found["counters"] if "condition" in labels}
    assert counters["alarms_total"] == 1
    assert counters["pairs_total"] == (1 if emit == "best" else 0)
    assert counters["searches_total"] == 1
    # Recorded streams: wall time says nothing. Nor does it of records that came long before.
    assert not [1 for name, labels, _ in found["histograms"] if "condition" in labels]


def test_state_of_an_operator_is_part_of_the_manifest() -> None:
    slot = slot_of({**NEAR, "emit": "best"})
    advance_slot(slot, [], [beat("y", 50)])
    snapshot = slot.program.snapshot()
    assert snapshot.added == {}
    assert list(snapshot.manifest["operators"]) == ["c"]
    state = json.loads(bytes.fromhex(snapshot.manifest["operators"]["c"]))
    assert state["released_below"] == 50 - 10
    state["v"] = 3
    snapshot.manifest["operators"]["c"] = json.dumps(state).encode().hex()
    with pytest.raises(UnknownRecordVersionError, match="version 3"):
        Program.restore(snapshot.manifest, slot.blobs.__getitem__, slot.streams, slot.partitions)
