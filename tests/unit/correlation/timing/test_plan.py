"""Answers of /plan and :validate for conditions that report each A once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from correlation.condition_kind import Load
from correlation.kinds import KINDS, condition_from_document
from correlation.resources.partitioning import Partitioning
from correlation.resources.streams import Stream
from tests.support.messages import assert_names

SECOND = 1_000_000
STREAMS = {
    "x": Stream("x", "x", 0, 3 * SECOND, max_skew_us=SECOND),
    "y": Stream("y", "y", 0, 5 * SECOND, max_skew_us=SECOND),
}


def document(emit: str, lower: int, upper: int, b: str = "y") -> dict[str, Any]:
    ends = {"lower_us": lower * SECOND, "upper_us": upper * SECOND}
    return {"kind": "within", "a": "x", "b": b, **ends, "threshold": "1", "emit": emit}


def derive(found: dict[str, Any], streams: dict[str, Stream] = STREAMS) -> dict[str, Any]:
    condition = condition_from_document("c", 1, found)
    return KINDS[condition.kind].derive(condition, streams, Load({"x": 2.0, "y": 3.0}))


def plan(found: dict[str, Any], streams: dict[str, Stream] = STREAMS) -> dict[str, Any]:
    condition = condition_from_document("c", 1, found)
    return KINDS[condition.kind].plan(condition, streams)


def grid(groups: int) -> dict[str, Stream]:
    partitioning = Partitioning("grid", groups)
    return {name: replace(it, partitioning=partitioning) for name, it in STREAMS.items()}


@pytest.mark.parametrize(
    ("lower", "upper", "latency", "horizons"),
    [
        # A at 0: B may have latest 10, which arrives by 15 and is known of by 16.
        (-2, 10, 16, {"x": 15, "y": 17}),
        # The last B comes before A does.
        (-20, -10, 3, {"x": 5, "y": 23}),
        (4, 10, 16, {"x": 15, "y": 11}),
    ],
)
@pytest.mark.parametrize("emit", ["best", "unmatched"])
def test_latency_and_horizon_reach_to_the_last_b_that_may_come(
    emit: str, lower: int, upper: int, latency: int, horizons: dict[str, int]
) -> None:
    found = derive(document(emit, lower, upper))
    assert found["worst_case_alarm_latency_us"] == latency * SECOND
    assert found["buffer_horizon_us"] == {n: it * SECOND for n, it in horizons.items()}
    buffered = {"x": 2 * horizons["x"], "y": 3 * horizons["y"]}
    assert found["expected_buffered_events"] == buffered


def test_latency_of_recorded_streams_has_no_skew() -> None:
    recorded = {n: Stream(n, n, 0, it.max_delay_us, clock="replay") for n, it in STREAMS.items()}
    assert derive(document("best", -2, 10), recorded)["worst_case_alarm_latency_us"] == 15 * SECOND


def test_blocks_are_waited_for() -> None:
    pairs = document("pairs", -2, 10)
    found = derive({**pairs, "block_size": 500, "block_interval_us": 3 * SECOND})
    assert found["worst_case_alarm_latency_us"] == 8 * SECOND
    assert found["buffer_horizon_us"] == {"x": 18 * SECOND, "y": 8 * SECOND}
    told = plan({**pairs, "block_size": 500, "block_interval_us": 3 * SECOND})["reported"]
    assert_names(told, "500 events", "waited for 3s")


def test_limit_of_pairs_is_in_the_plan() -> None:
    pairs = document("pairs", -2, 10)
    assert "limit" not in plan(pairs)
    assert_names(plan({**pairs, "max_pairs": 1_000})["limit"], "slot", "at most 1,000 pairs")


def test_pairs_wait_for_nothing_but_their_records() -> None:
    found = derive(document("pairs", -2, 10))
    assert found["worst_case_alarm_latency_us"] == 5 * SECOND
    assert found["buffer_horizon_us"] == {"x": 15 * SECOND, "y": 5 * SECOND}


def test_horizon_of_a_stream_with_itself_is_that_of_either_role() -> None:
    assert derive(document("best", -2, 10, "x"))["buffer_horizon_us"] == {"x": 15 * SECOND}


@pytest.mark.parametrize(("b", "rates"), [("y", 2.0 * 3.0), ("x", 2.0 * 2.0)])
def test_chance_of_pairs_grows_with_both_rates(b: str, rates: float) -> None:
    found = document("pairs", -2, 10, b)
    condition = condition_from_document("c", 1, found)
    chance = KINDS[condition.kind].chance(condition, STREAMS)
    assert chance is not None
    assert chance.streams == {"a": "x", "b": b}
    # Exact events: B may be anywhere in 12 s; a pair of one stream counts in either order.
    assert chance.seconds == pytest.approx(12 if b == "y" else 10)
    per_hour = derive(found)["chance_alarms_per_hour"]
    assert chance.seconds * rates * 3600 == pytest.approx(per_hour)


@pytest.mark.parametrize(
    "changes", [{"emit": "best"}, {"emit": "unmatched"}, {"where": {"a": {"color": ["red"]}}}]
)
def test_chance_of_other_alarms_is_not_known(changes: dict[str, Any]) -> None:
    condition = condition_from_document("c", 1, document("pairs", -2, 10) | changes)
    assert KINDS[condition.kind].chance(condition, STREAMS) is None


def test_chance_alarms_of_either_mode_are_all_events_of_a() -> None:
    per_hour = {
        emit: derive(document(emit, -2, 10))["chance_alarms_per_hour"]
        for emit in ("pairs", "best", "unmatched")
    }
    assert per_hour["best"] + per_hour["unmatched"] == pytest.approx(2 * 3600)
    assert 0 < per_hour["unmatched"] < 1 < per_hour["best"] < per_hour["pairs"]


@pytest.mark.parametrize("emit", ["pairs", "best", "unmatched"])
@pytest.mark.parametrize(("upper", "count"), [(10, 0), (3, 1)])
def test_window_that_no_pair_can_satisfy_has_a_warning(emit: str, upper: int, count: int) -> None:
    # The distance of two events varies by 8 s: only a window of 8 s or more makes it certain.
    lengths_us = {"x": 3 * SECOND, "y": 5 * SECOND}
    streams = {
        name: replace(STREAMS[name], max_uncertainty_us=it, min_uncertainty_us=it)
        for name, it in lengths_us.items()
    }
    found = document(emit, -2, upper)
    condition = condition_from_document("c", 1, found)
    warnings = KINDS[condition.kind].warn(condition, streams)
    derived = derive(found, streams)
    assert derived.get("warnings", []) == warnings
    assert (derived["can_be_satisfied"], len(warnings)) == (count == 0, count)
    for warning in warnings:
        assert_names(warning, "x", "y", "threshold", "window")


def test_plan_has_the_threshold() -> None:
    assert plan(document("pairs", -2, 10) | {"threshold": "0.70"})["threshold"] == "0.7"


def test_plan_says_when_and_how_each_a_is_reported() -> None:
    best, unmatched = (plan(document(emit, -2, 10)) for emit in ("best", "unmatched"))
    assert (best["algorithm"], unmatched["algorithm"]) == ("best", "unmatched")
    assert best["why"] != unmatched["why"]
    assert best["reported"] == unmatched["reported"]
    assert "watermark of y exceeds latest of x + (10s)" in best["reported"]
    assert best["keep"] == {
        "x": "watermark of y - (10s)",
        "y": "min(watermark of x, watermark of y - (10s)) + (-2s)",
    }
    assert plan(document("best", -2, 10, "x"))["keep"] == {"x": "watermark of x - (12s)"}
    pairs = plan(document("pairs", -2, 10))
    assert pairs["keep"] == {"x": "watermark of y - (10s)", "y": "watermark of x + (-2s)"}
    assert (pairs["emit"], pairs["reported"][:10]) == ("pairs", "when both ")


def test_every_copy_in_a_grid_is_a_buffered_event_and_no_further_alarm() -> None:
    one, five = (derive(document("pairs", -2, 10), grid(groups)) for groups in (1, 5))
    buffered = one.pop("expected_buffered_events")
    # 2 and 3 events a second, for 10 s + 5 s and 2 s + 3 s.
    assert buffered == {"x": 30, "y": 15}
    assert five.pop("expected_buffered_events") == {"x": 150, "y": 75}
    assert one == five


def test_plan_says_how_often_an_event_is_held() -> None:
    found = plan(document("pairs", -2, 10))["partitioning"]
    assert (found["by"], found["copies"]) == ("key", 1)
    for groups, cells in ((1, 1), (2, 3), (5, 15)):
        found = plan(document("pairs", -2, 10), grid(groups))["partitioning"]
        assert (found["by"], found["groups"], found["cells"], found["copies"]) == (
            "grid",
            groups,
            cells,
            groups,
        )
    assert_names(found["why"], "5 cells of its group", "one of the 15 cells")
