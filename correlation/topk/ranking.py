"""Place of a pair relative to the present list: its rank, or why the list does not contain it.

A present list is as of a time: later sets have not taken effect, and a pair that ended before has
left. A list that does not change is not written again, so the present time of the condition may be
later. Reasons, in order:

1. the pair ended before the list was written;
2. the list is full of better pairs: an overlap with which the pair precedes the last of them is
   needed. If all of them end no earlier, it can never enter (docs/proofs.md, P-TOPK-SKYBAND);
3. the newer set has not taken effect;
4. a set is missing: its record came later, or before the condition began, or is a copy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from correlation.explaining import FoundList
from correlation.limits import TIME_LIMIT_US
from correlation.resources.times import describe_moment
from correlation.topk.condition import TopKCondition

# Time in µs, side (0: stream A, 1: B) and id: the order of sets.
SetPlace = tuple[int, int, bytes]
# Sets of an item of a list, and the strings of a set.
_SETS, _NAMES = ("older", "newer"), ("stream", "id")


class PlacedPair(NamedTuple):
    """A pair of sets: overlap, sizes, and the places of the sets, of which the older is first."""

    overlap: int
    sizes: tuple[int, int]
    older: SetPlace
    newer: SetPlace


def is_readable(found: FoundList) -> bool:
    """Return whether the items of a list are pairs of sets; other software may have written it."""
    if found.items is None:
        return False
    try:
        times = [found.as_of_us, *(it[name]["time"] for it in found.items for name in _SETS)]
        names = [it[name][field] for it in found.items for name in _SETS for field in _NAMES]
        counts = [
            count for it in found.items for count in (it["rank"], it["overlap"], *it["sizes"])
        ]
    except (LookupError, TypeError):
        return False
    return (
        all(isinstance(it, int) and abs(it) <= TIME_LIMIT_US for it in times)
        and all(isinstance(it, str) for it in names)
        and all(isinstance(it, int) and it >= 0 for it in counts)
        and all(len(it["sizes"]) == len(_SETS) and min(it["sizes"]) > 0 for it in found.items)
    )


def find_rank(condition: TopKCondition, pair: PlacedPair, found: FoundList | None) -> int | None:
    """Return the rank of a pair in the present list, or None; parameters as `describe_place`."""
    items = () if found is None else found.items or ()
    sets = (pair.older, pair.newer)
    return next((it["rank"] for it in items if _read_sets(condition, it) == sets), None)


def describe_place(condition: TopKCondition, pair: PlacedPair, found: FoundList | None) -> str:
    """Return the reason why the present list does not contain a pair, as a sentence.

    Parameters
    ----------
    condition : TopKCondition
        The condition.
    pair : PlacedPair
        A pair without a rank that shares a token, is within the window and reaches the minimum.
    found : FoundList or None
        The list; None: it is empty or was not written.
    """
    until_us = pair.older[0] + condition.window_us
    until = describe_moment(until_us)
    if found is None:
        room = f"the list has 0 of {condition.k} pairs"
        return f"{room}: a set has not taken effect yet, or the pair ended at {until}"
    items = found.items or ()
    as_of = describe_moment(found.as_of_us)
    if found.as_of_us > until_us:
        return f"the pair ended at {until}, and the list is as of {as_of}"
    last = _read_pair(condition, items[-1]) if len(items) == condition.k else None
    if last is not None and _precedes(condition, last, pair):
        needed = _describe_needed(condition, pair, last)
        ends_us = min(it["older"]["time"] for it in items) + condition.window_us
        if ends_us >= until_us:
            return (
                "the pair can never enter the list: its pairs are better and end no earlier; "
                f"{needed}"
            )
        return (
            f"the list is full of better pairs; {needed}; the pair can enter after "
            f"{describe_moment(ends_us)}, when listed pairs end, and until {until}"
        )
    if pair.newer[0] > found.as_of_us:
        moment = describe_moment(pair.newer[0])
        return (
            f"the newer set has not taken effect: its time is {moment}, and the list is as of "
            f"{as_of}"
        )
    return (
        f"the pair is missing in the list as of {as_of}: a set came later, or before the condition "
        "began, or another record with its id and time was used"
    )


def _read_sets(condition: TopKCondition, item: Mapping[str, Any]) -> tuple[SetPlace, SetPlace]:
    """Read the older and the newer set of an item of a present list."""
    older, newer = (
        (it["time"], int(condition.crossed and it["stream"] == condition.b), it["id"].encode())
        for it in (item["older"], item["newer"])
    )
    return older, newer


def _read_pair(condition: TopKCondition, item: Mapping[str, Any]) -> PlacedPair:
    """Read an item of a present list."""
    return PlacedPair(item["overlap"], tuple(item["sizes"]), *_read_sets(condition, item))


def _precedes(condition: TopKCondition, first: PlacedPair, second: PlacedPair) -> bool:
    """Return whether a pair precedes another one in the order of pairs."""
    keys = [condition.similarity.key(it.overlap, *it.sizes) for it in (first, second)]
    if keys[0] != keys[1]:
        return bool(keys[0] > keys[1])
    if first.older != second.older:
        return first.older > second.older
    return first.newer < second.newer


def _describe_needed(condition: TopKCondition, pair: PlacedPair, last: PlacedPair) -> str:
    """Describe the overlap with which a pair precedes the last pair of the list."""
    similarity, sizes = condition.similarity, pair.sizes
    key = similarity.key(last.overlap, *last.sizes)
    needed = similarity.overlap_needed(key, *sizes)
    if needed is not None and _precedes(condition, last, pair._replace(overlap=needed)):
        needed = similarity.overlap_needed(key + 1, *sizes)
    if needed is None:
        return f"no overlap of {sizes[0]} and {sizes[1]} tokens precedes the last of them"
    value = f"{condition.measure} {similarity.value(needed, *sizes):g}"
    return f"an overlap of {needed} ({value}) is needed, it is {pair.overlap}"
