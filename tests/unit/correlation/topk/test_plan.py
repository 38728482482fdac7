"""Costs and plans of top-k conditions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from correlation.condition_kind import Load
from correlation.resources.partitioning import Partitioning
from correlation.topk.condition import TopKCondition
from correlation.topk.plan import derive_costs, plan_condition
from correlation.topk.similarities import COSINE, JACCARD
from tests.support.topk import DELAY, make_tag_streams

STREAMS = make_tag_streams(keyed=False)
S = 1_000_000
SELF = TopKCondition("c", 1, "left", "left", 7, 2 * S, JACCARD)
CROSSED = replace(SELF, b="right")


def test_costs_without_rates() -> None:
    assert derive_costs(SELF, STREAMS, Load({})) == {
        "buffer_horizon_us": {"left": 2 * S + DELAY},
        "worst_case_alarm_latency_us": DELAY,
    }


def test_sets_wait_for_the_slower_stream() -> None:
    slow = replace(STREAMS["right"], max_delay_us=S, max_skew_us=500, clock="live")
    found = derive_costs(CROSSED, {**STREAMS, "right": slow}, Load({"left": 2.0}))
    assert found == {
        "buffer_horizon_us": {"left": 3 * S + 500, "right": 3 * S + 500},
        "worst_case_alarm_latency_us": S + 500,
    }


def test_costs_of_known_rates() -> None:
    streams = {name: replace(it, max_delay_us=S) for name, it in STREAMS.items()}
    found = derive_costs(CROSSED, streams, Load({"left": 10.0, "right": 0.5}))
    # Sets are kept for 3 s.
    assert found["expected_buffered_events"] == {"left": 30, "right": 2}
    assert found["max_stock_pairs"] == 7 * 31.5 // 1


def test_plan_of_one_stream() -> None:
    found = plan_condition(SELF, STREAMS)
    assert found["sentences"] == [
        "The list holds the 7 most similar pairs of sets of left.",
        "A set takes part for 2s; a pair ends with its older set.",
        "Sets take effect in the order of their times, when all watermarks have passed them.",
    ]
    assert (found["similarity"], found["report"]) == ("jaccard", "the net change of a batch")
    assert found["partitioning"]["why"] == "all events meet in one slot"


def test_plan_says_that_sets_without_delay_wait_for_a_later_time() -> None:
    slow = STREAMS["left"]
    prompt = replace(slow, max_delay_us=0)
    for condition, left, waits in (
        (SELF, prompt, True),
        (SELF, slow, False),
        (CROSSED, prompt, False),
    ):
        found = plan_condition(condition, {**STREAMS, "left": left})
        said = [it for it in found["sentences"] if it.startswith("With max_delay 0 a set takes")]
        assert len(said) == waits


def test_plan_and_costs_of_a_grid_with_several_groups() -> None:
    streams = {"left": replace(STREAMS["left"], partitioning=Partitioning("grid", 3))}
    found = plan_condition(SELF, streams)
    assert found["sentences"][-1] == (
        "Each cell of the grid has a list; the lists of all cells are merged after each batch."
    )
    assert (found["partitioning"]["cells"], found["partitioning"]["copies"]) == (6, 3)
    one, three = (derive_costs(SELF, it, Load({"left": 10.0})) for it in (STREAMS, streams))
    assert three["expected_buffered_events"]["left"] == 3 * one["expected_buffered_events"]["left"]


@pytest.mark.parametrize(
    ("shortest", "search"),
    [(True, "shortest inverted list first"), (False, "list of the newest token first")],
)
def test_plan_of_two_streams_with_a_list_for_each_key(shortest: bool, search: str) -> None:  # noqa: FBT001 - a case
    condition = replace(CROSSED, per_key=True, every=True, similarity=COSINE, shortest=shortest)
    found = plan_condition(condition, make_tag_streams(keyed=True))
    assert found["sentences"][0] == (
        "The list of each join key holds the 7 most similar pairs of one set of left and one of "
        "right."
    )
    assert (found["search"], found["similarity"]) == (search, "cosine")
    assert found["report"] == "every set and expiry"
    assert found["partitioning"]["why"] == "events with equal keys meet in the slot of the key"
