"""Replays of top-k conditions: the order of changes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from typer.testing import CliRunner

from cli.main import app

if TYPE_CHECKING:
    from pathlib import Path

RESOURCES = """
kind: stream
name: log
topic: log
max_uncertainty: 0s
max_delay: 0s
clock: replay
partitioning: grid
tokens: tags
---
kind: topk_similarity
name: near
a: log
k: 1
window: 1h
report: every
"""
# At the same time: the pair of c and d takes the place of a and b.
SETS = {"a": "xy", "b": "xyz", "c": "uv", "d": "uv"}


def test_changes_of_equal_times_stay_in_their_order(tmp_path: Path) -> None:
    resources, events, changes = (tmp_path / it for it in ("r.yaml", "e.jsonl", "c.jsonl"))
    resources.write_text(RESOURCES)
    rows = [{"id": name, "time": 1, "tags": [*tags]} for name, tags in SETS.items()]
    events.write_text("".join(json.dumps(it) + "\n" for it in rows))
    arguments = ["replay", "-f", str(resources), "--events", f"log={events}"]
    done = CliRunner().invoke(app, [*arguments, "--alarms", str(changes), "--processes", "1"])
    assert done.exit_code == 0, done.output
    found = [json.loads(it) for it in changes.read_text().splitlines()]
    assert [(it["change"], it["older"]["id"], it["younger"]["id"]) for it in found] == [
        ("entered", "a", "b"),
        ("left", "a", "b"),
        ("entered", "c", "d"),
    ]
