"""Blocks of a set size yield the same pairs, later, for all micro-batches and restarts."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.engine.heartbeats import CLOSED, Heartbeat
from correlation.engine.program import Block, Control, Outcome
from correlation.errors import InvalidFieldError
from correlation.kinds import condition_from_document
from correlation.timing.block_operator import cut_blocks
from tests.support.slots import (
    CONDITIONS,
    Arrival,
    Slot,
    control_record,
    draw_arrivals,
    judged_pairs,
    make_block,
    read_alarms,
)

CLOSING = Block(heartbeats=[Heartbeat(name, None, CLOSED, None) for name in "xy"])


def _control(offset: int, name: str, version: int = 1, **more: object) -> Control:
    return control_record(offset, name, CONDITIONS[name] | more, version)


def _pairs(outcomes: list[Outcome], name: str) -> list[tuple[str, str]]:
    alarms = [alarm for outcome in outcomes for alarm in read_alarms(outcome)]
    return [(alarm["a"]["id"], alarm["b"]["id"]) for alarm in alarms if alarm["condition"] == name]


def _event(stream: str, number: int, latest: int = 0, record_timestamp_us: int = 0) -> Block:
    block = make_block([Arrival(stream, 0, "k", f"{stream}{number}", latest, latest, number)], [])
    stamped = replace(
        block.events[0], record_timestamp_us=np.array([record_timestamp_us], np.int64)
    )
    return replace(block, events=[stamped])


@given(
    seed=st.integers(0, 2**32),
    count=st.integers(0, 60),
    sizes=st.dictionaries(
        st.sampled_from(sorted(CONDITIONS)),
        st.none() | st.integers(1, 40),
        min_size=1,
        max_size=3,
    ),
    interval=st.sampled_from([0, 3, 20, 1_000]),
)
def test_p_blocks_every_pair_is_reported_once(
    seed: int, count: int, sizes: dict[str, int | None], interval: int
) -> None:
    rng = random.Random(seed)  # noqa: S311 - a reproducible shuffle, no secret
    arrivals = draw_arrivals(rng, count)
    slot = Slot()
    controls = [
        _control(
            offset, name, **({"block_size": size, "block_interval_us": interval} if size else {})
        )
        for offset, (name, size) in enumerate(sizes.items())
    ]
    outcomes = [slot.advance(make_block([], controls))]
    rest = list(arrivals)
    while rest:
        size = rng.randint(1, 12)
        taken, rest = rest[:size], rest[size:]
        outcomes.append(slot.advance(replace(make_block(taken, []), flush=rng.random() < 0.1)))
        if rng.random() < 0.3:
            slot.restart()
    outcomes.append(slot.advance(CLOSING))
    for name in sizes:
        found = _pairs(outcomes, name)
        assert len(set(found)) == len(found)
        assert set(found) == judged_pairs(arrivals, CONDITIONS[name]), name


def test_block_is_due_when_it_is_full() -> None:
    slot = Slot()
    slot.advance(make_block([], [_control(0, "near", block_size=3)]))
    outcomes = [slot.advance(_event(stream, i)) for i, stream in enumerate("xyxyx")]
    # Two wait, the third completes the block; then it begins again.
    assert [len(_pairs([outcome], "near")) for outcome in outcomes] == [0, 0, 2, 0, 0]
    assert len(_pairs([slot.advance(_event("y", 9))], "near")) == 9 - 2


def test_block_is_due_when_no_event_may_wait() -> None:
    slot = Slot()
    slot.advance(make_block([], [_control(0, "near", block_size=100, block_interval_us=900)]))
    slot.advance(_event("x", 0))
    assert slot.program.publish().position["held_by"] == ["near"]
    last = replace(_event("y", 0), flush=True)
    assert _pairs([slot.advance(last)], "near") == [("x0", "y0")]
    position = slot.program.publish().position
    assert (position["held_by"], position["operators"]) == ([], {})
    # Blocks begin again, also after one that could have been due without events.
    assert not read_alarms(slot.advance(Block(flush=True)))
    assert not _pairs([slot.advance(_event("x", 1))], "near")
    assert _pairs([slot.advance(Block(flush=True))], "near") == [("x1", "y0")]


def test_block_is_due_when_its_first_event_has_waited_long_enough() -> None:
    slot = Slot()
    control = _control(0, "near", block_size=100, block_interval_us=50)
    slot.advance(make_block([], [control]))
    assert not _pairs([slot.advance(_event("x", 0, 0, 1_000))], "near")
    assert not _pairs([slot.advance(_event("y", 0, 0, 1_049))], "near")
    slot.restart()
    # A heartbeat of a live stream tells that it is late enough, though no event comes.
    slot.streams["x"] = replace(slot.streams["x"], clock="live", max_skew_us=10)
    slot.restart()
    heartbeat = Heartbeat("x", 0, 1_040, None)
    assert _pairs([slot.advance(Block(heartbeats=[heartbeat]))], "near") == [("x0", "y0")]
    assert not _pairs([slot.advance(Block(heartbeats=[heartbeat]))], "near")


def test_what_waits_comes_out_when_a_closing_heartbeat_that_came_first_holds() -> None:
    slot = Slot()
    slot.advance(make_block([], [_control(0, "near", block_size=100, block_interval_us=10**6)]))
    slot.advance(Block(heartbeats=[Heartbeat("y", 0, CLOSED, 1)]))
    assert not _pairs([slot.advance(_event("x", 0))], "near")
    slot.restart()
    # Up to here the heartbeat had not come true.
    assert _pairs([slot.advance(_event("y", 0))], "near") == [("x0", "y0")]


def test_larger_micro_batch_is_cut_by_the_order_of_arrival() -> None:
    stamps = {"y": np.array([5, 0, 3]), "x": np.array([1, 9, 2, 3])}
    parts = list(cut_blocks(stamps, 3))
    found = [{name: rows.tolist() for name, rows in part.items()} for part in parts]
    assert found == [{"x": [0, 2], "y": [1]}, {"x": [3], "y": [0, 2]}, {"x": [1]}]


def _pass(slot: Slot, until_us: int) -> Outcome:
    """Let time pass: both streams are known to have come so far."""
    return slot.advance(Block(heartbeats=[Heartbeat(it, None, until_us, None) for it in "xy"]))


def _waiting_slot() -> Slot:
    """Make a slot in which a block of two events has been evaluated, and y0 is one of them."""
    slot = Slot()
    slot.advance(make_block([], [_control(0, "near", block_size=2, block_interval_us=10**6)]))
    slot.advance(_event("y", 0))
    slot.advance(_event("y", 1, latest=1))
    return slot


def test_what_waits_keeps_its_partners() -> None:
    slot = _waiting_slot()
    slot.advance(_event("x", 0))
    slot.restart()
    # By now no further x can meet y0; the one that waits has not done so yet.
    _pass(slot, 500)
    (first, second) = read_alarms(slot.advance(CLOSING))
    assert (first["a"]["id"], first["b"]["id"], second["b"]["id"]) == ("x0", "y0", "y1")


def test_late_events_wait_like_all_others() -> None:
    slot = _waiting_slot()
    _pass(slot, 500)
    late = slot.advance(_event("x", 0))
    assert [len(part) for part in late.late] == [1]
    _pass(slot, 900)
    slot.restart()
    (alarm,) = read_alarms(slot.advance(_event("y", 2)))
    assert (alarm["a"]["id"], alarm["b"]["id"], alarm["late"]) == ("x0", "y2", True)


def test_wrong_clock_makes_a_block_due_and_stops_none() -> None:
    slot = Slot()
    slot.advance(make_block([], [_control(0, "near", block_size=100, block_interval_us=50)]))
    # x0 was stamped in the far future; y0 tells that one of both clocks is wrong.
    slot.advance(_event("x", 0, record_timestamp_us=10**12))
    slot.restart()
    assert len(read_alarms(slot.advance(_event("y", 0, record_timestamp_us=1_000)))) == 1
    # All goes on by the right ones.
    assert not read_alarms(slot.advance(_event("y", 1, record_timestamp_us=1_010)))
    # A little back is nothing: one partition is read before another.
    assert not read_alarms(slot.advance(_event("y", 2, record_timestamp_us=1_000)))
    assert len(read_alarms(slot.advance(_event("y", 3, record_timestamp_us=1_060)))) == 3


@pytest.mark.parametrize(
    "heartbeat",
    [
        Heartbeat("nobody", None, 10**12, None),
        Heartbeat("nobody", None, CLOSED, None),
        # The times of recorded data say nothing of now.
        Heartbeat("y", 0, 10**12, None),
        Heartbeat("z", None, CLOSED, None),
    ],
)
def test_heartbeats_of_others_end_no_block(heartbeat: Heartbeat) -> None:
    slot = Slot()
    slot.streams["x"] = replace(slot.streams["x"], clock="live")
    slot.streams["z"] = replace(slot.streams["x"], name="z", topic="z")
    slot.partitions["z"] = 1
    slot.restart()
    slot.advance(make_block([], [_control(0, "near", block_size=3, block_interval_us=50)]))
    slot.advance(_event("x", 0, record_timestamp_us=1_000))
    assert not read_alarms(slot.advance(Block(heartbeats=[heartbeat])))
    assert not read_alarms(slot.advance(_event("y", 0, record_timestamp_us=1_010)))
    assert len(read_alarms(slot.advance(_event("y", 1, record_timestamp_us=1_020)))) == 2


def test_block_is_due_when_it_lies_in_many_pieces() -> None:
    slot = Slot()
    slot.advance(make_block([], [_control(0, "near", block_size=10**6, block_interval_us=10**9)]))
    slot.advance(_event("y", 0))
    found = [len(read_alarms(slot.advance(_event("x", number)))) for number in range(65)]
    assert found == [0] * 64 + [65]


def test_what_waits_is_evaluated_by_the_version_in_force_when_the_block_is_due() -> None:
    """Also by one without blocks, or with another threshold."""
    slot = Slot()
    slot.advance(make_block([], [_control(0, "near", block_size=100, block_interval_us=900)]))
    slot.advance(_event("x", 0))
    slot.restart()
    slot.advance(_event("y", 0))
    change = make_block([], [_control(1, "near", version=2, threshold="0.5")])
    (alarm,) = read_alarms(slot.advance(change))
    assert (alarm["a"]["id"], alarm["b"]["id"], alarm["version"]) == ("x0", "y0", 2)
    assert not read_alarms(slot.advance(CLOSING))


def test_what_waits_is_left_to_those_that_judge_each_a() -> None:
    slot = Slot()
    slot.advance(make_block([], [_control(0, "near", block_size=100, block_interval_us=900)]))
    slot.advance(_event("x", 0))
    slot.advance(_event("y", 0))
    slot.advance(make_block([], [_control(1, "near", version=2, emit="best")]))
    (alarm,) = read_alarms(slot.advance(CLOSING))
    assert (alarm["a"]["id"], alarm["b"]["id"], alarm["version"]) == ("x0", "y0", 2)


@pytest.mark.parametrize(
    ("changes", "field", "remedy"),
    [
        ({"block_size": 0}, "block_size", "use 1 to 1000000"),
        ({"block_size": 10**7}, "block_size", "use 1 to 1000000"),
        ({"block_size": 9, "block_interval_us": -1}, "block_interval", 'write "1us" or "0s"'),
        ({"block_size": 9, "block_interval_us": 10**11}, "block_interval", "use at most 1h"),
        ({"block_size": 9, "emit": "best"}, "block_size", "remove block_size, or use emit pairs"),
        ({"block_interval_us": 5}, "block_interval", "set block_size, or remove block_interval"),
    ],
)
def test_blocks_that_cannot_be_are_refused(
    changes: dict[str, object], field: str, remedy: str
) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        condition_from_document("near", 1, CONDITIONS["near"] | changes)
    assert (caught.value.field, caught.value.remedy) == (field, remedy)
