"""Conditions of the crash matrix: of every kind, and every way in which an operator has a state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from correlation.event_query.language.documents import query_to_document
from correlation.event_query.language.parser import parse_query
from tests.crash.load import GRID, SETS

if TYPE_CHECKING:
    from correlation.resources.records import Document

NEAR: dict[str, Any] = {
    "kind": "mutual_deadline",
    "a": "a",
    "b": "b",
    "window_us": 3_000,
    "threshold": "0.6",
}
_QUERY = query_to_document(
    parse_query(
        """DETECT Alone {}
        ON event x: A {}
           not event y: B {}
        WHERE x.rt.end <= y.rt.begin, y.rt.begin <= x.rt.end + 3 ms
        END"""
    )
)
_LIST: dict[str, Any] = {
    "kind": "topk_similarity",
    "k": 5,
    "window_us": 300_000,
    "similarity": "jaccard",
    "report": "every",
    "search": "shortest",
}
CONDITIONS: dict[str, Document] = {
    "near": NEAR,
    "self": {**NEAR, "b": "a", "window_us": 1_000},
    "best": {**NEAR, "emit": "best"},
    "unmatched": {**NEAR, "emit": "unmatched", "window_us": 1_000},
    "factored": {**NEAR, "output": "factored"},
    "query": {
        "kind": "event_query",
        "query": _QUERY,
        "types": {"A": "a", "B": "b"},
        "threshold": "0.5",
    },
    # A list of each key, and one list that the slots share, which is merged after their output.
    "list": {**_LIST, "a": SETS, "per_key": True},
    "merged": {**_LIST, "a": GRID, "per_key": False},
}


def self_condition(stream: str, window_us: int = 2_000) -> Document:
    """Return a condition between the events of one stream."""
    return {**NEAR, "a": stream, "b": stream, "window_us": window_us}
