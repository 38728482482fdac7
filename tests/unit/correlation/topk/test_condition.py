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
from correlation.topk.similarities import SIMILARITIES
from tests.support.messages import assert_names
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


HAMMING = {"similarity": "hamming"}


@pytest.mark.parametrize(
    ("given", "field", "names"),
    [
        ({"k": 0}, "k", ["1 to 10000", "got 0"]),
        ({"k": 10_001}, "k", ["1 to 10000", "got 10001"]),
        ({"k": True}, "k", ["1 to 10000", "got True"]),
        ({"report": "none"}, "report", ["unknown: 'none'", "every or batch"]),
        ({"search": "all"}, "search", ["unknown: 'all'", "shortest or newest"]),
        ({"similarity": "exact"}, "similarity", ["unknown: 'exact'", *SIMILARITIES]),
        ({"max_distance": 1}, "max_distance", ["jaccard", "min_similarity"]),
        ({**HAMMING, "min_similarity": "0.5"}, "min_similarity", ["hamming", "max_distance"]),
        ({"min_similarity": "0.12345"}, "min_similarity", ["4 decimal places", "got 0.12345"]),
        ({"min_similarity": "-0.1"}, "min_similarity", ["0 or more", "got '-0.1'"]),
        ({"min_similarity": "1.0001"}, "min_similarity", ["at most 1", "jaccard", "got 1.0001"]),
        ({"window_us": 0}, "window", ["at least 1us", "got 0s", '"1h"']),
        ({"window_us": -1_000_000}, "window", ["at least 1us", "got -1s", '"1h"']),
        ({"where": {"b": {"color": "red"}}}, "where.b", ["no stream", "where.a"]),
        ({"where": {"b": {"color": "red"}}, "b": "left"}, "where.b", ["no stream", "where.a"]),
    ],
)
def test_documents_that_are_not_valid(
    given: dict[str, object], field: str, names: list[str]
) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        build(**given)
    (problem,) = caught.value.problems
    assert problem.field == field
    assert_names(problem, *names)


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
    ("given", "streams", "field", "names"),
    [
        ({}, KEYED, "per_key", ["false", "left", "partitioned by key"]),
        ({"per_key": True}, GRID, "per_key", ["true", "left", "partitioned by grid"]),
        ({"b": "right"}, {**GRID, "right": KEYED["right"]}, "b", ["do not meet"]),
        (
            {"b": "right"},
            {**GRID, "right": replace(GRID["right"], tokens=None)},
            "b",
            ["right", "no tokens"],
        ),
        ({}, {"left": replace(GRID["left"], max_uncertainty_us=1)}, "a", ["left", "uncertain"]),
        ({"where": {"a": {"size": 1}}}, GRID, "where.a.size", ["not an attribute"]),
    ],
)
def test_streams_that_do_not_fit(
    given: dict[str, object], streams: Mapping[str, Stream], field: str, names: list[str]
) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        check_streams(build(**given), streams)
    (problem,) = caught.value.problems
    assert problem.field == field
    assert_names(problem.problem, *names)
