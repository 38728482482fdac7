"""Totals of merged results: they continue from their stored form, and end with their condition."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from correlation.engine.merged import MergedTotals
from correlation.operators import Evaluation
from correlation.shares import Merged

LABELS = {"condition": "c"}


def merged(
    changes: int, *, ready_us: int | None = 1_000_000, value: float | None = 0.5, live: bool = False
) -> Merged:
    """Return merged results with changes, and with the gauge of a full list."""
    evaluation = Evaluation(
        (),
        changes,
        [("changes_total", LABELS, changes)],
        np.array([] if ready_us is None else [ready_us], np.int64),
        np.array([1_900_000], np.int64),
        {} if value is None else {"last_value": value},
    )
    return Merged("c", evaluation, live)


def counters(totals: MergedTotals) -> dict[str, int]:
    return {name: value for name, _, value in totals.to_record(0)["counters"]}


def counts(totals: MergedTotals) -> dict[str, tuple[int, float]]:
    """Return number and sum of each histogram."""
    found = totals.to_record(0)["histograms"]
    return {name: (it["buckets"][-1][1], it["sum"]) for name, _, it in found}


def restored(totals: MergedTotals) -> MergedTotals:
    found: Any = json.loads(json.dumps(totals.dump()))
    return MergedTotals.from_dump(found)


def test_totals_continue_from_their_stored_form() -> None:
    totals = MergedTotals()
    totals.count([merged(2, live=True)], 2_000_000)
    totals = restored(totals)
    totals.count([merged(3, value=0.25)], 2_100_000)
    assert counters(totals) == {"alarms_total": 5, "changes_total": 5}
    # A stream that does not follow the wall clock has no response time.
    assert counts(totals) == {
        "response_time_seconds": (1, 1.0),
        "pipeline_latency_seconds": (2, 0.3),
    }
    record = totals.to_record(9)
    assert record["gauges"] == [["last_value", LABELS, 0.25]]
    assert (record["at"], record["last_alarm_at"]) == (9, {"c": 2_100_000})


def test_list_that_is_not_full_any_more_has_no_gauge() -> None:
    totals = MergedTotals()
    totals.count([merged(2), merged(1, ready_us=None, value=None)], 7)
    assert counters(restored(totals))["alarms_total"] == 3
    assert totals.to_record(0)["gauges"] == []


def test_withdrawn_list_is_no_last_result() -> None:
    totals = MergedTotals()
    totals.count([merged(2)], 7)
    totals.count([merged(2, ready_us=None, value=None)], 8)
    assert totals.to_record(0)["last_alarm_at"] == {"c": 7}


def test_condition_that_is_registered_again_begins_with_its_own_totals() -> None:
    totals = MergedTotals()
    totals.count([merged(2), Merged("d", Evaluation(alarms=1))], 7)
    totals.count([merged(2), Merged("c", None), merged(1, value=None)], 8)
    assert totals.to_record(0)["counters"] == [
        ["alarms_total", {"condition": "d"}, 1],
        ["alarms_total", LABELS, 1],
        ["changes_total", LABELS, 1],
    ]
    totals.count([Merged("c", None), Merged("unknown", None)], 9)
    assert ["c" in totals, "d" in totals, "unknown" in totals] == [False, True, False]
    assert counters(totals) == {"alarms_total": 1}
    assert totals.to_record(0)["last_alarm_at"] == {}
