"""Lists of slots that begin in consecutive blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from correlation.kinds import KINDS
from correlation.operators import Share
from correlation.shares import Merged, join_shares, merge_shares
from correlation.topk.local import (
    ADVANCED,
    BUILT,
    NET,
    LocalList,
    Moment,
    SlotShare,
    Step,
    make_share,
)
from tests.unit.correlation.topk.test_merging import (
    CONDITION,
    MOMENT,
    NEW,
    A,
    B,
    C,
    changed,
    evaluate,
    merge,
    moves,
    share,
)

if TYPE_CHECKING:
    from correlation.topk.listed import ListedPair

FORMER = Moment(as_of_us=25, previous_us=20)
WITHDRAWN = Moment(30, built="condition", is_lost=True)


def withdrawn(pairs: list[ListedPair]) -> list[Share]:
    """Return the share of a slot that withdraws its list."""
    return share(LocalList(pairs, [Step((BUILT, *NET), 30, pairs, ())]), WITHDRAWN)


def test_a_slot_that_is_ahead_begins_with_its_list_before() -> None:
    ahead = [
        *share(LocalList([C], changed([C], [B])), FORMER),
        *share(LocalList([B], changed([], [A]))),
    ]
    records = merge(*join_shares([ahead, share(LocalList([], changed([], [NEW])))]))
    assert moves(records) == [
        ("left", 1, "d", "b", "expiry"),
        ("entered", 1, "a", "b", "set"),
        ("entered", 2, "e", "g", "set"),
    ]
    assert [it["as_of"] for it in records if "as_of" in it] == [30]


@pytest.mark.parametrize("is_late", [False, True])
def test_every_event_is_reported_unless_sets_came_late(*, is_late: bool) -> None:
    def step(time_us: int, left: list[ListedPair], entered: list[ListedPair]) -> Step:
        return Step((ADVANCED, time_us, 0, 1, b"c"), time_us, left, entered)

    every = replace(CONDITION, every=True)
    ahead = [
        *share(LocalList([], [step(23, [], [B])]), FORMER, every),
        *share(LocalList([B], [step(27, [B], [])]), MOMENT, every),
    ]
    behind = share(LocalList([], [step(26, [], [A])]), MOMENT._replace(is_late=is_late), every)
    found = moves(merge(*join_shares([ahead, behind])))
    assert [it[0] for it in found if it[2:4] == ("a", "c")] == (
        [] if is_late else ["entered", "moved", "left"]
    )
    last = ("entered", 1, "a", "b") if is_late else ("left", 2, "a", "c")
    assert found[-1][:4] == last


def test_pairs_that_entered_and_left_again_are_no_change() -> None:
    ahead = [
        *share(LocalList([A], changed([], [B])), FORMER),
        *share(LocalList([A, B], changed([B], []))),
    ]
    assert merge(*join_shares([ahead, share(LocalList([], ()))])) == []


def test_a_withdrawn_list_has_the_reason_and_the_pairs_that_were_written() -> None:
    ahead = [*share(LocalList([C], changed([], [A])), FORMER), *withdrawn([A, C])]
    *changes, present = merge(*join_shares([ahead, withdrawn([])]))
    assert moves(changes) == [("left", 1, "d", "b", "condition")]
    assert present == b"c"


def test_a_slot_that_has_withdrawn_its_list_waits_for_the_others() -> None:
    (joined, other) = join_shares([withdrawn([A]), [*share(LocalList([B], ())), *withdrawn([B])]])
    *changes, _ = merge(joined, other)
    assert [it[:2] for it in moves(changes)] == [("left", 1), ("left", 2)]


def test_versions_of_which_a_slot_has_no_share_are_left_out() -> None:
    new = replace(CONDITION, version=4)
    mine = share(LocalList([A], changed([], [B])))
    both = [*mine, *share(LocalList([], changed([], [C])), MOMENT, new)]
    assert [[it.version for it in one] for one in join_shares([mine, both])] == [[3], [3]]


def test_shares_of_the_same_block_stay_as_they_are() -> None:
    steps = [Step((BUILT, *NET), 30, [], [A]), *changed([A], [B])]
    slots = [share(LocalList([], steps), Moment(30, built="reset")), share(LocalList([C], ()))]
    assert join_shares(slots) == slots


def test_kinds_that_cannot_join_shares_are_left_out() -> None:
    mine = [Share("unmatched", "d", 1, b"x"), *share(LocalList([], changed([], [A])))]
    other = replace(KINDS["topk_similarity"], join_shares=None)
    with patch("correlation.shares.KINDS", {**KINDS, "unmatched": other}):
        found = join_shares([[mine[0], *mine], mine])
    assert [[it.condition for it in one] for one in found] == [["c"], ["c"]]


def test_removed_condition_ends_once() -> None:
    removed = Share("", "c", 0, b"")
    assert join_shares([[removed, removed], [removed]]) == [[removed], [removed]]
    # The shares of a slot may be missing: the conditions of most kinds have no others.
    found = join_shares([[], [removed], []])
    assert merge_shares(found) == [Merged("c", None)]


def test_records_keep_their_timestamps() -> None:
    first = SlotShare(CONDITION, FORMER, LocalList([], changed([], [A])), {A.newer: 77})
    ahead = [make_share(first), *share(LocalList([A], ()))]
    found = evaluate(*join_shares([ahead, share(LocalList([], ()))]))
    assert found.record_timestamp_us.tolist() == [77]
