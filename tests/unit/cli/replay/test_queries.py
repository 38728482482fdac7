"""Event queries in `coincide replay`."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from cli.errors import UsageError
from cli.replay import thresholds
from cli.replay.setup import Setup
from correlation.kinds import KINDS
from correlation.resources.records import Resource
from correlation.topk.change_format import KIND as TOPK
from tests.support.messages import assert_names, naming
from tests.unit.cli.replay.test_replay import Command, event, replay

__all__ = ["replay"]

RESOURCES = """\
kind: stream
name: leak
topic: leaks
max_uncertainty: 2s
max_delay: 1s
attributes: {area: area}
---
{kind: stream, name: report, topic: reports, max_uncertainty: 0s, max_delay: 1s,
 attributes: {area: area}}
---
kind: event_query
name: unreported
threshold: 0.75
query: |-
  DETECT Alarm {area {var X}}
  ON event l: Leak {area {var X}} not event r: Report {area {var X}}
  WHERE l.rt.end <= r.rt.end, r.rt.end <= l.rt.end + 1 s
  END
"""
# A query of exact instants, and a condition of pairs.
QUIET = """\
---
kind: event_query
name: quiet
query: |-
  DETECT Quiet {area {var X}}
  ON event r: Report {area {var X}} not event n: Report {area {var X}}
  WHERE r.rt.end < n.rt.end, n.rt.end <= r.rt.end + 1 s
  END
