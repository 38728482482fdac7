"""Conditions that change while events arrive take effect from their config offset."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.engine.heartbeats import CLOSED, Heartbeat
from correlation.engine.program import Block, Control
from tests.oracle.emit import best_target
from tests.oracle.intervals import is_satisfied
from tests.oracle.reach import extremes
from tests.support.slots import (
    CONDITIONS,
    LONGEST,
    PARTITIONS,
    Arrival,
    Slot,
    advance_slot,
    beat,
    control_record,
    draw_arrivals,
    judged_window,
    make_block,
    point,
    read_alarms,
    slot_of_points,
)

CLOSING = [Heartbeat(name, None, CLOSED, None) for name in "xy"]
# Of two streams; all that satisfies one of them lies no farther apart than REACH.
POOL = [CONDITIONS[name] for name in ("near", "tie", "narrow", "sure", "by", "after")]
REACH = 60
UNKNOWN = -(10**9)


@dataclass
class Step:
    """A block of a run: what it brought, and what was in force."""

    arrivals: list[Arrival]
    alarms: list[dict[str, Any]]
    marks: dict[str, int]
    version: int
    document: dict[str, object] | None


def run(
    rng: random.Random, arrivals: list[Arrival], changes: list[dict[str, object] | None]
) -> list[Step]:
    """Cut arrivals into blocks, change the condition on the way, restart anywhere; close at last.

    A change is the next document, or None to pause the one in force.
    """
    slot, rest = Slot(), list(arrivals)
    steps: list[Step] = []
    version, document = 0, None
    cuts = sorted(rng.randint(0, len(arrivals)) for _ in changes[1:])
    places = [0, *cuts]
    offset = 0
    while rest or not steps or steps[-1].marks["x"] < CLOSED:
        controls: list[Control] = []
        while places and places[0] <= len(arrivals) - len(rest):
            places.pop(0)
            change = changes[offset]
            if change is not None:
                version, document = version + 1, change
                controls.append(control_record(offset, "c", change, version))
            elif document is not None:
                controls.append(control_record(offset, "c", document, version, paused=True))
                document = None
            offset += 1
        skipped = {(rng.choice("xy"), rng.randrange(PARTITIONS))} if rng.random() < 0.4 else set()
        free = [a for a in rest if (a.stream, a.partition) not in skipped]
        taken = free[: rng.randint(1, 12)]
        chosen = {a.id for a in taken}
        rest = [a for a in rest if a.id not in chosen]
        block = make_block(taken, controls)
        beats = CLOSING if not rest else []
        outcome = slot.advance(replace(block, heartbeats=beats))
        if rng.random() < 0.5:
            slot.restart()
        marks = {
            name: UNKNOWN if found["watermark"] is None else found["watermark"]
            for name, found in outcome.metrics["watermarks"].items()
        }
        steps.append(Step(taken, read_alarms(outcome), marks, version, document))
    return steps


def needed_from(step: Step, stream: str) -> float:
    """Keep value of a stream after a block, by trying: events before it need not be there."""
    if step.document is None:
        return float("inf")
    min_s, max_s = extremes(judged_window(step.document), LONGEST, REACH)
    a, b = str(step.document["a"]), str(step.document["b"])
    return step.marks[b] - max_s if stream == a else step.marks[a] + min_s


@given(seed=st.integers(0, 2**32), count=st.integers(0, 60))
def test_changed_conditions_report_all_pairs_that_are_completed_later(
    seed: int, count: int
) -> None:
    rng = random.Random(seed)  # noqa: S311 - a reproducible shuffle, no secret
    changes = [rng.choice([*POOL, None]) for _ in range(rng.randint(1, 4))]
    steps = run(rng, draw_arrivals(rng, count), changes)
    came = {a.id: (place, a) for place, step in enumerate(steps) for a in step.arrivals}
    for place, step in enumerate(steps):
        assert all(alarm["version"] == step.version for alarm in step.alarms)
        pairs = [(alarm["a"]["id"], alarm["b"]["id"]) for alarm in step.alarms]
        assert len(set(pairs)) == len(pairs)
        satisfied, certain = set(), set()
        for first, one in came.values():
            for second, other in came.values():
                if step.document is None or max(first, second) != place or one.key != other.key:
                    continue
                if (one.stream, other.stream) != (step.document["a"], step.document["b"]):
                    continue
                if is_satisfied(one.interval, other.interval, judged_window(step.document)):
                    satisfied.add((one.id, other.id))
                    begin, old = min((first, one), (second, other), key=lambda it: it[0])
                    if all(old.latest >= needed_from(it, old.stream) for it in steps[begin:place]):
                        certain.add((one.id, other.id))
        # Pairs of events that buffers may have dropped are optional.
        assert certain <= set(pairs) <= satisfied


NESTED: list[dict[str, object]] = [
    {"kind": "within", "a": "x", "b": "y", "lower_us": -lo, "upper_us": hi, "threshold": ct}
    for lo, hi, ct in ((30, 25, "0.2"), (25, 25, "0.3"), (14, 20, "0.5"), (2, 9, "0.5"))
] + [{"kind": "within", "a": "x", "b": "y", "lower_us": 0, "upper_us": 9, "threshold": "0.8"}]


@given(seed=st.integers(0, 2**32), count=st.integers(0, 60))
def test_p_final_every_a_is_released_once_by_the_version_in_force(seed: int, count: int) -> None:
    """Windows only become narrower, so that the buffers hold all that is needed."""
    rng = random.Random(seed)  # noqa: S311 - a reproducible shuffle, no secret
    number = rng.randint(1, 4)
    chosen = sorted(rng.randrange(len(NESTED)) for _ in range(number))
    changes = [{**NESTED[n], "emit": rng.choice(["best", "unmatched"])} for n in chosen]
    arrivals = draw_arrivals(rng, count)
    steps = run(rng, arrivals, list(changes))
    released: float = -float("inf")
    waiting: list[Arrival] = []
    for step in steps:
        assert step.document is not None
        window = judged_window(step.document)
        final_below = step.marks["y"] - extremes(window, LONGEST, REACH)[1]
        released = max(released, final_below)
        waiting += [a for a in step.arrivals if a.stream == "x"]
        due = [a for a in waiting if a.latest < released]
        waiting = [a for a in waiting if a.latest >= released]
        expected = {}
        for a in due:
            rivals = [b for b in arrivals if b.stream == "y" and b.key == a.key]
            best = best_target(a.interval, [(b.interval, b.id.encode()) for b in rivals], window)
            if (best is None) == (step.document["emit"] == "unmatched"):
                expected[a.id] = None if best is None else rivals[best].id
        found = {alarm["a"]["id"]: alarm["b"] and alarm["b"]["id"] for alarm in step.alarms}
        assert len(found) == len(step.alarms)
        assert found == expected
        assert all(alarm["version"] == step.version for alarm in step.alarms)
    assert waiting == []


@given(seed=st.integers(0, 2**32), count=st.integers(0, 60))
def test_p_final_no_change_makes_an_a_seem_unmatched(seed: int, count: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - a reproducible shuffle, no secret
    emits = ("best", "unmatched", "unmatched", "pairs")
    changes = [
        rng.choice([None, *({**document, "emit": rng.choice(emits)} for document in POOL)])
        for _ in range(rng.randint(1, 5))
    ]
    arrivals = draw_arrivals(rng, count)
    by_id = {arrival.id: arrival for arrival in arrivals}
    # While either mode is in force, for the same A, an A is released once, whatever else changes.
    said: Counter[tuple[str, int]] = Counter()
    era, before = 0, None
    for step in run(rng, arrivals, changes):
        judges = step.document is not None and step.document["emit"] != "pairs"
        mode = step.document["a"] if judges and step.document is not None else None
        era, before = era + (mode != before), mode
        for alarm in step.alarms:
            assert step.document is not None
            window = judged_window(step.document)
            a = by_id[alarm["a"]["id"]]
            if alarm["b"] is None:
                rivals = [b for b in arrivals if b.stream == step.document["b"] and b.key == a.key]
                assert not any(is_satisfied(a.interval, b.interval, window) for b in rivals)
            else:
                assert is_satisfied(a.interval, by_id[alarm["b"]["id"]].interval, window)
            if judges:
                said[a.id, era] += 1
    assert max(said.values(), default=1) == 1


# Points: a pair is satisfied if and only if y comes `lower` to `upper` after x.
def within(lower: int, upper: int, emit: str = "pairs", **more: object) -> dict[str, object]:
    ends = {"lower_us": lower, "upper_us": upper}
    return {"kind": "within", "a": "x", "b": "y", **ends, "threshold": "1", "emit": emit, **more}


def change(offset: int, document: dict[str, object], name: str = "c") -> Control:
    return control_record(offset, name, document, offset + 1)


def test_a_narrower_window_lets_go_and_a_wider_one_finds_what_is_left() -> None:
    slot = slot_of_points(change(0, within(-50, 50)))
    advance_slot(slot, [point("y1", 100), point("y2", 140, 1)], [beat("x", 140)])
    assert buffered(slot) == {"x": 0, "y": 2}
    advance_slot(slot, controls=[change(1, within(-10, 10))])
    # y1 is too far back for any x to come, now that the window is narrow.
    assert buffered(slot) == {"x": 0, "y": 1}
    advance_slot(slot, controls=[change(2, within(-50, 50))])
    assert advance_slot(slot, [point("x1", 141)]) == [("x1", "y2", False)]
    # And from now on more is kept again.
    advance_slot(slot, [point("y3", 160, 2)], [beat("x", 200)])
    assert advance_slot(slot, [point("x2", 205, 1)]) == [("x2", "y3", False)]


def buffered(slot: Slot) -> dict[str, int]:
    gauges = slot.advance(Block()).metrics["gauges"]
    return {it["stream"]: value for name, it, value in gauges if name == "buffered_events"}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (within(-10, 10), [("x2", "y1"), ("x2", "y2")]),
        (within(1, 10), [("x2", "y2")]),
        ({**CONDITIONS["near"], "window_us": 3}, [("x2", "y2")]),
        ({**CONDITIONS["by"], "deadline_us": -1, "horizon_us": 9}, [("x2", "y1")]),
        ({**CONDITIONS["after"], "delay_us": 2, "horizon_us": 9}, [("x2", "y2")]),
        ({**CONDITIONS["near"], "a": "y", "b": "x", "window_us": 3}, [("y2", "x2")]),
        ({**CONDITIONS["self"], "window_us": 6}, [("x1", "x2")]),
        (within(-10, 10, "best"), [("x1", "y1"), ("x2", "y2")]),
        (within(4, 9, "unmatched"), [("x2", None)]),
    ],
)
def test_another_predicate_holds_from_its_offset_on_for_what_is_buffered(
    document: dict[str, object], expected: list[tuple[str, str | None]]
) -> None:
    slot = slot_of_points(change(0, within(-30, 30)))
    before = [point("x1", 95), point("y1", 95), point("y2", 102, 1)]
    assert len(advance_slot(slot, before)) == 2
    block = make_block([point("x2", 100, 1)], [change(1, document)])
    alarms = read_alarms(slot.advance(block))
    slot.restart()
    alarms += read_alarms(slot.advance(Block(heartbeats=CLOSING)))
    found = [(alarm["a"]["id"], alarm["b"] and alarm["b"]["id"]) for alarm in alarms]
    assert sorted(found) == expected
    assert {alarm["version"] for alarm in alarms} == {2}
    assert {alarm["kind"] for alarm in alarms} == {document["kind"]}


@pytest.mark.parametrize("threshold", ["0.5", "0.75"])
def test_another_threshold_holds_from_its_offset_on(threshold: str) -> None:
    slot = Slot()
    document = {**CONDITIONS["near"], "window_us": 10, "threshold": "0.5"}
    slot.advance(make_block([], [change(0, document)]))
    # Within 10 of 100 with probability 0.5, as its A.
    tie = [Arrival("x", 0, "k", "x1", 100, 100), Arrival("y", 0, "k", "y1", 106, 114)]
    assert len(read_alarms(slot.advance(make_block(tie, [])))) == 1
    again = make_block(
        [replace(tie[0], id="x2", offset=1)], [change(1, {**document, "threshold": threshold})]
    )
    alarms = read_alarms(slot.advance(again))
    expected = [(2, 0.5)] if threshold == "0.5" else []
    assert [(alarm["version"], alarm["threshold"]) for alarm in alarms] == expected


def test_a_new_condition_judges_what_becomes_final_from_then_on() -> None:
    slot = slot_of_points(change(0, within(-100, 100, "best"), "keeper"))
    come = [point("x1", 100), point("x2", 130, 1), point("y1", 105)]
    advance_slot(slot, come, [beat("x", 100), beat("y", 115)])
    best, unmatched = (
        change(n, within(0, 10, emit), emit) for n, emit in ((1, "best"), (2, "unmatched"))
    )
    # x1 was final before the conditions came; x2 becomes final under them, though it came before.
    block = make_block([point("y2", 131, 1), point("x3", 150, 2)], [best, unmatched])
    found = read_alarms(slot.advance(replace(block, heartbeats=[beat("y", 200)])))
    names = [(alarm["condition"], alarm["a"]["id"]) for alarm in found]
    assert names == [("best", "x2"), ("unmatched", "x3")]


def test_p_final_nothing_is_said_of_an_a_whose_b_may_have_gone_before() -> None:
    slot = slot_of_points()
    # Nothing keeps them: the condition comes later.
    advance_slot(slot, [point("y1", 100)])
    advance_slot(slot, controls=[change(0, within(-10, 10, "unmatched"))])
    come = [point("x1", 105), point("x2", 110, 1), point("x3", 111, 2), point("x4", 300, 3)]
    found = advance_slot(slot, come, [beat("y", 1_000)])
    # x1 and x2 may have met y1, or others as old; x3 not.
    assert found == [("x3", None, False), ("x4", None, False)]


def test_p_final_nothing_is_said_where_only_a_wider_window_reaches() -> None:
    for emit, expected in (("unmatched", ["x3"]), ("best", [])):
        slot = slot_of_points(change(0, within(-10, 10, "unmatched")))
        come = [point("y1", 60), point("y2", 200, 1)]
        advance_slot(slot, come, [beat("x", 90), beat("y", 100)])
        # Kept from min(90, 100 - 10) - 10 = 80 on: y1 is gone, and x1 might have been its A.
        advance_slot(slot, controls=[change(1, within(-40, 10, emit))])
        come = [point("x1", 95), point("x2", 119, 1), point("x3", 120, 2)]
        found = advance_slot(slot, come, [beat("y", 500)])
        assert [a for a, _, _ in found] == expected
        # A narrower one needs no more than is there.
        advance_slot(slot, controls=[change(2, within(-5, 10, "unmatched"))])
        assert advance_slot(slot, [point("x4", 121, 3)]) == [("x4", None, False)]


def test_p_final_a_wider_window_releases_nothing_again() -> None:
    for emit, first, second in (
        ("best", [("x1", "y1", False)], [("x3", "y1", False)]),
        ("unmatched", [("x2", None, False)], []),
    ):
        keeper = change(0, within(-100, 100), "keeper")
        slot = slot_of_points(keeper, change(1, within(-10, 10, emit)))
        come = [point("x1", 100), point("y1", 105), replace(point("x2", 100, 1), key="q")]
        advance_slot(slot, come, [beat("y", 109)])
        assert advance_slot(slot, [], [beat("y", 111)]) == first
        # x1 and x2 are not final under the wider window; they were released all the same. So is
        # what comes now of that time, at once: what is there is the best that is known, and no
        # proof that it does not exist.
        come = [point("x3", 99, 2), replace(point("x4", 99, 3), key="q")]
        wider = change(2, within(-10, 50, emit))
        assert advance_slot(slot, come, [], [wider]) == second
        assert advance_slot(slot, [], CLOSING) == []


def test_p_final_a_longer_stream_releases_nothing_again() -> None:
    slot = slot_of_points(change(0, within(-10, 10, "best")))
    advance_slot(slot, [point("x1", 100), point("y1", 105)], [beat("x", 0), beat("y", 110)])
    assert advance_slot(slot, [], [beat("y", 111)]) == [("x1", "y1", False)]
    slot.streams["y"] = replace(slot.streams["y"], max_uncertainty_us=LONGEST)
    slot.restart()
    late = Arrival("y", 0, "k", "y2", 111, 111 + LONGEST, 1)
    assert advance_slot(slot, [point("x2", 100, 1), late]) == [("x2", "y1", False)]
    assert advance_slot(slot, [], CLOSING) == []


def test_a_paused_condition_judges_nothing_that_became_final_meanwhile() -> None:
    keeper = change(0, within(-100, 100), "keeper")
    document = within(-10, 10, "unmatched")
    slot = slot_of_points(keeper, change(1, document))
    advance_slot(slot, [point("x1", 100), point("x2", 200, 1)], [beat("y", 50), beat("x", 50)])
    paused = control_record(2, "c", document, 2, paused=True)
    assert advance_slot(slot, [], [beat("y", 150)], [paused]) == []
    assert advance_slot(slot, [], [beat("y", 151)], [change(3, document)]) == []
    assert advance_slot(slot, [], CLOSING) == [("x2", None, False)]


def test_pairs_that_become_best_report_what_is_not_final_yet() -> None:
    slot = slot_of_points(change(0, within(-10, 10)))
    come = [point("x1", 100), point("y1", 105), point("x2", 130, 1), point("y2", 131, 1)]
    pairs = [("x1", "y1", False), ("x2", "y2", False)]
    assert advance_slot(slot, come, [beat("x", 90), beat("y", 115)]) == pairs
    assert advance_slot(slot, controls=[change(1, within(-10, 10, "best"))]) == []
    assert advance_slot(slot, [], CLOSING) == [("x2", "y2", False)]
