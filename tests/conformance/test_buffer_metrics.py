"""Metrics of the buffers: events that were deleted, and the condition that needs the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.conformance.test_event_query_changes import UNSATISFIABLE, alarm, control
from tests.support.query_slots import AlarmSlot
from tests.support.slots import control_record

if TYPE_CHECKING:
    from correlation.engine.blocks import Control

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