---
{kind: within, name: near, a: leak, b: report, lower: 0s, upper: 1s, threshold: 0.3}
"""


def test_results_have_their_probability_and_threshold(replay: Command) -> None:
    (replay.folder / "r.yaml").write_text(RESOURCES, encoding="utf-8")
    leaks = replay.write(
        "leaks.jsonl",
        *(leak(f"l{area}", 10_000_000, 12_000_000, area) for area in ("a", "b", "c")),
    )
    reports = replay.write(
        "reports.jsonl",
        event("r0", 9_999_999, area="c"),
        # Stops a leak of the last half second: P = 3/4.
        event("r1", 12_500_000, area="a"),
        # Stops a leak of a time that is longer by one microsecond.
        event("r2", 12_499_999, area="b"),
    )
    done = replay("--events", f"leak={leaks}", "--events", f"report={reports}")
    assert done.code == 0, done.err
    alarms = [json.loads(line) for line in done.out.splitlines()]
    found = {it["events"]["l"]["id"]: (it["probability"], it["threshold"]) for it in alarms}
    assert found == {"la": (0.75, 0.75), "lc": (1.0, 0.75)}
    assert {it["attributes"]["area"] for it in alarms} == {"a", "c"}


def test_times_of_templates_have_their_probability(replay: Command) -> None:
    late = "---\n{kind: template, name: late, buckets: [[0s, 1s, 0.25], [1s, 2s, 0.75]]}\n"
    declared = RESOURCES.replace("max_uncertainty: 2s", "max_uncertainty: 2s\ntemplates: [late]")
    declared = declared.replace("threshold: 0.75", "threshold: 0.6")
    (replay.folder / "r.yaml").write_text(declared + late, encoding="utf-8")
    leaks = replay.write(
        "leaks.jsonl",
        *(
            {"id": f"l{area}", "key": "k", "detected": 12_000_000, "template": "late", "area": area}
            for area in ("a", "b", "c")
        ),
        leak("ld", 10_000_000, 12_000_000, "d"),
    )
    reports = replay.write(
        "reports.jsonl",
        # Each stops a leak of the last 0.5, 0.6 or 0.5 seconds: uniform times have P = 3/4.
        event("r0", 12_500_000, area="a"),
        event("r1", 12_400_000, area="b"),
        event("r2", 12_500_000, area="d"),
    )
    done = replay("--events", f"leak={leaks}", "--events", f"report={reports}")
    assert done.code == 0, done.err
    alarms = [json.loads(line) for line in done.out.splitlines()]
    found = {it["events"]["l"]["id"]: it["probability"] for it in alarms}
    assert found == {"la": 0.625, "lc": 1.0, "ld": 0.75}


def test_summary_has_results_and_the_metrics_of_the_kind(replay: Command) -> None:
    (replay.folder / "r.yaml").write_text(RESOURCES + QUIET, encoding="utf-8")
    done = replay(*files(replay), "--alarms", "alarms.jsonl", "--json")
    assert done.code == 0, done.err
    conditions = json.loads(done.out)["conditions"]
    assert conditions["unreported"] == {
        "events": 5,
        "late": 0,
        "rejected": 0,
        "results": 1,
        "metrics": {
            "query_combinations_total": 2,
            "query_negated_events_total": 2,
            "query_undecided_total": 0,
            "query_decisions_total": 2,
            "query_decisions_total{decided_by=position}": 1,
            "query_decisions_total{decided_by=filter}": 1,
            "query_decisions_total{decided_by=exact}": 0,
        },
    }
    quiet = conditions["quiet"]
    assert (quiet["events"], quiet["results"]) == (3, 2)
    assert quiet["metrics"]["query_combinations_total"] == 3
    assert quiet["metrics"]["query_decisions_total"] == 0
    assert conditions["near"]["pairs"] == 1
    # The tables have the columns that the conditions need.
    done = replay(*files(replay), "--alarms", "alarms.jsonl", "--force")
    lines = done.err.splitlines()
    assert lines[0].split("  ")[0] == "condition"
    assert lines[0].split() == [
        *("condition", "events", "pairs", "results", "hit", "ratio", "late", "rejected")
    ]
    assert [it.split() for it in lines[1:4]] == [
        ["unreported", "5", "1", "0", "0"],
        ["quiet", "3", "2", "0", "0"],
        ["near", "5", "1", "0.000", "0", "0"],
    ]
    assert (
        "quiet: query_combinations_total 3, query_negated_events_total 1, query_decisions_total 0, "
        "query_undecided_total 0" in done.err
    )
    done = replay(*files(replay), "--condition", "quiet", "--alarms", "alarms.jsonl", "--force")
    assert done.err.splitlines()[0].split() == [
        *("condition", "events", "results", "late", "rejected")
    ]


def test_results_are_counted_at_thresholds(replay: Command) -> None:
    (replay.folder / "r.yaml").write_text(RESOURCES + QUIET, encoding="utf-8")
    arguments = (*files(replay), "--thresholds", "0.5,0.75", "--json")
    done = replay(*arguments, "--condition", "unreported", "--condition", "near")
    conditions = json.loads(done.out)["conditions"]
    assert conditions["unreported"]["results_at"] == {"0.5": 2, "0.75": 1}
    assert "pairs_at" not in conditions["unreported"]
    assert conditions["near"]["pairs_at"] == {"0.5": 0, "0.75": 0}
    done = replay(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: condition quiet: threshold ")
    assert_names(done.err, "--condition")


def test_threshold_is_the_probability_of_the_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = KINDS["mutual_deadline"]
    fields = tuple(
        replace(it, name="confidence") if it.type == "probability" else it for it in kind.fields
    )
    certain = replace(kind, name="certain", fields=fields)
    monkeypatch.setattr(thresholds, "KINDS", {**KINDS, "certain": certain})
    document = {"kind": "certain", "confidence": "0.9", "threshold": "0.1"}
    setup = Setup({}, {}, (Resource("condition", "c", 1, 0, document),))
    (found,) = thresholds.at_thresholds(setup, (Decimal("0.50"),)).conditions
    assert found.document == {**document, "confidence": "0.50"}
    listed = replace(setup, conditions=(Resource("condition", "l", 1, 0, {"kind": TOPK}),))
    with pytest.raises(UsageError, match=naming("condition l", TOPK, "no threshold")):
        thresholds.at_thresholds(listed, (Decimal(1),))


def files(replay: Command) -> tuple[str, ...]:
    """Write events of both streams; return the options that name the files."""
    leaks = replay.write(
        "leaks.jsonl", leak("b", 20, 2_000_020, "b"), leak("a", 10_000_000, 12_000_000, "a")
    )
    reports = replay.write(
        "reports.jsonl",
        # Stops a leak of the last 0.8 seconds: P = 0.6.
        event("r0", 2_200_020, area="b"),
        event("r1", 2_500_000, area="b"),
        event("r2", 20_000_000, area="a"),
    )
    return ("--events", f"leak={leaks}", "--events", f"report={reports}")


def leak(name: str, earliest: int, latest: int, area: str) -> dict[str, Any]:
    return {"id": name, "key": "k", "earliest": earliest, "latest": latest, "area": area}


def test_errors_of_a_query_show_the_line_and_a_caret(replay: Command) -> None:
    wrong = RESOURCES.replace("Report {area", "Report {aera")
    (replay.folder / "r.yaml").write_text(wrong, encoding="utf-8")
    done = replay(*files(replay))
    assert done.code == 2
    assert "query: line 2, column 54: event r: stream report " in done.err
    assert "did you mean area?" in done.err
    line = "ON event l: Leak {area {var X}} not event r: Report {aera {var X}}"
    # A long line is shown from 50 characters before the place.
    assert f"\n…{line[3:]}\n{' ' * 51}^" in done.err


def test_a_query_without_any_result_has_a_warning(replay: Command) -> None:
    never = QUIET.replace("r.rt.end < n.rt.end", "r.rt.end <= n.rt.end")
    (replay.folder / "r.yaml").write_text(RESOURCES + never, encoding="utf-8")
    done = replay(*files(replay), "--alarms", "alarms.jsonl")
    assert done.code == 0
    assert_names(done.err, "warning: quiet", "event r", "event n", "stops itself")


@pytest.mark.parametrize(("lower", "results"), [("<=", set()), ("<", {"a", "b"})])
def test_an_uncertain_event_that_stops_itself_has_no_result(
    lower: str, results: set[str], replay: Command
) -> None:
    only = RESOURCES.replace("not event r: Report", "not event r: Leak").replace("<=", lower, 1)
    (replay.folder / "r.yaml").write_text(only, encoding="utf-8")
    done = replay(*files(replay))
    assert done.code == 0, done.err
    found = {json.loads(line)["events"]["l"]["id"] for line in done.out.splitlines()}
    assert found == results
    assert ("stops itself" in done.err) == (not results)
