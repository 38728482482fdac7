"""An event and its last possible partner: at the max satisfiable distance, and at the watermark.

An event at the keep value can still get a partner; an event one microsecond earlier cannot.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from correlation.engine.heartbeats import CLOSED, Heartbeat
from correlation.engine.program import Block
from correlation.timing.conditions import EMIT_CHOICES
from tests.oracle.intervals import is_satisfied
from tests.oracle.reach import extremes
from tests.support.slots import (
    CONDITIONS,
    LONGEST,
    Arrival,
    Slot,
    beat,
    control_record,
    judged_window,
    make_block,
    read_alarms,
)

# Farther apart than any pair of these conditions.
REACH = 60
WHEN = 1_000
# At least 2 * LONGEST wide: the max distance of a satisfied pair is that of the keep value.
WIDE = ("near", "tie", "sure", "by", "after")


def farthest_pair(document: dict[str, object], *, a_first: bool) -> tuple[Arrival, Arrival]:
    """Return A and B at the max (A first) or min distance at which they are satisfied."""
    window = judged_window(document)
    s = extremes(window, LONGEST, REACH)[a_first]
    lengths = range(LONGEST + 1)
    a, b = next(
        (a, b)
        for a in lengths
        for b in lengths
        if is_satisfied((WHEN - a, WHEN), (WHEN + s - b, WHEN + s), window)
    )
    return (
        Arrival(str(document["a"]), 0, "k", "A", WHEN - a, WHEN),
        Arrival(str(document["b"]), 0, "k", "B", WHEN + s - b, WHEN + s, offset=1),
    )


def started_slot(document: dict[str, object], emit: str) -> Slot:
    slot = Slot()
    slot.advance(make_block([], [control_record(0, "c", {**document, "emit": emit})]))
    return slot


def advance(slot: Slot, block: Block) -> list[dict[str, Any]]:
    """Advance and restart, as between two batches."""
    alarms = read_alarms(slot.advance(block))
    slot.restart()
    return alarms


def watermarks(document: dict[str, object], second: Arrival, at: int) -> Block:
    """Let the stream of the second event be known up to a time, the other one be closed."""
    other = next(str(document[role]) for role in "ab" if document[role] != second.stream)
    return Block(heartbeats=[beat(second.stream, at), Heartbeat(other, None, CLOSED, None)])


def test_farthest_pairs_touch_the_ends_of_their_window() -> None:
    """Assumption of the tests below: one microsecond more is too far, whatever the lengths."""
    for name in WIDE:
        window = judged_window(CONDITIONS[name])
        low, high = extremes(window, LONGEST, REACH)
        assert -REACH < low < high < REACH
        assert window[0] is None or window[1] is None or window[1] - window[0] >= 2 * LONGEST


@pytest.mark.parametrize("a_first", [True, False])
@pytest.mark.parametrize("emit", EMIT_CHOICES)
@pytest.mark.parametrize("name", CONDITIONS)
def test_p_keep_last_partner_at_the_watermark_is_met(
    name: str, emit: str, *, a_first: bool
) -> None:
    document = CONDITIONS[name]
    a, b = farthest_pair(document, a_first=a_first)
    first, second = (a, b) if a_first else (b, a)
    slot = started_slot(document, emit)
    if document["a"] == document["b"]:
        advance(slot, make_block([first], []))
        known = Block(heartbeats=[beat(second.stream, second.latest)])
    else:
        # Beside it one that is a microsecond nearer to being forgotten.
        nearer = replace(
            first, id="nearer", earliest=first.earliest - 1, latest=first.latest - 1, offset=9
        )
        advance(slot, make_block([first, nearer], []))
        known = watermarks(document, second, second.latest)
    alarms = advance(slot, known) + advance(slot, make_block([second], []))
    closed = [Heartbeat(stream, None, CLOSED, None) for stream in "xy"]
    alarms += advance(slot, Block(heartbeats=closed))
    found = {(alarm["a"]["id"], alarm["b"] and alarm["b"]["id"]) for alarm in alarms}
    assert not any(alarm["late"] for alarm in alarms)
    if emit == "unmatched":
        assert ("A", None) not in found
    elif emit == "best":
        assert ("A", "B") in found
    else:
        # Of the two orders of a self-correlation one is reported.
        assert {frozenset(pair) for pair in found} == {frozenset("AB")}


@pytest.mark.parametrize("a_first", [True, False])
@pytest.mark.parametrize("emit", EMIT_CHOICES)
@pytest.mark.parametrize("name", WIDE)
def test_p_keep_event_is_forgotten_when_no_partner_can_come(
    name: str, emit: str, *, a_first: bool
) -> None:
    document = CONDITIONS[name]
    a, b = farthest_pair(document, a_first=a_first)
    first, second = (a, b) if a_first else (b, a)
    slot = started_slot(document, emit)
    advance(slot, make_block([first], []))
    for later, kept in ((0, 1), (1, 0)):
        metrics = slot.advance(watermarks(document, second, second.latest + later)).metrics
        slot.restart()
        held = {
            labels["stream"]: value
            for gauge, labels, value in metrics["gauges"]
            if gauge == "buffered_events"
        }
        assert held[first.stream] == kept


@pytest.mark.parametrize("name", WIDE)
def test_p_final_best_is_reported_once_and_not_at_the_watermark_of_its_last_rival(
    name: str,
) -> None:
    document = CONDITIONS[name]
    a, b = farthest_pair(document, a_first=True)
    nearer = replace(a, id="nearer", earliest=a.earliest - 1, latest=a.latest - 1, offset=9)
    slot = started_slot(document, "best")
    advance(slot, make_block([a, nearer, b], []))
    found = []
    for later in (0, 1, 2):
        alarms = advance(slot, watermarks(document, b, b.latest + later))
        found.append([alarm["b"]["id"] for alarm in alarms if alarm["a"]["id"] == "A"])
    assert found == [[], ["B"], []]
