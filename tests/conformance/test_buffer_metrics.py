"""Metrics of the buffers: events that were deleted, and the condition that needs the others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from correlation.engine.blocks import Control
from correlation.resources.records import Resource, stream_to_document
from tests.conformance.test_event_query_changes import UNSATISFIABLE, alarm, control
from tests.support.query_slots import AlarmSlot
from tests.support.slots import control_record

WITHIN = {"kind": "within", "a": "smoke", "b": "report", "lower_us": -30, "upper_us": 2}


def pairs(offset: int, name: str = "pairs", *, b: str = "report", paused: bool = False) -> Control:
    document = {**WITHIN, "b": b, "threshold": "1", "emit": "pairs"}
    return control_record(offset, name, document, offset + 1, paused=paused)


def keep_values(slot: AlarmSlot) -> dict[tuple[str, str], int]:
    """Return the keep values of the conditions by condition and stream, in µs."""
    return {
        (labels["condition"], labels["stream"]): round(value * 1e6)
        for name, labels, value in slot.last.metrics["gauges"]
        if name == "condition_keep_timestamp_seconds"
    }


def needed(slot: AlarmSlot) -> dict[tuple[str, str], int]:
    """Return the buffered events that the conditions need, by condition and stream."""
    return {
        (labels["condition"], labels["stream"]): value
        for name, labels, value in slot.last.metrics["gauges"]
        if name == "condition_buffered_events"
    }


def counted(slot: AlarmSlot) -> dict[tuple[str, str], int]:
    """Count the events in the buffers from each keep value on, one by one."""
    buffers = slot.program._buffers  # noqa: SLF001 - the events are not in any output
    return {
        (condition, stream): sum(
            time >= keep for _, it in buffers[stream].segments for time in it.latest.tolist()
        )
        for (condition, stream), keep in keep_values(slot).items()
    }


def buffer_keep_values(slot: AlarmSlot) -> dict[str, int]:
    return {
        labels["stream"]: round(value * 1e6)
        for name, labels, value in slot.last.metrics["gauges"]
        if name == "buffer_keep_timestamp_seconds"
    }


def totals(slot: AlarmSlot, counter: str) -> dict[str, int]:
    return {
        labels["stream"]: value
        for name, labels, value in slot.last.metrics["counters"]
        if name == counter
    }


def test_the_condition_with_the_earliest_keep_value_holds_the_buffer() -> None:
    slot = AlarmSlot(control(alarm(10)), control(alarm(500), 1, "wide"), pairs(2))
    slot.send(marks={"smoke": 1_000, "report": 1_000})
    found = keep_values(slot)
    assert found == {
        # Smoke of 989 waits for reports up to 999.
        ("q", "smoke"): 990,
        ("q", "report"): 990,
        ("wide", "smoke"): 500,
        ("wide", "report"): 500,
        ("pairs", "smoke"): 998,
        ("pairs", "report"): 970,
    }
    assert buffer_keep_values(slot) == {"smoke": 500, "report": 500}


def test_conditions_that_need_no_event_or_all_have_no_keep_value() -> None:
    slot = AlarmSlot(
        control(UNSATISFIABLE),
        control(alarm(10), 1, "paused", paused=True),
        pairs(2, "waits", b="door"),
        pairs(3),
    )
    assert keep_values(slot) == {}
    slot.send(marks={"smoke": 1_000, "report": 1_000})
    assert keep_values(slot).keys() == {("pairs", "smoke"), ("pairs", "report")}


# Times around the keep values of the query and of the pairs at the watermark 1,000.
SMOKE = (985, 989, 990, 995, 998, 1_000, 1_003)
REPORTS = (969, 970, 989, 990, 1_001)
BOTH = [("smoke", time, "x") for time in SMOKE] + [("report", time, "x") for time in REPORTS]
MARKS = {"smoke": 1_000, "report": 1_000}
OF_QUERY = {("q", "smoke"): 5, ("q", "report"): 2}
OF_PAIRS = {("pairs", "smoke"): 3, ("pairs", "report"): 4}


@pytest.mark.parametrize("keyed", [False, True])
def test_conditions_on_the_same_streams_need_different_numbers_of_events(keyed: bool) -> None:  # noqa: FBT001 - a case
    slot = AlarmSlot(control(alarm(10)), pairs(1), keyed=keyed)
    slot.send(*BOTH)
    # The watermarks are not known: all events are needed.
    assert needed(slot) == {
        (condition, stream): len(events)
        for condition in ("q", "pairs")
        for stream, events in (("smoke", SMOKE), ("report", REPORTS))
    }
    slot.send(marks=MARKS)
    # More than half of the events are needed, so those before the keep values are still buffered.
    assert slot.buffered() == {"smoke": len(SMOKE), "report": len(REPORTS)}
    # Restarts change nothing: restored from the state, and rebuilt from the log.
    for _ in range(3):
        assert needed(slot) == {**OF_QUERY, **OF_PAIRS} == counted(slot)
        slot.send()
    slot.send(marks=dict.fromkeys(MARKS, 1_004))
    # The query needs events from 994 on, the pairs smoke from 1,002 and reports from 974.
    expected = {("q", "smoke"): 4, ("q", "report"): 1}
    expected |= {("pairs", "smoke"): 1, ("pairs", "report"): 3}
    assert needed(slot) == expected == counted(slot)
    slot.send(marks=dict.fromkeys(MARKS, 2_000))
    assert needed(slot) == dict.fromkeys(expected, 0)


def test_a_paused_condition_needs_no_events_until_it_is_resumed() -> None:
    slot = AlarmSlot(control(alarm(10)), pairs(1))
    slot.send(*BOTH)
    slot.send(marks=MARKS)
    slot.send(controls=[pairs(2, paused=True)])
    assert needed(slot) == {**OF_QUERY, **dict.fromkeys(OF_PAIRS, 0)}
    slot.send(controls=[pairs(3)])
    # The reports before 990 were collected meanwhile.
    resumed = {("pairs", "smoke"): 3, ("pairs", "report"): 2}
    assert needed(slot) == {**OF_QUERY, **resumed} == counted(slot)
    slot.send(controls=[Control(4, b"condition/pairs", None)])
    assert needed(slot) == OF_QUERY


def test_a_condition_that_waits_for_a_stream_needs_all_events_or_none() -> None:
    slot = AlarmSlot(control(alarm(10)), pairs(1, "waits", b="door"))
    slot.send(*BOTH[: len(SMOKE)])
    assert needed(slot) == {("q", "smoke"): len(SMOKE), ("q", "report"): 0, ("waits", "smoke"): 0}
    door = Resource(
        "stream",
        "door",
        1,
        0,
        stream_to_document(replace(slot.streams["smoke"], name="door", topic="door")),
    )
    slot.send(controls=[Control(2, door.key, door.to_record())])
    slot.send(marks=MARKS)
    assert needed(slot) == {
        ("q", "smoke"): OF_QUERY["q", "smoke"],
        ("q", "report"): 0,
        ("waits", "smoke"): len(SMOKE),
    }


def test_a_condition_that_cannot_have_results_needs_no_events() -> None:
    slot = AlarmSlot(control(UNSATISFIABLE), control(alarm(10), 1, "other"))
    slot.send(*BOTH)
    slot.send(marks=MARKS)
    assert {it: count for it, count in needed(slot).items() if it[0] == "q"} == {
        ("q", "smoke"): 0,
        ("q", "report"): 0,
    }


def test_events_collected_for_a_condition_are_those_consumed_and_not_needed() -> None:
    slot = AlarmSlot(control(alarm(10)), pairs(1))
    sent: dict[str, list[int]] = {"smoke": [], "report": []}
    for mark in (100, 111, 120, 300):
        # The last two of each stream are late; those of 1 are not needed any more.
        events = [(it, mark + step) for it in sent for step in (0, 5, 9, -2, 1 - mark)]
        for stream, time in events:
            sent[stream].append(time)
        marks = dict.fromkeys(sent, mark)
        slot.send(*[(stream, time, "x") for stream, time in events], marks=marks)
        consumed, counts = totals(slot, "events_consumed_total"), needed(slot)
        for (condition, stream), keep in keep_values(slot).items():
            collected = consumed[stream] - counts[condition, stream]
            assert collected == sum(time < keep for time in sent[stream])


def test_events_are_buffered_or_collected() -> None:
    slot = AlarmSlot(control(alarm(10)), pairs(1))
    slot.send(*[("smoke", 100 + time, "x") for time in range(20)], ("report", 5, "x"))
    assert totals(slot, "events_collected_total") == {"smoke": 0, "report": 0}
    collected = []
    for mark in (105, 111, 120, 300):
        # The second report is late and not needed any more.
        slot.send(
            ("report", mark + 5, "y"),
            ("report", 1, "y"),
            marks=dict.fromkeys(("smoke", "report"), mark),
        )
        consumed = totals(slot, "events_consumed_total")
        found = totals(slot, "events_collected_total")
        buffered = slot.buffered()
        assert {name: found[name] + buffered[name] for name in found} == consumed
        collected.append(found["smoke"])
    assert collected == sorted(collected)
    assert (collected[0], collected[-1]) == (0, 20)
