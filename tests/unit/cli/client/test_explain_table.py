"""Explanations of kinds of conditions with other events than A and B."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

import cli.client.explain
from cli.client.explain import show_explanation
from correlation.kinds import KINDS
from tests.toy import toy_kind
from tests.unit.correlation.event_query.test_explain_uncertain import DOOR, LEAK, event, explain

SMOKE: dict[str, Any] = {
    "stream": "smoke",
    "id": "s[1]",
    "key": "k",
    "earliest": 0,
    "latest": 0,
    "attributes": {"area": "lab", "level": 3, "wet": None},
}
ANSWER: dict[str, Any] = {
    "condition": "fire",
    "version": 2,
    "kind": "event_query",
    "verdict": "not_satisfied",
    "failed_step": "relations",
    "explanation": "s.rt.end < d.rt.end does not hold",
    "steps": [
        {"step": "contract", "passed": True, "detail": "s and d satisfy the contract"},
        {"step": "relations", "passed": False, "detail": "s.rt.end < d.rt.end does not hold"},
        {"step": "absence", "passed": None, "detail": None},
    ],
    "roles": ["verdict", "steps"],
    # Aliases that are names of other fields.
    "events": {
        "verdict": SMOKE,
        "steps": {
            **SMOKE,
            "stream": "door",
            "id": None,
            "earliest": None,
            "reason": "bad",
            "detail": "x",
        },
    },
    "notes": [],
}


def show(answer: dict[str, Any]) -> list[str]:
    console = Console(file=StringIO(), width=100)
    show_explanation(answer, console)
    assert isinstance(console.file, StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_events_are_shown_in_a_table() -> None:
    assert show(ANSWER) == [
        "NOT SATISFIED  fire version 2, event_query",
        "s.rt.end < d.rt.end does not hold",
        "",
        "✓ contract  s and d satisfy the contract",
        "✗ relations",
        "· absence",
        "",
        "event    stream  id     key  time                  attributes",
        'verdict  smoke   s[1]   k    1970-01-01T00:00:00Z  area="lab" level=3',
        'steps    door    no id  k    bad: x                area="lab" level=3',
    ]


def test_events_that_last_are_shown_from_begin_to_end() -> None:
    times = {"begin": 1_000_000, "end": 2_000_000}
    visit = {name: it for name, it in SMOKE.items() if name not in {"earliest", "latest"}} | times
    rejected = visit | {"begin": None, "end": None, "reason": "begin_after_end", "detail": "x"}
    events = {"v": visit, "w": rejected}
    shown = show({**ANSWER, "roles": ["v", "w"], "events": events})
    assert " 1970-01-01T00:00:01Z … 1970-01-01T00:00:02Z  " in shown[-2]
    assert " begin_after_end: x " in shown[-1]
    # Events of a kind whose roles are a and b.
    pair = {name: it for name, it in ANSWER.items() if name != "events"}
    shown = show({**pair, "roles": ["a"], "a": visit | {"length_us": 1_000_000}})
    assert "   1970-01-01T00:00:01Z … 1970-01-01T00:00:02Z  1s long" in shown


def test_the_drawing_of_an_event_query_is_part_of_the_explanation() -> None:
    answer = explain(a=LEAK, d=DOOR, r=event("r1", 12))
    shown = show({**ANSWER, **answer, "condition": "q", "version": 1, "roles": ["a", "d", "r"]})
    assert any(it.startswith("axis: ") for it in shown)
    assert "probability of the result: 0.7 = 7/10, threshold 0.5" in shown


def test_a_kind_of_another_package_draws_its_explanation(monkeypatch: pytest.MonkeyPatch) -> None:
    (kind,) = toy_kind.KINDS
    smoke = {**SMOKE, "id": "s[1]\x1b", "latest": 3_000_000}
    answer = {**ANSWER, "kind": kind.name, "event": smoke, "notes": ["n"]}
    # The command may be older than the service, and not have the kind.
    without = show(answer)
    monkeypatch.setattr(cli.client.explain, "KINDS", {**KINDS, kind.name: kind})
    assert show(answer) == [
        *without[:-1],
        "",
        "▇▇▇",
        "▇ is 1s",
        "s[1]\\x1b is 3s long",
        "note: n",
    ]


def test_columns_without_values_are_left_out() -> None:
    plain = {**SMOKE, "key": None, "attributes": {}, "latest": 2_000_000}
    assert show({**ANSWER, "roles": ["s"], "events": {"s": plain}})[-2:] == [
        "event  stream  id    time",
        "s      smoke   s[1]  1970-01-01T00:00:00Z … 1970-01-01T00:00:02Z",
    ]


def test_tokens_are_shown() -> None:
    events = {
        "older": {**SMOKE, "attributes": {}, "tokens": ["disk", "full"]},
        "newer": {**SMOKE, "attributes": {}, "tokens": []},
        "third": {**SMOKE, "attributes": {}, "tokens": None, "reason": "bad_tokens"},
    }
    assert show({**ANSWER, "roles": ["older"], "events": events})[-4:-1] == [
        "event  stream  id    key  time                  tokens",
        "older  smoke   s[1]  k    1970-01-01T00:00:00Z  2 tokens: disk, full",
        "newer  smoke   s[1]  k    1970-01-01T00:00:00Z  0 tokens",
    ]
    pair = {name: it for name, it in ANSWER.items() if name != "events"}
    event = {**SMOKE, "tokens": ["disk"], "length_us": 0}
    assert show({**pair, "roles": ["a"], "a": event})[-2:] == [
        '   area="lab" level=3',
        "   1 token: disk",
    ]
