"""Explanation of why two sets are in the list of a top-k condition or not.

Steps, in order; the steps after a failed step are skipped:

    contract    a record is not a valid event of its stream and goes to the dead-letter topic
    filter      an event does not match the condition's filter (if it has filters)
    same_event  both records are the same event (pairs of one stream)
    key         the join keys differ (conditions with a list per key)
    tokens      a set is empty, or the sets share no token
    window      the older set expires before the time of the newer one
    minimum     the similarity is less than min_similarity, or the distance exceeds max_distance
    rank        the present list does not contain the pair (if the list and the ids are known); see
                `ranking`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from correlation.explaining import (
    CONTRACT,
    FindList,
    FoundList,
    GivenRecord,
    ReadEvent,
    Step,
    Steps,
    describe_delay,
    read_given,
)
from correlation.resources.durations import describe_duration
from correlation.resources.streams import Stream
from correlation.result_format import as_text
from correlation.topk.condition import TopKCondition, bind_where
from correlation.topk.ranking import PlacedPair, describe_place, find_rank, is_readable
from correlation.two_streams import NO_FILTERS, ROLES

STEPS = (
    CONTRACT,
    Step("filter", "an event does not match a filter of the condition", "filters"),
    Step("same_event", "both records of a stream are the same event", "two events"),
    Step("key", "the join keys differ"),
    Step("tokens", "a set is empty, or the sets share no token"),
    Step("window", "the older set expires before the time of the newer one"),
    Step("minimum", "the similarity or distance is not within its limit"),
    Step("rank", "the list is full of better pairs"),
)
_UNREAD = "the list is too large or cannot be read, so the rank of the pair is not known"
_LATE = "the list was built again when it arrived, if it was still valid"


def explain_pair(
    condition: TopKCondition,
    streams: Mapping[str, Stream],
    given: Mapping[str, GivenRecord],
    find_list: FindList | None = None,
) -> dict[str, Any]:
    """Return whether two sets are a pair of the list, with every step of the decision.

    Parameters
    ----------
    condition : TopKCondition
        The registered condition.
    streams : mapping of name to Stream
        Its streams.
    given : mapping of role to GivenRecord
        Records "a" and "b"; of pairs of one stream, in any order.
    find_list : callable or None
        Finds the present list; None: the rank is not known. It is not known either if a record has
        no id.

    Returns
    -------
    dict
        JSON-able: verdict, failed_step, explanation, steps; a, b; and, if both records are events:
        overlap, sizes, similarity or distance, ends_at: the last moment at which the pair is valid,
        in µs; rank: its rank in the present list, or null.
    """
    names = {"a": condition.a, "b": condition.b}
    a, b = (read_given(streams[names[role]], given[role]) for role in ROLES)
    both = (("A", a), ("B", b))
    # Lists name sets by their ids.
    unnamed = [role for role, it in both if it.event is not None and it.event.id is None]
    if unnamed:
        find_list = None
    pair = None if a.event is None or b.event is None else _Pair(condition, a, b)
    listed = None if pair is None or find_list is None else find_list(pair.key)
    unread = listed is not None and not is_readable(listed)
    if unread:
        listed = None
    steps = Steps(_list_steps(condition, known=find_list is not None and not unread))
    wrong = next((f"{role} {it.breach}" for role, it in both if it.breach), "")
    steps.take(passed=not wrong, detail=wrong or "A and B are valid events of their streams")
    found: dict[str, Any] = dict.fromkeys(
        ("overlap", "sizes", condition.measure, "ends_at", "rank")
    )
    if pair is not None:
        rank = find_rank(condition, pair.placed, listed)
        pair.check(steps, streams)
        if find_list is not None and not unread and steps.failed is None:
            pair.check_rank(steps, rank, listed)
        found = pair.describe() | {"rank": rank}
    return {
        **steps.describe(),
        "a": a.describe(),
        "b": b.describe(),
        **found,
        "notes": [
            *(f"{role} has no id, so the rank of the pair is not known" for role in unnamed),
            *(_UNREAD for _ in range(unread)),
            *(note for role, it in both for note in describe_delay(role, it, _LATE)),
        ],
    }


def _list_steps(condition: TopKCondition, *, known: bool) -> tuple[str, ...]:
    return (
        "contract",
        *(("filter",) if condition.where != NO_FILTERS else ()),
        *(() if condition.crossed else ("same_event",)),
        *(("key",) if condition.per_key else ()),
        "tokens",
        "window",
        *(("minimum",) if condition.minimum is not None else ()),
        *(("rank",) if known else ()),
    )


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two sets in the roles A and B of a condition; both records are events."""

    condition: TopKCondition
    a: ReadEvent
    b: ReadEvent

    @property
    def tokens(self) -> tuple[frozenset[str], frozenset[str]]:
        return frozenset(self.a.tokens or ()), frozenset(self.b.tokens or ())

    @property
    def overlap(self) -> int:
        first, second = self.tokens
        return len(first & second)

    @property
    def sizes(self) -> tuple[int, int]:
        first, second = self.tokens
        return len(first), len(second)

    @property
    def times(self) -> tuple[int, int]:
        """Time of the older and of the newer set, in µs."""
        found = [it.event.latest for it in (self.a, self.b) if it.event is not None]
        return min(found), max(found)

    @property
    def key(self) -> str | None:
        """Join key of the list; None if the condition has a single list."""
        if not self.condition.per_key or self.a.event is None:
            return None
        return as_text(self.a.event.key)

    def check(self, steps: Steps, streams: Mapping[str, Stream]) -> None:
        """Take the steps that the two sets alone decide."""
        condition = self.condition
        if condition.where != NO_FILTERS:
            self._check_filters(steps, streams)
        if not condition.crossed:
            same = self._is_same_event()
            told = "both records are the same event" if same else "the events differ"
            steps.take(passed=not same, detail=told)
        if condition.per_key:
            self._check_keys(steps)
        self._check_tokens(steps)
        older, newer = self.times
        apart = describe_duration(newer - older)
        window = describe_duration(condition.window_us)
        if newer - older <= condition.window_us:
            steps.take(passed=True, detail=f"the sets are {apart} apart, the window is {window}")
        else:
            steps.take(
                passed=False,
                detail=f"the sets are {apart} apart: the older one expires after {window}",
            )
        if condition.minimum is not None:
            self._check_minimum(steps)

    def _check_filters(self, steps: Steps, streams: Mapping[str, Stream]) -> None:
        wanted = bind_where(self.condition, streams)
        filters = (wanted.a, wanted.b if self.condition.crossed else wanted.a)
        for role, it, read in zip(("A", "B"), filters, (self.a, self.b), strict=True):
            mismatch = None if it is None else it.mismatch(read.attributes)
            if mismatch is not None:
                place = f"where.{role.lower() if self.condition.crossed else 'a'}"
                detail = f"{role} does not match {place}.{mismatch.attribute}"
                steps.take(passed=False, detail=detail)
                return
        steps.take(passed=True, detail="A and B match the filters")

    def _check_keys(self, steps: Steps) -> None:
        keys = [as_text(it.event.key) for it in (self.a, self.b) if it.event is not None]
        same = keys[0] == keys[1]
        differ = f"the keys differ: {keys[0]!r}, {keys[1]!r}"
        steps.take(passed=same, detail=f"both have the key {keys[0]!r}" if same else differ)

    def _check_tokens(self, steps: Steps) -> None:
        for role, size in zip(("A", "B"), self.sizes, strict=True):
            if not size:
                steps.take(passed=False, detail=f"{role} has no tokens")
                return
        if not self.overlap:
            steps.take(passed=False, detail="the sets share no token")
            return
        sizes = f"of {self.sizes[0]} and {self.sizes[1]}"
        steps.take(passed=True, detail=f"the sets share {self.overlap} {sizes} tokens")

    def _check_minimum(self, steps: Steps) -> None:
        condition = self.condition
        field = "max_distance" if condition.similarity.is_distance else "min_similarity"
        passed = bool(self.overlap) and self._reaches_minimum()
        detail = f"the {condition.measure} is {self._value():g}, {field} is "
        steps.take(passed=passed, detail=f"{detail}{float(condition.minimum or 0):g}")

    def _reaches_minimum(self) -> bool:
        similarity, minimum = self.condition.similarity, self.condition.minimum
        if minimum is None:
            return True
        return similarity.key(self.overlap, *self.sizes) >= similarity.minimum_key(minimum)

    def _value(self) -> float:
        return self.condition.similarity.value(self.overlap, *self.sizes)

    def _is_same_event(self) -> bool:
        places = (self.a.given.place, self.b.given.place)
        if None not in places:
            return places[0] == places[1]
        name = self._name(self.a)
        return name is not None and name == self._name(self.b)

    def _name(self, read: ReadEvent) -> tuple[str, str, int] | None:
        """Return stream, id and time of an event; None: its id is not known."""
        if read.event is None or read.event.id is None:
            return None
        return read.stream.name, as_text(read.event.id), read.event.latest

    @property
    def placed(self) -> PlacedPair:
        """The pair with its sets in their order; sets without an id have an empty one."""
        sides = (0, int(self.condition.crossed))
        older, newer = sorted(
            ((it.event.latest, side, as_text(it.event.id or b"").encode()), size)
            for it, side, size in zip((self.a, self.b), sides, self.sizes, strict=True)
            if it.event is not None
        )
        return PlacedPair(self.overlap, (older[1], newer[1]), older[0], newer[0])

    def check_rank(self, steps: Steps, rank: int | None, listed: FoundList | None) -> None:
        """Take the step that the present list decides."""
        if rank is None:
            steps.take(passed=False, detail=describe_place(self.condition, self.placed, listed))
        else:
            detail = f"the pair has rank {rank} of {self.condition.k}"
            steps.take(passed=True, detail=detail)

    def describe(self) -> dict[str, Any]:
        """Return the numbers of the pair."""
        return {
            "overlap": self.overlap,
            "sizes": list(self.sizes),
            self.condition.measure: self._value() if self.overlap else None,
            "ends_at": self.times[0] + self.condition.window_us,
        }
