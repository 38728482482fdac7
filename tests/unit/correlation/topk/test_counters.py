"""Counters of the work that searches do."""

from __future__ import annotations

import pytest

from correlation.engine.heartbeats import CLOSED, Heartbeat
from tests.support.query_slots import QuerySlot, counters_of
from tests.support.topk import STREAMS, Tagged, make_tag_block, make_tag_streams, topk_control

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")


def test_sets_that_are_met_verified_and_passed_to_the_stock_are_counted() -> None:
    sets = ["abcd", "abcd", "ai", "e", "dg"]
    tagged = [Tagged(at, at, frozenset(it), offset=at) for at, it in enumerate(sets)]
    slot = QuerySlot(make_tag_streams(keyed=False))
    slot.advance(make_tag_block([], [topk_control(0, {"k": 1})]))
    closed = [Heartbeat(name, None, CLOSED, None) for name in STREAMS]
    outcome = slot.advance(make_tag_block(tagged, (), closed))
    found = {
        name.removeprefix("topk_"): value
        for name, value in counters_of(outcome, "t").items()
        if name.startswith("topk_")
    }
    # As in test_search: the overlap of the last set with the second one need not be counted.
    assert found == {
        "changes_total": 1,
        "sets_total": 5,
        "precandidates_total": 3,
        "verified_total": 2,
        "candidates_total": 2,
        "rebuilds_total": 0,
    }
