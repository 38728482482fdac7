"""Plain judge of the demo's top-k list: all pairs of messages, in a few lines.

The judge compares every message with every earlier one of the window. It has no inverted lists, no
bounds and no stock, and shares no code with the evaluation.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from cli.demo.messages import split_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cli.demo.events import DemoEvent

_SECOND_US = 1_000_000


class Listed(NamedTuple):
    """A pair of a list: ids of the messages, number of common words, and Jaccard similarity."""

    older: str
    newer: str
    overlap: int
    similarity: float


class _Pair(NamedTuple):
    """A pair: its place in the order of pairs, the moments at which it is valid, in µs."""

    place: tuple[Fraction, int, int]
    begin_us: int
    end_us: int
    listed: Listed


class ListJudge:
    """Finds the list of a condition at any moment.

    Parameters
    ----------
    condition
        Document of the condition, as the service stores it.
    events
        The events that were sent.
    """

    def __init__(self, condition: Mapping[str, Any], events: Iterable[DemoEvent]) -> None:
        self._k = int(condition["k"])
        self._pairs = [*_pairs(condition, [it for it in events if it.topic == condition["a"]])]

    def list_at(self, as_of_us: int) -> list[Listed]:
        """Return the list when exactly the messages up to a time, in µs, have taken effect."""
        valid = sorted(it for it in self._pairs if it.begin_us <= as_of_us <= it.end_us)
        return [it.listed for it in valid[: self._k]]


def _pairs(condition: Mapping[str, Any], events: Iterable[DemoEvent]) -> Iterator[_Pair]:
    """Yield all pairs of similar messages."""
    where, window_us = condition["where"]["a"], int(condition["window_us"])
    minimum = Fraction(condition["min_similarity"])
    records = [orjson.loads(event.value) for event in events]
    messages = sorted(
        (it["sent"] * _SECOND_US, it["message"], split_words(it["text"]))
        for it in records
        if it["words"] >= where["words"]["min"] and it["repeated"] == where["repeated"]
    )
    first = 0
    for new, (time_us, newer, words) in enumerate(messages):
        while messages[first][0] < time_us - window_us:
            first += 1
        for old in range(first, new):
            older_us, older, others = messages[old]
            overlap = len(words & others)
            union = len(words) + len(others) - overlap
            if overlap and overlap * minimum.denominator >= union * minimum.numerator:
                listed = Listed(older, newer, overlap, overlap / union)
                place = (-Fraction(overlap, union), -old, new)
                yield _Pair(place, time_us, older_us + window_us, listed)


def listed_of(item: Mapping[str, Any]) -> Listed:
    """Return the pair of an item of a list, or of a change."""
    ids = item["older"]["id"], item["newer"]["id"]
    return Listed(*ids, item["overlap"], item["similarity"])
