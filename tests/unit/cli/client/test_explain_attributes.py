"""Format of explanations of events with attributes."""

from __future__ import annotations

from typing import Any

from correlation.explaining import GivenRecord
from correlation.kinds import KINDS, condition_from_document
from correlation.resources.filters import read_filter
from correlation.resources.streams import Stream
from tests.support.filters import DECLARED
from tests.unit.cli.client.test_explain import show
from tests.unit.correlation.timing.test_drawing import NEAR


def explain(severity: int, rule: str | None, where: dict[str, Any] | None = None) -> str:
    document = {**NEAR, "a": "x", "b": "y", "where": {"a": {"severity": {"min": 3}}}}
    condition = condition_from_document("near", 1, document)
    wanted = None if where is None else read_filter(where, DECLARED)
    streams = {
        name: Stream(name, name, 5, 5, clock="replay", attributes=DECLARED, where=wanted)
        for name in ("x", "y")
    }
    value = {"id": "e", "key": "k", "earliest": 0, "latest": 0, "rule": rule, "severity": severity}
    records = {role: GivenRecord(value, form="record") for role in "ab"}
    kind = KINDS[condition.kind]
    answer = kind.explain(condition, streams, records)
    return show(
        {"condition": "near", "version": 1, "kind": kind.name, "roles": ["a", "b"]} | answer
    )


def test_attributes_and_the_failed_filter_are_shown() -> None:
    shown = explain(2, "A")
    assert shown.startswith("NOT SATISFIED  near version 1, mutual_deadline\nseverity of A is 2, ")
    assert "✗ filters\n· key\n" in shown
    assert 'Z\n   rule="A" severity=2\n' in shown


def test_missing_attributes_are_not_shown() -> None:
    shown = explain(3, None)
    assert shown.startswith("SATISFIED")
    assert "✓ filters" in shown
    assert "\n   severity=3\n" in shown


def test_an_event_that_its_stream_excludes_is_shown_without_a_time() -> None:
    shown = explain(3, "A", {"rule": "B"})
    assert "✗ contract" in shown
    assert 'where.rule\n   rule="A" severity=3\n' in shown
