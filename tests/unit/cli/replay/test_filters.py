"""Filters and attributes in `coincide replay`: resource files, alarms and errors."""

from __future__ import annotations

import json

import pytest

from tests.unit.cli.replay.test_replay import Command, event, replay

__all__ = ["replay"]

RESOURCES = """\
kind: stream
name: a
topic: ta
max_uncertainty: 1s
max_delay: 1s
attributes: {rule: alert.rule, severity: {path: severity, type: integer}}
---
{kind: stream, name: b, topic: tb, max_uncertainty: 1s, max_delay: 1s}
---
kind: mutual_deadline
name: near
a: a
b: b
window: 1s
threshold: 0.5
where: {a: {rule: [A-1, A-2], severity: {min: 3}}}
output: OUTPUT
"""


@pytest.mark.parametrize("output", ["pairs", "factored"])
def test_alarms_have_attributes_and_only_events_that_match(replay: Command, output: str) -> None:
    resources = RESOURCES.replace("OUTPUT", output)
    (replay.folder / "r.yaml").write_text(resources, encoding="utf-8")
    alert = {"alert": {"rule": "A-1"}}
    a = replay.write(
        "a.jsonl",
        event("a1", 0, **alert, severity=3),
        event("a2", 0, **alert, severity=2),
        event("a3", 0, severity=4),
        event("a4", 0, **alert, severity="4"),
    )
    b = replay.write("b.jsonl", event("b1", 1_000_000))
    done = replay("--events", f"a={a}", "--events", f"b={b}")
    assert (done.code, done.ids) == (0, [("a1", "b1")])
    alarm = json.loads(done.out)
    assert alarm["a"]["attributes"] == {"rule": "A-1", "severity": 3}
    assert "attributes" not in alarm["b"]
    assert "1 rejected, bad_attribute" in done.err


def test_a_filter_that_does_not_fit_is_refused_with_its_field(replay: Command) -> None:
    resources = RESOURCES.replace("OUTPUT", "pairs").replace("min: 3", 'min: "3"')
    (replay.folder / "r.yaml").write_text(resources, encoding="utf-8")
    a, b = replay.write("a.jsonl", event("a1", 0)), replay.write("b.jsonl", event("b1", 0))
    done = replay("--events", f"a={a}", "--events", f"b={b}")
    assert done.code != 0
    assert "where.a.severity.min: must be a 64-bit integer" in " ".join(done.err.split())
