"""A condition that is replaced by one of another kind is evaluated as a new condition is."""

from __future__ import annotations

import json
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from correlation.event_query.language.documents import query_to_document
from correlation.event_query.language.parser import parse_query
from correlation.kinds import KINDS
from tests.support.query_slots import QuerySlot
from tests.support.records import built_in_checker
from tests.support.slots import control_record
from tests.support.topk import Tagged, make_tag_block, make_tag_streams

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from correlation.engine.program import Outcome

Document = dict[str, Any]

SECOND = 1_000_000

_PAIRS: Document = {
    "kind": "mutual_deadline",
    "a": "left",
    "b": "right",
    "window_us": 5 * SECOND,
    "threshold": "0.5",
}
_QUERY = """
DETECT Alone ON event l: left not event r: right
WHERE l.rt.end <= r.rt.begin, r.rt.begin <= l.rt.end + 5 s END
"""
DOCUMENTS: Mapping[str, Document] = {
    "pairs": _PAIRS,
    "best": {**_PAIRS, "emit": "best"},
    "unmatched": {**_PAIRS, "emit": "unmatched"},
    "blocks": {**_PAIRS, "block_size": 100, "block_interval_us": 10**9},
    "query": {
        "kind": "event_query",
        "query": query_to_document(parse_query(_QUERY)),
        "types": {"left": "left", "right": "right"},
        "threshold": None,
    },
    "list": {
        "kind": "topk_similarity",
        "a": "left",
        "k": 3,
        "window_us": 10 * SECOND,
        "similarity": "jaccard",
        "per_key": False,
        "report": "batch",
        "search": "shortest",
    },
}
CHANGES = [
    (former, new)
    for former, new in product(DOCUMENTS, repeat=2)
    if not KINDS[DOCUMENTS[new]["kind"]].continues(KINDS[DOCUMENTS[former]["kind"]])
]
# Names of the condition that is replaced, and of one that is registered at the same moment.
REPLACED, NEW = "replaced", "new"


def _event(number: int, time: int, stream: str, tokens: str) -> Tagged:
    return Tagged(number, time * SECOND, frozenset(tokens), stream, offset=number)


BEFORE = [_event(0, 100, "left", "xy"), _event(1, 101, "right", "xy"), _event(2, 103, "left", "xz")]
AFTER = [
    [_event(3, 104, "left", "xy"), _event(4, 105, "right", "yz")],
    [_event(5, 112, "right", "xy"), _event(6, 113, "left", "xyz"), _event(7, 125, "left", "x")],
    [_event(8, 140, "left", "xy"), _event(9, 141, "right", "xyz")],
]


def _results(outcome: Outcome, name: str) -> list[Document]:
    """Return the results of the second version of a condition, without what names it."""
    found = []
    for _, record in built_in_checker().records_of(outcome):
        document = json.loads(record.value or b"{}")
        if document.get("condition") == name and document["version"] == 2:
            found.append(
                {it: document[it] for it in document.keys() - {"condition", "alarm_id", "id"}}
            )
    return sorted(found, key=str)


def _change(former: str, new: str, *, restarted: bool) -> Sequence[tuple[list[Document], ...]]:
    """Replace a condition; return its results and those of a new one, block by block."""
    slot = QuerySlot(make_tag_streams(keyed=False))
    slot.partitions = {"left": 1, "right": 1}
    slot.restart()
    slot.advance(make_tag_block([], [control_record(0, REPLACED, DOCUMENTS[former])]))
    slot.advance(make_tag_block(BEFORE))
    both = [
        control_record(number, name, DOCUMENTS[new], 2)
        for number, name in enumerate((REPLACED, NEW), 1)
    ]
    found = []
    for block in (make_tag_block([], both), *map(make_tag_block, AFTER)):
        if restarted:
            slot.restart()
        outcome = slot.advance(block)
        found.append((_results(outcome, REPLACED), _results(outcome, NEW)))
    return found


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize(("former", "new"), CHANGES)
def test_condition_of_another_kind_begins_as_a_new_one(
    former: str, new: str, *, restarted: bool
) -> None:
    found = _change(former, new, restarted=restarted)
    assert [replaced for replaced, _ in found] == [begun for _, begun in found]
    # A block of 100 events is not complete.
    assert any(replaced for replaced, _ in found) or new == "blocks"


def test_changes_between_all_kinds_are_tried() -> None:
    tried = {(DOCUMENTS[former]["kind"], DOCUMENTS[new]["kind"]) for former, new in CHANGES}
    kinds = {"timing": "mutual_deadline", "event_query": "event_query"}
    kinds["topk_similarity"] = "topk_similarity"
    assert {it.state or it.name for it in KINDS.values()} == set(kinds)
    assert tried == {(a, b) for a, b in product(kinds.values(), repeat=2) if a != b}
