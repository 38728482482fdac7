"""Explanations of pairs of sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from correlation.buffers.filtering import Where
from correlation.explaining import GivenRecord
from correlation.resources.filters import read_filter
from correlation.topk.condition import TopKCondition
from correlation.topk.explain import explain_pair
from correlation.topk.similarities import HAMMING, JACCARD
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
) -> dict[str, Any]:
    """Return the explanation of two records, with a present list if it is given."""
    given = {"a": GivenRecord(a, form="event"), "b": GivenRecord(b, form="event")}
    if items is None:
        return explain_pair(condition, STREAMS, given)
    return explain_pair(condition, STREAMS, given, lambda _: items)


@pytest.mark.parametrize(
    ("condition", "a", "b", "step", "explanation"),
    [
        (
            CROSSED,
            event("x", 0, "ab"),
            event("y", 0, "ab"),
            "filter",
            "A does not match where.a.color",
        ),
        (CROSSED, red("x", 0, "ab"), event("y", 0, "ab", key="m"), "key", "the keys differ: k, m"),
        (CROSSED, red("x", 0, ""), event("y", 0, "ab"), "tokens", "A has no tokens"),
        (CROSSED, red("x", 0, "ab"), event("y", 0, "cd"), "tokens", "the sets share no token"),
        (
            CROSSED,
            red("x", 11, "ab"),
            event("y", 0, "ab"),
            "window",
            "the sets are 11us apart: the older one expires after 10us",
        ),
        (
            CROSSED,
            red("x", 10, "ab"),
            event("y", 0, "bc"),
            "minimum",
            "the similarity is 0.333333, min_similarity is 0.5",
        ),
        (
            SELF,
            event("x", 3, "ab"),
            event("x", 3, "abc"),
            "same_event",
            "both records are the same event",
        ),
        (
            DISTANCE,
            event("x", 3, "ab"),
            event("y", 3, "bcd"),
            "minimum",
            "the distance is 3, max_distance is 2",
        ),
    ],
)
def test_the_first_failed_step_decides(
    condition: TopKCondition, a: object, b: object, step: str, explanation: str
) -> None:
    found = explain(condition, a, b)
    assert (found["verdict"], found["failed_step"]) == ("not_satisfied", step)
    assert found["explanation"] == explanation


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


def item(rank: int, older: str, younger: str, value: float) -> dict[str, Any]:
    """Return an item of a list of sets at the times 0 and 5."""
    return {
        "rank": rank,
        "similarity": value,
        "older": {"stream": "left", "id": older, "time": 0},
        "newer": {"stream": "left", "id": younger, "time": 5},
    }


UNTIL = "1970-01-01T00:00:00.000010Z"


@pytest.mark.parametrize(
    ("items", "rank", "explanation"),
    [
        ([item(1, "x", "y", 0.5)], 1, "the pair has rank 1 of 2"),
        ([item(1, "x", "z", 1.0), item(2, "x", "y", 0.5)], 2, "the pair has rank 2 of 2"),
        (
            [item(1, "x", "z", 1.0)],
            None,
            "the list has 1 of 2 pairs: a set has not taken effect yet, or the pair ended at "
            + UNTIL,
        ),
        (
            [item(1, "x", "z", 1.0), item(2, "y", "x", 0.75)],
            None,
            "the list is full, and its last pair has the similarity 0.75; the pair can enter until "
            + UNTIL,
        ),
    ],
)
def test_the_present_list_has_the_rank(
    items: list[dict[str, Any]], rank: int | None, explanation: str
) -> None:
    # The order of the records does not matter.
    for a, b in ((0, 1), (1, 0)):
        given = (event("x", 0, "ab"), event("y", 5, "ab"))
        found = explain(SELF, given[a], given[b], items)
        assert (found["rank"], found["explanation"]) == (rank, explanation)
        assert found["failed_step"] == (None if rank else "rank")


def test_records_that_are_not_events_fail_the_contract() -> None:
    found = explain(SELF, event("x", 0, "ab"), {"id": "y", "time": "soon", "tokens": []}, [])
    assert (found["failed_step"], found["overlap"], found["rank"]) == ("contract", None, None)
    assert found["explanation"].startswith("B is not a valid event of stream left")


def test_the_rank_of_sets_without_ids_is_not_known() -> None:
    nameless = {"key": "k", "time": 5, "tokens": ["a"]}
    found = explain(SELF, event("x", 0, "ab"), nameless, [item(1, "x", "y", 0.5)])
    assert (found["failed_step"], found["rank"]) == (None, None)
    assert [it["step"] for it in found["steps"]][-1] == "window"
    assert found["notes"] == ["B has no id, so the rank of the pair is not known"]
