"""Event queries on uncertain instants in `coincide replay`."""

from __future__ import annotations

import json
from typing import Any

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


def leak(name: str, earliest: int, latest: int, area: str) -> dict[str, Any]:
    return {"id": name, "key": "k", "earliest": earliest, "latest": latest, "area": area}
