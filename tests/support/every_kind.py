"""Conditions of every kind, and every way in which an operator of pairs or queries has a state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from correlation.event_query.language.documents import query_to_document
from correlation.event_query.language.parser import parse_query

if TYPE_CHECKING:
    from correlation.resources.records import Document

_QUERY = query_to_document(
    parse_query(
        """DETECT Alone {}
        ON event x: A {}
           not event y: B {}
        WHERE x.rt.end <= y.rt.begin, y.rt.begin <= x.rt.end + 3 ms
        END"""
    )
)
# A list of the most similar sets; its stream is missing.
LIST: dict[str, Any] = {
    "kind": "topk_similarity",
    "k": 5,
    "window_us": 300_000,
    "similarity": "jaccard",
    "search": "shortest",
}


def near(window_us: int) -> dict[str, Any]:
    """Return a condition on pairs of the streams "a" and "b"."""
    return {
        "kind": "mutual_deadline",
        "a": "a",
        "b": "b",
        "window_us": window_us,
        "threshold": "0.6",
    }


def conditions_of(window_us: int, self_window_us: int) -> dict[str, Document]:
    """Return conditions on the streams "a" and "b", by name.

    Parameters
    ----------
    window_us
        Window of most conditions.
    self_window_us
        Window of the condition between the events of "a".
    """
    pair = near(window_us)
    return {
        "near": pair,
        "self": {**pair, "b": "a", "window_us": self_window_us},
        "best": {**pair, "emit": "best"},
        "unmatched": {**pair, "emit": "unmatched", "window_us": 1_000},
        "factored": {**pair, "output": "factored"},
        "query": {
            "kind": "event_query",
            "query": _QUERY,
            "types": {"A": "a", "B": "b"},
            "threshold": "0.5",
        },
    }
