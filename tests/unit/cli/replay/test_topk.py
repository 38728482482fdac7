"""Replays of top-k conditions: the order of changes, and grids with several groups."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

from typer.testing import CliRunner

from cli.main import app
from cli.replay.setup import read_topic_setup

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


def test_only_timing_conditions_get_the_fields_that_a_replay_of_pairs_needs(tmp_path: Path) -> None:
    resources = tmp_path / "r.yaml"
    pairs = {
        "kind": "within",
        "name": "pairs",
        "a": "log",
        "b": "log",
        "lower": "0s",
        "upper": "1s",
        "threshold": 1,
        "max_pairs": 5,
    }
    resources.write_text(f"{RESOURCES}---\n{json.dumps(pairs)}\n")
    found = {
        it.name: it.document for it in read_topic_setup([resources], (), lambda _: 1).conditions
    }
    assert (found["pairs"]["output"], found["pairs"]["max_pairs"]) == ("pairs", None)
    assert not {"output", "max_pairs"} & found["near"].keys()


def test_changes_of_equal_times_stay_in_their_order(tmp_path: Path) -> None:
    resources, events, changes = (tmp_path / it for it in ("r.yaml", "e.jsonl", "c.jsonl"))
    resources.write_text(RESOURCES)
    rows = [{"id": name, "time": 1, "tags": [*tags]} for name, tags in SETS.items()]
    events.write_text("".join(json.dumps(it) + "\n" for it in rows))
    arguments = ["replay", "-f", str(resources), "--events", f"log={events}"]
    done = CliRunner().invoke(app, [*arguments, "--alarms", str(changes), "--processes", "1"])
    assert done.exit_code == 0, done.output
    found = [json.loads(it) for it in changes.read_text().splitlines()]
    assert [(it["change"], it["older"]["id"], it["newer"]["id"]) for it in found] == [
        ("entered", "a", "b"),
        ("left", "a", "b"),
        ("entered", "c", "d"),
    ]


def test_several_groups_lead_to_the_records_and_the_report_of_one(tmp_path: Path) -> None:
    rng = random.Random(5)  # noqa: S311 - a reproducible choice, no secret
    rows = [
        {"id": f"s{number}", "time": number // 3, "tags": rng.sample("abcdefgh", 4)}
        for number in range(900)
    ]
    events = tmp_path / "e.jsonl"
    events.write_text("".join(json.dumps(it) + "\n" for it in rows))
    resources = RESOURCES.replace("k: 1", "k: 20").replace("1h", "50s")

    def replay(partitioning: str, processes: int) -> tuple[list[str], Any]:
        (tmp_path / "r.yaml").write_text(resources.replace("grid", partitioning))
        arguments = ["-f", str(tmp_path / "r.yaml"), "--events", f"log={events}", "--json"]
        arguments += ["--alarms", str(tmp_path / "c"), "--force", "--processes", str(processes)]
        done = CliRunner().invoke(app, ["replay", *arguments])
        assert done.exit_code == 0, done.output
        report = json.loads(done.stdout)["conditions"]["near"]
        return (tmp_path / "c").read_text().splitlines(), (report["results"], report["lists"])

    changes, report = replay("grid", 1)
    assert len(changes) > 500
    assert report[0] == len(changes)
    for processes in (1, 2):
        assert replay("{by: grid, groups: 3}", processes) == (changes, report)
