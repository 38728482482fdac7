"""Explanations of pairs of conditions with filters, and plans of such conditions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.condition_kind import Load
from correlation.explaining import GivenRecord
from correlation.kinds import KINDS, condition_from_document
from correlation.resources.streams import Stream
from tests.support.filters import DECLARED, draw_where, events
from tests.support.messages import assert_names
from tests.support.slots import (
    CONDITIONS,
    Arrival,
    Slot,
    control_record,
    judged_pairs,
    make_block,
    read_alarms,
)

STREAMS = {
    name: Stream(name, name, 12, 9, clock="replay", attributes=DECLARED) for name in ("x", "y")
}
WHERE = {"a": {"severity": {"min": 3}}, "b": {"rule": ["A", "B"]}}


def explain(
    document: dict[str, Any], a: dict[str, Any], b: dict[str, Any], times: tuple[int, int] = (5, 5)
) -> dict[str, Any]:
    condition = condition_from_document("c", 1, document)
    given_records = {
        role: GivenRecord(
            {"id": role, "key": "k", "earliest": time, "latest": time, **attributes}, form="record"
        )
        for role, attributes, time in (("a", a, times[0]), ("b", b, times[1]))
    }
    return KINDS[condition.kind].explain(condition, STREAMS, given_records)


@pytest.mark.parametrize(
    ("a", "b", "step", "explanation"),
    [
        (
            {"severity": 2},
            {"rule": "A"},
            "filter",
            'severity of A is 2, but where.a.severity is {"min": 3}',
        ),
        (
            {"severity": None},
            {"rule": "A"},
            "filter",
            'severity of A is missing, but where.a.severity is {"min": 3}',
        ),
        (
            {"severity": 3},
            {"rule": "C"},
            "filter",
            'rule of B is "C", but where.b.rule is ["A", "B"]',
        ),
        (
            {"severity": 3},
            {"rule": "B"},
            None,
            "the probability is 1, the threshold is 0.7",
        ),
    ],
)
def test_the_filter_that_fails_is_named(
    a: dict[str, Any], b: dict[str, Any], step: str | None, explanation: str
) -> None:
    answer = explain(CONDITIONS["near"] | {"where": WHERE}, a, b)
    assert (answer["failed_step"], answer["explanation"]) == (step, explanation)
    assert [it["step"] for it in answer["steps"]] == [
        *("contract", "filter", "key", "expired", "threshold")
    ]
    shown = dict.fromkeys((it.name for it in DECLARED), None)
    assert answer["a"]["attributes"] == shown | a
    assert answer["b"]["attributes"] == shown | b


def test_a_condition_without_filters_has_no_such_step() -> None:
    answer = explain(dict(CONDITIONS["near"]), {}, {})
    assert [it["step"] for it in answer["steps"]] == ["contract", "key", "expired", "threshold"]


@given(
    name=st.sampled_from(["near", "self", "self_within"]),
    where=st.randoms().map(draw_where),
    first=events(),
    second=events(),
    times=st.tuples(st.integers(0, 12), st.integers(0, 12)),
)
def test_the_verdict_is_that_of_the_program(
    name: str,
    where: dict[str, Any] | None,
    first: dict[str, Any],
    second: dict[str, Any],
    times: tuple[int, int],
) -> None:
    document: dict[str, Any] = {**CONDITIONS[name], "where": where}
    arrivals = [
        Arrival(str(document[role]), 0, "k", role, time, time, offset, attributes=attributes)
        for offset, (role, attributes, time) in enumerate(
            (("a", first, times[0]), ("b", second, times[1]))
        )
    ]
    slot = Slot()
    slot.streams = STREAMS
    slot.restart()
    alarms = read_alarms(slot.advance(make_block(arrivals, [control_record(0, "c", document)])))
    found = {(alarm["a"]["id"], alarm["b"]["id"]) for alarm in alarms}
    assert found == judged_pairs(arrivals, document)
    answer = explain(document, first, second, times)
    shown = (answer["a"]["id"], answer["b"]["id"])
    assert found == ({shown} if answer["verdict"] == "satisfied" else set())


def test_the_plan_shows_the_filters() -> None:
    condition = condition_from_document("c", 1, CONDITIONS["near"] | {"where": WHERE})
    plan = KINDS["mutual_deadline"].plan(condition, STREAMS)
    assert plan["where"] == WHERE
    assert plan["filters"].startswith("evaluated before the search")
    assert_names(plan["sharing"], "similar windows", "equal filters")
    plain = condition_from_document("c", 1, CONDITIONS["near"])
    assert "where" not in KINDS["mutual_deadline"].plan(plain, STREAMS)


def test_chance_alarms_are_unknown_with_filters() -> None:
    load = Load({"x": 1.0, "y": 1.0})
    for where, expected in ((None, True), (WHERE, False)):
        condition = condition_from_document("c", 1, CONDITIONS["near"] | {"where": where})
        found = KINDS["mutual_deadline"].derive(condition, STREAMS, load)
        assert ("chance_alarms_per_hour" in found) is expected


@pytest.mark.parametrize(
    ("where", "field"),
    [
        ({"a": {"room": "hall"}}, "where.a.room"),
        ({"b": {"severity": {"min": "high"}}}, "where.b.severity.min"),
    ],
)
def test_filters_must_fit_the_streams(where: dict[str, Any], field: str) -> None:
    condition = condition_from_document("c", 1, CONDITIONS["near"] | {"where": where})
    with pytest.raises(ValueError, match=f"^{field}: "):
        KINDS["mutual_deadline"].check(condition, STREAMS)
    without = {name: replace(it, attributes=()) for name, it in STREAMS.items()}
    with pytest.raises(ValueError, match="declare it in attributes"):
        KINDS["mutual_deadline"].check(condition, without)
