"""Explanations of pairs of sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from correlation.explaining import FoundList, GivenRecord
from correlation.resources.filters import read_filter
from correlation.topk.condition import TopKCondition
from correlation.topk.explain import explain_pair
from correlation.topk.similarities import HAMMING, JACCARD
from correlation.two_streams import Where
from tests.support.messages import assert_names
from tests.support.topk import make_tag_streams

STREAMS = make_tag_streams(keyed=True)
SELF = TopKCondition("c", 1, "left", "left", 2, 10, JACCARD)
CROSSED = replace(
    SELF,
    b="right",
    per_key=True,
    minimum=Fraction(1, 2),
    where=Where(a=read_filter({"color": "red"}, None)),
)
DISTANCE = replace(SELF, similarity=HAMMING, minimum=Fraction(2))


def event(name: str, time: int, tokens: str, **more: object) -> dict[str, Any]:
    """Return an event as results contain it; each letter is a token."""
    return {"id": name, "key": "k", "time": time, "tokens": [*tokens], **more}


def red(name: str, time: int, tokens: str, **more: object) -> dict[str, Any]:
    """Return an event that passes the filter of CROSSED."""
    return event(name, time, tokens, attributes={"color": "red"}, **more)


def explain(
    condition: TopKCondition,
    a: object,
    b: object,
    items: Sequence[Mapping[str, Any]] | None = None,
    as_of: int = 9,
) -> dict[str, Any]:
    """Return the explanation of two records, with a present list if it is given."""
    given = {"a": GivenRecord(a, form="event"), "b": GivenRecord(b, form="event")}
    if items is None:
        return explain_pair(condition, STREAMS, given)
    return explain_pair(condition, STREAMS, given, lambda _: FoundList(as_of, items))


@pytest.mark.parametrize(
    ("condition", "a", "b", "step", "names"),
    [
        (CROSSED, event("x", 0, "ab"), event("y", 0, "ab"), "filter", ["A", "where.a.color"]),
        (CROSSED, red("x", 0, "ab"), event("y", 0, "ab", key="m"), "key", ["differ: 'k', 'm'"]),
        (CROSSED, red("x", 0, ""), event("y", 0, "ab"), "tokens", ["A has no tokens"]),
        (CROSSED, red("x", 0, "ab"), event("y", 0, "cd"), "tokens", ["no token"]),
        (
            CROSSED,
            red("x", 11, "ab"),
            event("y", 0, "ab"),
            "window",
            ["11us apart", "expires after 10us"],
        ),
        (
            CROSSED,
            red("x", 10, "ab"),
            event("y", 0, "bc"),
            "minimum",
            ["similarity is 0.333333", "min_similarity is 0.5"],
        ),
        (SELF, event("x", 3, "ab"), event("x", 3, "abc"), "same_event", ["the same event"]),
        (
            DISTANCE,
            event("x", 3, "ab"),
            event("y", 3, "bcd"),
            "minimum",
            ["distance is 3", "max_distance is 2"],
        ),
    ],
)
def test_the_first_failed_step_decides(
    condition: TopKCondition, a: object, b: object, step: str, names: list[str]
) -> None:
    found = explain(condition, a, b)
    assert (found["verdict"], found["failed_step"]) == ("not_satisfied", step)
    assert_names(found["explanation"], *names)


def test_steps_and_numbers_of_a_pair_of_two_streams() -> None:
    found = explain(CROSSED, red("x", 7, "abc"), event("y", 1, "abcd"))
    assert (found["verdict"], found["failed_step"]) == ("satisfied", None)
    assert [it["step"] for it in found["steps"]] == [
        *("contract", "filter", "key", "tokens", "window", "minimum")
    ]
    assert (found["overlap"], found["sizes"], found["similarity"]) == (3, [3, 4], 0.75)
    assert (found["ends_at"], found["rank"], found["notes"]) == (11, None, [])


def test_the_minimum_belongs_to_the_pairs() -> None:
    assert explain(CROSSED, red("x", 0, "ab"), event("y", 0, "a"))["verdict"] == "satisfied"
    found = explain(DISTANCE, event("x", 0, "ab"), event("y", 0, "bc"))
    assert (found["verdict"], found["distance"], "similarity" in found) == ("satisfied", 2, False)


def item(rank: int, older: str, newer: str, overlap: int, start: int = 0) -> dict[str, Any]:
    """Return an item of a list of sets of 4 tokens, 5 µs apart."""
    return {
        "rank": rank,
        "similarity": overlap / (8 - overlap),
        "overlap": overlap,
        "sizes": [4, 4],
        "older": {"stream": "left", "id": older, "time": start},
        "newer": {"stream": "left", "id": newer, "time": start + 5},
    }


def at(time_us: int) -> str:
    return f"1970-01-01T00:00:00.0000{time_us:02}Z"


FIRST = [item(1, "v", "w", 4)]
FULL = [*FIRST, item(2, "u", "v", 3)]


@pytest.mark.parametrize(
    ("items", "as_of", "rank", "names"),
    [
        ([item(1, "x", "y", 1, 1)], 9, 1, ["rank 1 of 2"]),
        ([*FIRST, item(2, "x", "y", 1, 1)], 9, 2, ["rank 2 of 2"]),
        (FIRST, 12, None, [f"ended at {at(11)}", f"as of {at(12)}"]),
        (FIRST, 5, None, ["newer set", "effect", f"time is {at(6)}", f"as of {at(5)}"]),
        (FIRST, 6, None, ["missing", f"as of {at(6)}"]),
        # Both pairs of the list end before. Whether the set has taken effect does not matter.
        *(
            (
                FULL,
                as_of,
                None,
                [
                    "full",
                    "overlap of 3 (similarity 0.6)",
                    "is 2",
                    f"after {at(10)}",
                    f"until {at(11)}",
                ],
            )
            for as_of in (3, 9)
        ),
        # They end together with it, or later.
        (
            [item(1, "v", "w", 4, 1), item(2, "u", "v", 3, 2)],
            9,
            None,
            ["never", "overlap of 4 (similarity 1)", "is 2"],
        ),
        (
            [item(1, "v", "w", 4, 1), item(2, "u", "v", 4, 2)],
            9,
            None,
            ["never", "no overlap of 4 and 4 tokens"],
        ),
        # The last pair is equally similar and ends earlier: the pair would precede it.
        ([*FIRST, item(2, "u", "v", 2)], 9, None, ["missing", f"as of {at(9)}"]),
    ],
)
def test_the_present_list_has_the_rank_or_a_reason(
    items: list[dict[str, Any]], as_of: int, rank: int | None, names: list[str]
) -> None:
    # The order of the records does not matter.
    for a, b in ((0, 1), (1, 0)):
        given = (event("x", 1, "abcd"), event("y", 6, "cdef"))
        found = explain(SELF, given[a], given[b], items, as_of)
        assert found["rank"] == rank
        assert_names(found["explanation"], *names)
        assert found["failed_step"] == (None if rank else "rank")


def test_an_empty_list_has_no_reason_of_its_own() -> None:
    given = {role: GivenRecord(event(role, 1, "ab"), form="event") for role in ("a", "b")}
    found = explain_pair(SELF, STREAMS, given, lambda _: None)
    assert (found["failed_step"], found["rank"]) == ("rank", None)
    assert_names(found["explanation"], "0 of 2 pairs", "not taken effect", f"ended at {at(11)}")


WHOLE = item(1, "p", "q", 2)


@pytest.mark.parametrize(
    "items",
    [
        None,
        [None],
        [{}],
        [WHOLE, {**WHOLE, "older": None}],
        [WHOLE, {**WHOLE, "newer": {**WHOLE["newer"], "id": 5}}],
        [WHOLE, {**WHOLE, "newer": {**WHOLE["newer"], "time": 2**70}}],
        [WHOLE, {**WHOLE, "sizes": [4]}],
        [WHOLE, {**WHOLE, "sizes": [0, 4]}],
        [WHOLE, {**WHOLE, "overlap": "2"}],
        [WHOLE, {**WHOLE, "rank": None}],
    ],
)
def test_the_rank_in_a_list_that_cannot_be_read_is_not_known(items: Any) -> None:  # noqa: ANN401 - any JSON
    given = {role: GivenRecord(event(role, 1, "ab"), form="event") for role in ("a", "b")}
    found = explain_pair(SELF, STREAMS, given, lambda _: FoundList(9, items))
    assert (found["failed_step"], found["rank"]) == (None, None)
    (note,) = found["notes"]
    assert_names(note, "cannot be read", "rank")


def test_records_that_are_not_events_fail_the_contract() -> None:
    found = explain(SELF, event("x", 0, "ab"), {"id": "y", "time": "soon", "tokens": []}, [])
    assert (found["failed_step"], found["overlap"], found["rank"]) == ("contract", None, None)
    assert_names(found["explanation"], "B", "not a valid event", "stream left")


def test_the_rank_of_sets_without_ids_is_not_known() -> None:
    nameless = {"key": "k", "time": 5, "tokens": ["a"]}
    found = explain(SELF, event("x", 0, "ab"), nameless, [item(1, "x", "y", 1)])
    assert (found["failed_step"], found["rank"]) == (None, None)
    assert [it["step"] for it in found["steps"]][-1] == "window"
    (note,) = found["notes"]
    assert_names(note, "B has no id", "rank")
