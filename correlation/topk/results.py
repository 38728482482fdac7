"""Results of a top-k condition: changes of its lists, and the present lists."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from correlation.buffers.columns import Int64s
from correlation.lists import ListUpdates, PresentList, list_types
from correlation.operators import (
    Encode,
    Heading,
    OutputRecord,
    encode_json,
    make_heading,
    result_headers,
)
from correlation.resources.schemas import (
    COUNT,
    NUMBER,
    POSITIVE,
    STRING,
    TIME_US,
    RecordType,
    Schema,
    choice,
    constant,
    described,
    object_of,
    tuple_of,
)
from correlation.resources.topics import Channel
from correlation.result_format import as_text
from correlation.topk.change_format import CE_TYPE, KIND, VERSION
from correlation.topk.condition import TopKCondition
from correlation.topk.listed import ListedPair, Move, SetRef

CHANGES = Channel("topk", "Changes of the lists of topk_similarity conditions.")
# Metrics of lists, of one slot or merged.
CHANGES_METRIC, LAST_VALUE_METRIC = "topk_changes_total", "topk_last_value"
PRESENT = Channel("topk.current", "Present lists of topk_similarity conditions.", compacted=True)


class KeyedMoves(NamedTuple):
    """Changes of the list of a join key; the key is None if the condition has a single list."""

    key: bytes | None
    moves: Sequence[Move]


def describe_pair(condition: TopKCondition, pair: ListedPair) -> dict[str, Any]:
    """Return value, overlap and sets of a pair as a JSON-able dict."""
    sizes = pair.older.size, pair.newer.size
    return {
        condition.measure: condition.similarity.value(pair.overlap, *sizes),
        "overlap": pair.overlap,
        "sizes": list(sizes),
        "older": _describe_set(condition, pair.older),
        "newer": _describe_set(condition, pair.newer),
    }


def _describe_set(condition: TopKCondition, ref: SetRef) -> dict[str, Any]:
    stream = condition.b if ref.side else condition.a
    return {"stream": stream, "id": as_text(ref.id), "time": ref.time_us}


def last_value(condition: TopKCondition, last: Iterable[ListedPair | None]) -> Mapping[str, float]:
    """Return the gauge of the values of last pairs: their minimum; empty without a full list.

    Parameters
    ----------
    condition : TopKCondition
        The condition.
    last : iterable of ListedPair or None
        The last pair of each full list, and None of each other list.
    """
    values = [
        condition.similarity.value(it.overlap, it.older.size, it.newer.size)
        for it in last
        if it is not None
    ]
    return {LAST_VALUE_METRIC: min(values)} if values else {}


@dataclass(frozen=True, slots=True)
class TopKChanges:
    """Changes of the lists of a condition, in order."""

    condition: TopKCondition
    lists: Sequence[KeyedMoves]

    def __len__(self) -> int:
        return sum(len(it.moves) for it in self.lists)

    def heading(self, detected_at_us: int) -> Heading:
        """See `Result.heading`."""
        return make_heading(self.condition, detected_at_us, CE_TYPE, CHANGES)

    def ready_us(self) -> Int64s:
        """See `Result.ready_us`: the times of the events that caused the changes."""
        return np.array([move.time_us for it in self.lists for move in it.moves], np.int64)

    def records(
        self, detected_at_us: int | Int64s, encode: Encode = encode_json
    ) -> Iterator[OutputRecord]:
        """See `Result.records`."""
        condition = self.condition
        moments = iter(np.broadcast_to(detected_at_us, len(self)).tolist())
        for key, moves in self.lists:
            keyed = {} if key is None else {"key": as_text(key)}
            for move in moves:
                pair = move.pair
                record = {
                    "v": VERSION,
                    "kind": KIND,
                    "condition": condition.name,
                    "version": condition.version,
                    "change": move.change,
                    "rank": move.rank,
                    **describe_pair(condition, pair),
                    "reason": move.reason,
                    "time": move.time_us,
                    **keyed,
                    "detected_at": next(moments),
                }
                ids = as_text(pair.older.id), as_text(pair.newer.id)
                names = [*keyed.values(), *ids]
                record_key = f"{condition.name}/{json.dumps(names, ensure_ascii=False)}"
                ident = (
                    f"{record_key}/{condition.version}/{move.time_us}/{move.change}"
                    f"/{move.reason}/{move.rank}"
                )
                yield OutputRecord(record_key.encode(), encode(record), ident)


def present_lists(
    condition: TopKCondition,
    as_of_us: int,
    lists: Sequence[tuple[bytes | None, Sequence[ListedPair]]],
) -> ListUpdates:
    """Return the present lists as a result; empty lists are withdrawn.

    Parameters
    ----------
    condition : TopKCondition
        The condition.
    as_of_us : int
        Time up to which sets have taken effect, in µs.
    lists : sequence of (key, pairs)
        The lists.
    """
    return ListUpdates(
        condition,
        PRESENT,
        [
            PresentList(
                key,
                as_of_us,
                [
                    {"rank": rank, **describe_pair(condition, pair)}
                    for rank, pair in enumerate(pairs, start=1)
                ]
                if pairs
                else None,
            )
            for key, pairs in lists
        ],
    )


_SET = object_of({"stream": STRING, "id": STRING, "time": TIME_US})
_PAIR: dict[str, Schema] = {
    "similarity": described(NUMBER, "Similarity of the pair; a distance is `distance`."),
    "distance": described(NUMBER, "Distance of the pair, instead of `similarity`."),
    "overlap": described(COUNT, "Number of shared tokens."),
    "sizes": described(tuple_of(COUNT, COUNT), "Sizes of the older and of the newer set."),
    "older": _SET,
    "newer": _SET,
}
_VALUES = ("similarity", "distance")
_ONE_VALUE = [{"required": [it]} for it in _VALUES]
_RANK = described(POSITIVE, "Rank from 1; of a pair that left, the rank before the change.")
_CHANGE: dict[str, Schema] = {
    "v": constant(VERSION),
    "kind": constant(KIND),
    "condition": described(STRING, "Name of the condition."),
    "version": POSITIVE,
    "change": choice(["entered", "left", "moved"]),
    "rank": _RANK,
    **_PAIR,
    "reason": choice(["set", "expiry", "condition", "reset"]),
    "time": described(TIME_US, "Time of the event that caused the change, in µs."),
    "key": described(STRING, "Join key, if the condition has one list per key."),
    "detected_at": described(TIME_US, "Time at which the job found the change, in µs."),
}
RECORDS = (
    RecordType(
        "topk_change",
        "Pair that entered or left the list of a condition, or moved in it.",
        object_of(_CHANGE, [*_VALUES, "key"], oneOf=_ONE_VALUE),
        "CONDITION/ and a JSON list: the join key, if any, and the ids of the pair.",
        result_headers(CE_TYPE),
        CHANGES.name,
    ),
    *list_types(KIND, PRESENT, object_of({"rank": _RANK, **_PAIR}, _VALUES, oneOf=_ONE_VALUE)),
)
