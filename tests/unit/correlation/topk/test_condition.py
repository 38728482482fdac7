"""Documents of top-k conditions, and the streams that they accept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from correlation.errors import InvalidFieldError
from correlation.resources.streams import Stream
from correlation.topk.condition import TopKCondition, build_condition, check_streams
from tests.support.topk import make_tag_streams

VALUES: Mapping[str, Any] = {
    "a": "left",
    "b": None,
    "k": 10,
    "window_us": 5,
    "similarity": "jaccard",
    "per_key": False,
    "min_similarity": None,
    "max_distance": None,
    "report": "batch",
    "search": "shortest",
    "output_topic": None,
    "where": None,
}


def build(**given: object) -> TopKCondition:
    """Return a condition with these values beside VALUES."""
    return build_condition("c", 3, {**VALUES, **given})


def test_a_condition_of_one_stream() -> None:
    found = build()
    assert (found.a, found.b, found.streams, found.crossed) == ("left", "left", ("left",), False)
    assert (found.every, found.shortest, found.minimum) == (False, True, None)
    assert (found.name, found.version, found.kind) == ("c", 3, "topk_similarity")


def test_a_condition_of_two_streams() -> None:
    found = build(b="right", report="every", search="newest", output_topic="pairs")
    assert (found.streams, found.crossed) == (("left", "right"), True)
    assert (found.every, found.shortest, found.output_topic) == (True, False, "pairs")


def test_stream_b_may_be_stream_a() -> None:
    assert not build(b="left").crossed


@pytest.mark.parametrize(
    ("similarity", "field", "value", "minimum", "measure"),
    [
        ("jaccard", "min_similarity", "0.1", Fraction(1, 10), "similarity"),
        ("cosine", "min_similarity", "0.3333", Fraction(3333, 10_000), "similarity"),
        ("dice", "min_similarity", 1, Fraction(1), "similarity"),
        ("dice", "min_similarity", "0.50000", Fraction(1, 2), "similarity"),
        ("overlap", "min_similarity", "10000", Fraction(10_000), "similarity"),
        ("hamming", "max_distance", 0, Fraction(0), "distance"),
        ("hamming", "max_distance", 10**15, Fraction(10**15), "distance"),
    ],
)
def test_minima_are_exact(
    similarity: str, field: str, value: object, minimum: Fraction, measure: str
) -> None:
    found = build(similarity=similarity, **{field: value})
    assert (found.minimum, found.measure) == (minimum, measure)


WINDOW = 'use the time for which a set takes part, for example "1h"'


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"k": 0}, "k: must be 1 to 10000; got 0; use the number of pairs to list"),
        ({"k": 10_001}, "k: must be 1 to 10000; got 10001; use the number of pairs to list"),
        ({"k": True}, "k: must be 1 to 10000; got True; use the number of pairs to list"),
        ({"report": "none"}, "report: unknown: 'none'; use every or batch"),
        ({"search": "all"}, "search: unknown: 'all'; use shortest or newest"),
        (
            {"similarity": "exact"},
            "similarity: unknown: 'exact'; use one of jaccard, cosine, dice, overlap, hamming",
        ),
        ({"max_distance": 1}, "max_distance: jaccard is not a distance; use min_similarity"),
        (
            {"similarity": "hamming", "min_similarity": "0.5"},
            "min_similarity: hamming is a distance; use max_distance",
        ),
        (
            {"min_similarity": "0.12345"},
            "min_similarity: must have at most 4 decimal places; got 0.12345; round it",
        ),
        (
            {"min_similarity": "-0.1"},
            "min_similarity: must be a number of 0 or more; got '-0.1'; correct it",
        ),
        (
            {"min_similarity": "1.0001"},
            (
                "min_similarity: must be at most 1, the jaccard similarity of equal sets; "
                "got 1.0001; use at most 1"
            ),
        ),
        *(
            ({"window_us": window_us}, f"window: must be at least 1us; got {shown}; {WINDOW}")
            for window_us, shown in ((0, "0s"), (-1_000_000, "-1s"))
        ),
        (
            {"where": {"b": {"color": "red"}}},
            "where.b: has no stream: the pairs are of stream A alone; use where.a",
        ),
        (
            {"where": {"b": {"color": "red"}}, "b": "left"},
            "where.b: has no stream: the pairs are of stream A alone; use where.a",
        ),
    ],
)
def test_documents_that_are_not_valid(given: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        build(**given)
    assert str(caught.value) == message


def test_every_field_that_is_not_valid_is_named() -> None:
    with pytest.raises(InvalidFieldError) as caught:
        build(k=0, window_us=-1, report="", similarity="", output_topic="..")
    found = [it.field for it in caught.value.problems]
    assert found == ["k", "window", "similarity", "output_topic", "report"]


@pytest.mark.parametrize("name", ["a", "k", "window_us", "similarity", "report", "per_key"])
def test_a_missing_field_is_named(name: str) -> None:
    values = {field: it for field, it in VALUES.items() if field != name}
    with pytest.raises(InvalidFieldError) as caught:
        build_condition("c", 1, values)
    assert caught.value.field == name


GRID = make_tag_streams(keyed=False)
KEYED = make_tag_streams(keyed=True)


@pytest.mark.parametrize(
    ("given", "streams"),
    [
        ({}, GRID),
        ({"b": "right"}, GRID),
        ({"per_key": True}, KEYED),
        ({"per_key": True, "b": "right", "where": {"b": {"color": "red"}}}, KEYED),
    ],
)
def test_streams_that_fit(given: dict[str, object], streams: Mapping[str, Stream]) -> None:
    check_streams(build(**given), streams)


@pytest.mark.parametrize(
    ("given", "streams", "wanted"),
    [
        ({}, KEYED, {"per_key": "is false, but left is partitioned by key"}),
        ({"per_key": True}, GRID, {"per_key": "is true, but left is partitioned by grid"}),
        (
            {"b": "right"},
            {"left": GRID["left"], "right": KEYED["right"]},
            {"b": "their events do not meet"},
        ),
        (
            {"b": "right"},
            {"left": GRID["left"], "right": replace(GRID["right"], tokens=None)},
            {"b": "stream right declares no tokens"},
        ),
        (
            {},
            {"left": replace(GRID["left"], max_uncertainty_us=1)},
            {"a": "the times of stream left are uncertain"},
        ),
        ({"where": {"a": {"size": 1}}}, GRID, {"where.a.size": "is not an attribute"}),
    ],
)
def test_streams_that_do_not_fit(
    given: dict[str, object], streams: Mapping[str, Stream], wanted: Mapping[str, str]
) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        check_streams(build(**given), streams)
    found = {it.field: it.problem for it in caught.value.problems}
    assert [*found] == [*wanted]
    assert all(text in found[field] for field, text in wanted.items())
