"""Merge of the local lists of slots: order, reasons, and lists that are not known."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from correlation.buffers.buffer import StreamBuffer
from correlation.errors import CorrelationError
from correlation.limits import UNKNOWN_WATERMARK
from correlation.operators import Evaluation, Share
from correlation.shares import MissingShareError, merge_shares
from correlation.topk.condition import TopKCondition
from correlation.topk.listed import ListedPair, SetRef
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
from correlation.topk.similarities import HAMMING, OVERLAP
from correlation.topk.stored import StoredState, withdraw_lists

CONDITION = TopKCondition("c", 3, "left", "right", 2, 10, OVERLAP, output_topic="mine")
MOMENT = Moment(as_of_us=30, previous_us=25)


def pair(overlap: int, older: tuple[int, str], newer: tuple[int, str]) -> ListedPair:
    """Return a pair of sets given by time and id, the older of A and the newer of B."""
    refs = [
        SetRef(time, side, name.encode(), 9) for side, (time, name) in enumerate((older, newer))
    ]
    return ListedPair(overlap, overlap, *refs)


A = pair(5, (21, "a"), (22, "b"))
B = pair(4, (21, "a"), (23, "c"))
C = pair(3, (19, "d"), (22, "b"))
# At the end of the block, sets of the time 20 are still valid; 25 was the end of the one before.
VALID, OLD = pair(5, (20, "e"), (25, "f")), pair(3, (20, "e"), (25, "f"))
NEW = pair(5, (20, "e"), (26, "g"))


def share(
    local: LocalList, moment: Moment = MOMENT, condition: TopKCondition = CONDITION
) -> list[Share]:
    return [make_share(SlotShare(condition, moment, local))]


def changed(left: list[ListedPair], entered: list[ListedPair]) -> list[Step]:
    return [Step((ADVANCED, *NET), 30, left, entered)]


def merge(*slots: list[Share]) -> list[Any]:
    """Return the values of the merged records, or their keys if they are tombstones."""
    found = evaluate(*slots)
    records = [
        record.key if record.value is None else json.loads(record.value)
        for result in found.results
        for record in result.records(99)
    ]
    changes = sum(isinstance(it, dict) and "change" in it for it in records)
    assert found.alarms == changes
    assert found.counts == [("topk_changes_total", {"condition": "c"}, changes)]
    return records


def evaluate(*slots: list[Share]) -> Evaluation:
    """Return the merged shares of a block."""
    (merged,) = merge_shares(slots)
    assert merged.condition == "c"
    assert merged.evaluation is not None
    return merged.evaluation


def moves(records: list[Any]) -> list[tuple[Any, ...]]:
    return [
        (it["change"], it["rank"], it["older"]["id"], it["newer"]["id"], it["reason"])
        for it in records
        if "change" in it
    ]


def test_best_pairs_of_all_slots_are_listed_as_of_the_block() -> None:
    records = merge(share(LocalList([A], changed([], [C]))), share(LocalList([], changed([], [B]))))
    # C is among the best of its slot, not of all.
    assert moves(records) == [("entered", 2, "a", "c", "expiry")]
    *_, present = records
    assert (present["as_of"], present["version"]) == (30, 3)
    assert [(it["rank"], it["overlap"]) for it in present["items"]] == [(1, 5), (2, 4)]


def test_shares_without_changes_of_the_best_pairs_write_nothing() -> None:
    assert merge(share(LocalList([A, B], ())), share(LocalList([], changed([], [C])))) == []
    assert merge_shares([share(LocalList([A], ())), share(LocalList([B], ()))]) == []


@pytest.mark.parametrize(
    ("before", "left", "entered", "wanted"),
    [
        # Newer sets of the end of the block before are not new.
        ([A, B], [], [VALID], [("left", 2, "a", "c", "set"), ("entered", 2, "e", "f", "expiry")]),
        ([A, B], [], [NEW], [("left", 2, "a", "c", "set"), ("entered", 2, "e", "g", "set")]),
        # A set of the time as_of - window is valid: the pair left because of a better one.
        ([A, OLD], [OLD], [B], [("left", 2, "e", "f", "set"), ("entered", 2, "a", "c", "expiry")]),
        ([A, C], [C], [B], [("left", 2, "d", "b", "expiry"), ("entered", 2, "a", "c", "expiry")]),
    ],
)
def test_reasons_of_a_batch_follow_from_the_times_of_the_sets(
    before: list[ListedPair],
    left: list[ListedPair],
    entered: list[ListedPair],
    wanted: list[tuple[Any, ...]],
) -> None:
    slots = LocalList(before, changed(left, [])), LocalList([], changed([], entered))
    records = merge(*map(share, slots))
    assert moves(records) == wanted


def test_pairs_of_equal_similarity_are_in_the_order_of_their_sets() -> None:
    """The later older set first, then the earlier newer one; ids are compared as bytes."""
    names = ["a", "\N{LATIN SMALL LETTER E WITH ACUTE}", "\N{GRINNING FACE}", "\ufb01"]
    pairs = [pair(5, (21, name), (22, "z")) for name in names]
    wide = replace(CONDITION, k=10)
    found = merge(*(share(LocalList([], changed([], [it])), condition=wide) for it in pairs))
    assert [it["older"]["id"] for it in found[-1]["items"]] == [
        names[2],
        names[3],
        names[1],
        names[0],
    ]
    raw = pairs[0]._replace(older=SetRef(21, 0, b"\xff", 9))
    found = merge(*(share(LocalList([], changed([], [it]))) for it in (pairs[2], raw)))
    assert [it["older"]["id"] for it in found[-1]["items"]] == ["\\xff", names[2]]


def test_late_sets_of_a_slot_make_one_change_of_the_block() -> None:
    every = replace(CONDITION, every=True)
    late = MOMENT._replace(is_late=True)
    steps = [
        Step((ADVANCED, 26, 0, 0, b"g"), 26, [C], [NEW]),
        Step((ADVANCED, 28, 1, 0, b""), 28, [NEW], [C]),
        Step((ADVANCED, 29, 0, 0, b"h"), 29, [C], [B]),
    ]
    others = share(LocalList([A], ()), condition=every)
    assert moves(merge(others, share(LocalList([C], steps), condition=every))) == [
        ("left", 2, "d", "b", "set"),
        ("entered", 2, "e", "g", "set"),
        ("left", 2, "e", "g", "expiry"),
        ("entered", 2, "d", "b", "expiry"),
        ("left", 2, "d", "b", "set"),
        ("entered", 2, "a", "c", "set"),
    ]
    records = merge(others, share(LocalList([C], steps), late, every))
    assert moves(records) == [("left", 2, "d", "b", "set"), ("entered", 2, "a", "c", "set")]
    assert {it["time"] for it in records if "change" in it} == {30}


def test_list_that_is_not_known_is_withdrawn() -> None:
    lost = MOMENT._replace(is_lost=True)
    assert merge(share(LocalList([], ()), lost), share(LocalList([], ()), lost)) == [b"c"]


@pytest.mark.parametrize(("groups", "records"), [(1, []), (2, [b"c"])])
def test_list_that_cannot_be_built_again_is_withdrawn_by_one_slot_or_all(
    groups: int, records: list[bytes]
) -> None:
    """Without several groups the list was that of another slot, which has events."""
    state = StoredState(30, UNKNOWN_WATERMARK, "", {}, groups).to_bytes()
    buffers = {"left": StreamBuffer(), "right": StreamBuffer()}
    withdrawn = withdraw_lists(CONDITION, buffers, state)
    assert not withdrawn.results
    assert len(withdrawn.shares) == len(records)
    assert [it for one in withdrawn.shares for it in merge([one], [one])] == records


def test_withdrawn_and_new_shares_of_a_condition_are_merged_apart() -> None:
    built = Moment(25, UNKNOWN_WATERMARK, "condition", is_lost=True)
    withdrawn = share(LocalList([A], [Step((BUILT, *NET), 25, [A], [])]), built)
    slots = [[*withdrawn, *share(LocalList([], changed([], [B])))] for _ in range(1)]
    evaluations = [it.evaluation for it in merge_shares(slots) if it.evaluation]
    assert [len(it.results) for it in evaluations] == [2, 2]
    (change, tombstone), (entered, present) = (
        [record for result in it.results for record in result.records(9)] for it in evaluations
    )
    # Pairs that leave because the condition ends have no response time.
    assert [(it.alarms, it.ready_us.tolist()) for it in evaluations] == [(1, []), (1, [30])]
    assert json.loads(change.value or b"")["reason"] == "condition"
    assert tombstone.value is None
    assert json.loads(entered.value or b"")["older"]["id"] == "a"
    assert json.loads(present.value or b"")["items"][0]["overlap"] == 4


def test_every_slot_must_have_a_share() -> None:
    assert merge_shares([]) == merge_shares([[], []]) == []
    with pytest.raises(MissingShareError, match="condition c, version 3: 1 of 2 slots"):
        merge_shares([share(LocalList([A], ())), []])
    assert issubclass(MissingShareError, CorrelationError)


def test_last_value_is_that_of_the_last_pair_of_a_full_list() -> None:
    one, two = LocalList([], changed([], [A])), LocalList([], changed([], [B, C]))
    assert evaluate(share(one), share(LocalList([], ()))).gauges == {}
    assert evaluate(share(one), share(two)).gauges == {"topk_last_value": 4}
    # The list itself has not changed.
    kept = LocalList([B], ()), LocalList([A], changed([], [C]))
    assert evaluate(*map(share, kept)).gauges == {"topk_last_value": 4}


def test_pairs_that_records_of_the_block_completed_have_their_timestamps() -> None:
    one, two = LocalList([C], changed([C], [A])), LocalList([A], changed([], [NEW]))
    slots = [
        [make_share(SlotShare(CONDITION, MOMENT, local, arrived_us))]
        # C does not enter the merged list, and A has entered it before.
        for local, arrived_us in ((one, {C.newer: 3, B.newer: 4}), (two, {NEW.newer: 5}))
    ]
    assert evaluate(*slots).record_timestamp_us.tolist() == [5]


def test_removed_condition_is_in_the_order_of_the_shares() -> None:
    withdrawn = share(LocalList([A], [Step((BUILT, *NET), 25, [A], [])]))
    removed = Share("", "c", 0, b"")
    begun = share(LocalList([], changed([], [B])))
    slots = [[*withdrawn, removed, *begun], [*withdrawn, removed, *begun]]
    found = merge_shares(slots)
    assert [it.condition for it in found] == ["c"] * 3
    assert [it.evaluation is None for it in found] == [False, True, False]
    # A slot of a rebuilt job may have removed the condition before.
    assert [it.evaluation for it in merge_shares([[removed], []])] == [None]


def test_shares_keep_ids_that_are_not_text_and_the_topic_of_the_condition() -> None:
    raw = A._replace(older=SetRef(21, 0, b"\x00\xff", 9))
    condition = replace(CONDITION, similarity=HAMMING)
    local = LocalList([raw], changed([raw], [B]))
    written = SlotShare(condition, MOMENT, local, {B.newer: 7, raw.older: 8})
    found = SlotShare.from_bytes(written.to_bytes())
    assert found == written
    assert found.condition.output_topic == "mine"
