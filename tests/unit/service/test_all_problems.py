"""A response names all problems of a document and its request, not only the first."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from correlation.errors import InvalidFieldError
from correlation.kinds import condition_from_document
from correlation.resources.records import stream_from_document
from service.app import create_app
from service.settings import Settings

PAIR = {"kind": "within", "a": "x", "b": "y", "lower_us": 0, "upper_us": 5, "threshold": "0.7"}
STREAM = {"topic": "t", "max_uncertainty_us": 10, "max_delay_us": 0}
FAR_US = 2**60


def fields_of(error: InvalidFieldError) -> list[str]:
    return [problem.field for problem in error.problems]


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"upper_us": -5, "threshold": "1.2"}, ["upper", "threshold"]),
        ({"lower_us": -FAR_US, "upper_us": FAR_US}, ["lower", "upper"]),
        ({"a": "A", "b": "B", "emit": "all"}, ["a", "b", "emit"]),
        (
            {"output": "factored", "emit": "best", "algorithm": "simple", "b": "x"},
            ["emit", "algorithm", "output"],
        ),
        (
            {"block_size": 0, "emit": "best", "block_interval_us": -1},
            ["block_size", "block_size", "block_interval"],
        ),
        (
            {"max_pairs": 0, "emit": "best", "output": "factored"},
            ["emit", "max_pairs", "max_pairs", "max_pairs"],
        ),
        ({"output_topic": "no spaces", "threshold": None}, ["threshold", "output_topic"]),
        ({"kind": "delay", "delay_us": FAR_US, "horizon_us": -1}, ["horizon", "delay"]),
    ],
)
def test_condition_names_every_wrong_value(changes: dict[str, Any], fields: list[str]) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        condition_from_document("c", 1, PAIR | changes)
    assert fields_of(caught.value) == fields
    assert caught.value.field == fields[0]
    assert all(f"{problem}" in str(caught.value) for problem in caught.value.problems)


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        (
            {"topic": "no spaces", "max_delay_us": -1, "clock": "sun"},
            ["topic", "max_delay", "clock"],
        ),
        ({"min_uncertainty_us": 11, "clock": "sun"}, ["min_uncertainty", "clock"]),
        (
            {"mapping": {"time": "t", "latest": "l", "timezone": "Mars"}, "max_skew_us": -1},
            ["mapping.timezone", "mapping.latest", "max_skew"],
        ),
        (
            {"mapping": {"time": "t", "before_us": -1, "after_us": FAR_US, "format": "words"}},
            ["mapping.format", "mapping.before", "mapping.after"],
        ),
        (
            {"partitioning": {"by": "name"}, "mapping": {"template": "t"}, "max_delay_us": -1},
            ["partitioning.by", "mapping.detected", "max_delay"],
        ),
        ({"mapping": {"histogram": "h", "key": ""}}, ["mapping.key"]),
    ],
)
def test_stream_names_every_wrong_value(changes: dict[str, Any], fields: list[str]) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        stream_from_document("s", STREAM | changes)
    assert fields_of(caught.value) == fields


PUT = {"kind": "within", "a": "x", "b": "y", "lower": "0s", "upper": "30s", "threshold": 0.7}
STREAM_PUT = {"topic": "t", "max_uncertainty": "1s", "max_delay": "1s"}
# The lifespan does not begin: nothing is registered, and nothing asks for Kafka.
APP = create_app(Settings(bootstrap="127.0.0.1:1"))


def answer_of(method: str, target: str, document: object) -> dict[str, Any]:
    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(APP)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(method, target, json=document)

    body: dict[str, Any] = asyncio.run(asked()).json()
    return body


def fields_in(answer: dict[str, Any]) -> list[str]:
    return sorted(it["field"] for it in answer["errors"])


CONDITIONS: list[tuple[dict[str, Any], list[str]]] = [
    ({"lower": "40s", "threshold": 1.2}, ["a", "b", "threshold", "upper"]),
    ({"lower_ms": 40, "threshold": 1.2}, ["a", "b", "lower", "threshold"]),
    ({"windw": 1, "a": "A"}, ["a", "b", "windw"]),
    ({"lower": "soon", "upper": "20000d"}, ["a", "b", "lower", "upper"]),
    ({"lower": "soon", "output": "factored", "emit": "best"}, ["a", "b", "emit", "lower"]),
    ({"upper": "0.1us", "threshold": 2}, ["a", "b", "threshold", "upper"]),
    ({"a": None, "output": "factored", "b": "x", "emit": "all"}, ["a", "b", "emit"]),
]


@pytest.mark.parametrize(("changes", "fields"), CONDITIONS)
def test_put_of_a_condition_names_every_problem(changes: dict[str, Any], fields: list[str]) -> None:
    answer = answer_of("PUT", "/v1/conditions/c", PUT | changes)
    assert (answer["status"], answer["error_code"]) == (422, 42202)
    assert fields_in(answer) == fields


@pytest.mark.parametrize(("changes", "fields"), CONDITIONS)
def test_validation_of_a_condition_names_every_problem(
    changes: dict[str, Any], fields: list[str]
) -> None:
    body = {"condition": PUT | changes, "rates": {"z": 1}}
    answer = answer_of("POST", "/v1/conditions:validate", body)
    assert not answer["valid"]
    # Without its streams it is not known which rates are of others.
    strangers = ["rates.z"] if (PUT | changes)["a"] else []
    assert fields_in(answer) == sorted(fields + strangers)


@pytest.mark.parametrize(
    ("query", "wrong", "fields"),
    [
        ("", {"keys": 0}, ["keys"]),
        ("", {"rates": {"x": "fast"}, "keys": None}, ["keys", "rates.x"]),
        ("?sample_from_topic=maybe", {"keys": 0}, ["keys", "sample_from_topic"]),
        ("?sample_from_topic=true", {"sample": {"x": [{}]}}, ["sample"]),
    ],
)
@pytest.mark.parametrize(
    ("changes", "fields_of_condition"),
    [
        ({"lower": "40s"}, ["a", "b", "upper"]),
        ({"lower": "soon", "threshold": 2}, ["a", "b", "lower", "threshold"]),
    ],
)
def test_validation_names_problems_of_the_condition_beside_those_of_the_request(
    query: str,
    wrong: dict[str, Any],
    fields: list[str],
    changes: dict[str, Any],
    fields_of_condition: list[str],
) -> None:
    body = {"condition": PUT | changes, **wrong}
    answer = answer_of("POST", f"/v1/conditions:validate{query}", body)
    assert answer["status"] == 422
    assert fields_in(answer) == sorted(fields + fields_of_condition)


@pytest.mark.parametrize(
    ("condition", "field"),
    [(None, "condition"), ("c", "condition"), ([], "condition"), ({}, "kind")],
)
def test_validation_of_a_condition_that_is_not_a_document_names_it_once(
    condition: object, field: str
) -> None:
    answer = answer_of("POST", "/v1/conditions:validate", {"condition": condition, "keys": 0})
    assert fields_in(answer) == sorted([field, "keys"])


EVENT_QUERY = {
    "detect": {"type": "A"},
    "events": [{"type": 1}, {"alias": "s"}],
    "where": {"and": [{"lft": 1}, {"left": 2}]},
}


def test_put_of_an_event_query_names_every_problem_of_its_json_form() -> None:
    document = {"kind": "event_query", "query": EVENT_QUERY, "threshold": 2}
    assert fields_in(answer_of("PUT", "/v1/conditions/c", document)) == [
        "query.events[0].alias",
        "query.events[0].type",
        "query.events[1].type",
        "query.where.and[0].lft",
        "query.where.and[1]",
        "threshold",
    ]


def test_put_of_a_template_names_every_problem_of_its_buckets() -> None:
    buckets = [[0, 5, "x"], [5, 10, "2"], [7, 3, "0.1"], {"lo": 1, "q": 3}, ["a", 5, "y"], 6]
    assert fields_in(answer_of("PUT", "/v1/templates/t", {"buckets": buckets})) == [
        "buckets[0].p",
        "buckets[1].p",
        "buckets[2].hi",
        "buckets[3].hi",
        "buckets[3].p",
        "buckets[3].q",
        "buckets[4].lo",
        "buckets[4].p",
        "buckets[5]",
    ]


def test_missing_duration_is_named_beside_others() -> None:
    document = {"kind": "within", "a": "x", "upper": "1s", "upper_ms": 3, "threshold": 0}
    answer = answer_of("PUT", "/v1/conditions/c", document)
    assert fields_in(answer) == ["a", "b", "lower", "threshold", "upper"]


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"max_rate": 0, "templates": ["t"]}, ["max_rate", "templates[0]"]),
        ({"max_dely": 0, "min_uncertainty": "2s"}, ["max_dely", "min_uncertainty"]),
        (
            {"max_uncertainty": "soon", "min_uncertainty": "-2s"},
            ["max_uncertainty", "min_uncertainty"],
        ),
        (
            {"topic": "no spaces", "mapping": {"template": "x"}},
            ["mapping.detected", "topic"],
        ),
        ({"mapping": {"before": "1s", "tme": "x"}}, ["mapping.before", "mapping.tme"]),
        (
            {"partitioning": {"groups": 2, "bye": 3}, "clock": 1},
            ["clock", "partitioning.bye", "partitioning.groups"],
        ),
    ],
)
def test_put_of_a_stream_names_every_problem(changes: dict[str, Any], fields: list[str]) -> None:
    answer = answer_of("PUT", "/v1/streams/s", STREAM_PUT | changes)
    assert (answer["status"], answer["error_code"]) == (422, 42202)
    assert fields_in(answer) == fields


@pytest.mark.parametrize(
    ("method", "target", "document", "fields"),
    [
        (
            "PUT",
            "/v1/streams/BAD?dry_run=maybe",
            STREAM_PUT | {"topic": ""},
            ["dry_run", "name", "topic"],
        ),
        ("PUT", "/v1/streams/BAD?dryrun=true", STREAM_PUT, ["dryrun", "name"]),
        ("PUT", "/v1/streams/BAD?dry_run=true&dry_run=false", STREAM_PUT, ["dry_run", "name"]),
        (
            "PUT",
            "/v1/conditions/c?dryrun=true",
            PUT | {"threshold": 2},
            ["a", "b", "dryrun", "threshold"],
        ),
        ("GET", "/v1/streams/BAD?limit=3", None, ["limit", "name"]),
        ("DELETE", "/v1/conditions/BAD?prune", None, ["name", "prune"]),
    ],
)
def test_request_names_every_problem(
    method: str, target: str, document: object, fields: list[str]
) -> None:
    answer = answer_of(method, target, document)
    assert (answer["status"], answer["error_code"]) == (422, 42202)
    assert fields_in(answer) == fields


SWAPPED = {"kind": "within", "a": "x", "b": "y", "lower": "40s", "upper": "30s", "threshold": 0.5}
WIDE_MIN = STREAM_PUT | {"min_uncertainty": "2s", "templates": ["gone"]}
HALF = {"buckets": [[0, 5, "0.5"]]}


@pytest.mark.parametrize(
    ("target", "document", "fields"),
    [
        ("/v1/conditions/BAD", SWAPPED, ["a", "b", "name", "upper"]),
        ("/v1/conditions/c?dry_run=maybe", SWAPPED, ["a", "b", "dry_run", "upper"]),
        ("/v1/conditions/c?foo=1", SWAPPED, ["a", "b", "foo", "upper"]),
        ("/v1/conditions/BAD?foo=1", SWAPPED, ["a", "b", "foo", "name", "upper"]),
        ("/v1/streams/BAD", WIDE_MIN, ["min_uncertainty", "name", "templates[0]"]),
        ("/v1/streams/s?foo=1", WIDE_MIN, ["foo", "min_uncertainty", "templates[0]"]),
        ("/v1/templates/BAD?foo=1", HALF, ["buckets", "foo", "name"]),
        ("/v1/conditions/BAD", [], ["", "name"]),
    ],
)
def test_put_names_problems_of_a_document_that_its_model_accepts_beside_those_of_the_request(
    target: str, document: object, fields: list[str]
) -> None:
    answer = answer_of("PUT", target, document)
    assert (answer["status"], answer["error_code"]) == (422, 42202)
    assert fields_in(answer) == fields


def test_query_parameter_of_a_valid_document_keeps_its_own_code() -> None:
    answer = answer_of("PUT", "/v1/streams/s?foo=1", STREAM_PUT)
    assert (answer["error_code"], fields_in(answer)) == (42206, ["foo"])


@pytest.mark.parametrize(
    ("query", "field"), [("dry_run=x", "dry_run"), ("foo=1", "foo"), ("prune=maybe", "prune")]
)
def test_put_of_a_configuration_names_the_problems_of_query_and_resources(
    query: str, field: str
) -> None:
    resources = [SWAPPED | {"name": "c"}, WIDE_MIN | {"kind": "stream", "name": "s"}]
    answer = answer_of("PUT", f"/v1/config?{query}", {"resources": resources})
    found = sorted((it.get("resource") or "", it["field"]) for it in answer["errors"])
    assert answer["error_code"] == 42202
    assert found == [
        ("", field),
        ("condition/c", "a"),
        ("condition/c", "b"),
        ("condition/c", "upper"),
        ("stream/s", "min_uncertainty"),
        ("stream/s", "templates[0]"),
    ]


def test_put_of_a_configuration_names_unnamed_resources_beside_the_query() -> None:
    answer = answer_of("PUT", "/v1/config?dry_run=x", {"resources": [{"kind": "stream"}, 3]})
    assert fields_in(answer) == ["", "dry_run", "name"]
