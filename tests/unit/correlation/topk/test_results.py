"""Records of the changes and of the present lists of top-k conditions."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np

from correlation.operators import OutputRecord
from correlation.topk.condition import TopKCondition
from correlation.topk.listed import ListedPair, Move, SetRef
from correlation.topk.results import CHANGES, PRESENT, KeyedMoves, TopKChanges, present_lists
from correlation.topk.similarities import COSINE, HAMMING

CONDITION = TopKCondition("c", 4, "left", "right", 2, 10, COSINE)
OLDER, YOUNGER = SetRef(3, 1, "ä/1".encode(), 4), SetRef(7, 0, b'b"', 9)
PAIR = ListedPair(1, 3, OLDER, YOUNGER)
MOVES = (
    Move("left", 1, PAIR, "expiry", 13),
    Move("entered", 2, PAIR, "set", 14),
)
SHOWN = {
    "similarity": 0.5,
    "overlap": 3,
    "sizes": [4, 9],
    "older": {"stream": "right", "id": "ä/1", "time": 3},
    "newer": {"stream": "left", "id": 'b"', "time": 7},
}


def read(record: OutputRecord) -> dict[str, Any]:
    """Return the JSON of a record."""
    found: dict[str, Any] = json.loads(record.value or b"")
    return found


def test_changes_are_records_in_their_order() -> None:
    changes = TopKChanges(CONDITION, [KeyedMoves(None, MOVES)])
    records = list(changes.records(np.array([20, 21])))
    first = {
        "v": 1,
        "kind": "topk_similarity",
        "condition": "c",
        "version": 4,
        "change": "left",
        "rank": 1,
        **SHOWN,
        "reason": "expiry",
        "time": 13,
        "detected_at": 20,
    }
    second = {"change": "entered", "rank": 2, "reason": "set", "time": 14, "detected_at": 21}
    assert [*map(read, records)] == [first, first | second]
    assert [it.key for it in records] == ['c/["ä/1", "b\\""]'.encode()] * 2
    assert len({it.ident for it in records}) == len(changes) == 2
    assert changes.ready_us().tolist() == [13, 14]


def test_keys_and_ids_that_contain_separators_are_different_pairs() -> None:
    def record_key(key: bytes, older: str, newer: str) -> bytes:
        refs = OLDER._replace(id=older.encode()), YOUNGER._replace(id=newer.encode())
        pair = PAIR._replace(older=refs[0], newer=refs[1])
        moves = [KeyedMoves(key, [MOVES[0]._replace(pair=pair)])]
        (record,) = TopKChanges(CONDITION, moves).records(0)
        assert read(record)["key"] == key.decode()
        return record.key

    cases = [(b"k", "a", "b"), (b'k","a', "b", "c"), (b"k", 'a", "b', "c"), (b"k/a", "a", "b")]
    assert len({record_key(*it) for it in cases}) == len(cases)


def test_headings_name_channel_type_and_topic() -> None:
    changes = TopKChanges(CONDITION, [])
    assert (len(changes), list(changes.records(0)), changes.ready_us().tolist()) == (0, [], [])
    heading = changes.heading(5)
    assert (heading.channel, heading.topic) == (CHANGES.name, None)
    assert heading.headers["ce_type"] == "coincide.topk.v1"
    condition = replace(CONDITION, output_topic="own")
    assert TopKChanges(condition, []).heading(5).topic == "own"
    listed = present_lists(condition, 0, []).heading(5)
    assert (listed.channel, listed.topic) == (PRESENT.name, None)


def test_lists_have_ranks_and_empty_lists_are_withdrawn() -> None:
    second = PAIR._replace(overlap=1)
    updates = present_lists(
        replace(CONDITION, similarity=HAMMING), 9, [(b"k", [PAIR, second]), (b"m", [])]
    )
    listed, gone = updates.records(30)
    distance = {name: it for name, it in SHOWN.items() if name != "similarity"}
    assert read(listed) == {
        "v": 1,
        "kind": "topk_similarity",
        "condition": "c",
        "version": 4,
        "key": "k",
        "as_of": 9,
        "detected_at": 30,
        "items": [
            {"rank": 1, "distance": 7, **distance},
            {"rank": 2, "distance": 11, **distance, "overlap": 1},
        ],
    }
    assert (listed.key, gone.key, gone.value) == (b"c/k", b"c/m", None)


def test_the_only_list_of_a_condition_has_its_name() -> None:
    (record,) = present_lists(CONDITION, 9, [(None, [PAIR])]).records(30)
    assert (record.key, read(record)["items"]) == (b"c", [{"rank": 1, **SHOWN}])
    assert "key" not in read(record)
