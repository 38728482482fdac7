"""Tokens of streams over REST, on a real Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.rest.test_resources import fresh, pair, problem, put_stream, stream
from tests.support.messages import assert_names

if TYPE_CHECKING:
    from tests.rest.running import Service

pytestmark = pytest.mark.kafka

TEXT = {
    "path": "alert.message",
    "tokenizer": r"split:[,;]\s*",
    "lower_case": True,
    "stop_words": ["The", "and", "the"],
}
STORED = TEXT | {"stop_words": ["and", "the"]}


@pytest.mark.parametrize(
    ("declared", "stored"),
    [
        (TEXT, STORED),
        (None, None),
        (
            ["a.b", "tags"],
            {"path": ["a.b", "tags"], "tokenizer": "list", "lower_case": False, "stop_words": []},
        ),
    ],
)
def test_tokens_are_stored_and_come_back(
    service: Service, declared: object, stored: dict[str, Any] | None
) -> None:
    client, path = service.client, f"/v1/streams/{fresh()}"
    document = stream(service, tokens=declared)
    created = client.put(path, json=document)
    assert created.status_code == 201, created.text
    assert created.json()["document"]["tokens"] == stored
    # The stored form is accepted, and is the same document.
    for again in (document, client.get(path).json()["document"]):
        same = client.put(path, json=again)
        assert (same.status_code, same.json()["version"]) == (200, 1), same.text
    assert client.get(f"{path}/status").json()["declared"]["tokens"] == stored
    changed = client.put(path, json=stream(service, tokens="tags"))
    assert (changed.status_code, changed.json()["version"]) == (200, 2), changed.text


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"tokens": 3}, ["tokens"]),
        ({"tokens": {}}, ["tokens.path"]),
        ({"tokens": {"path": "a", "tokenizer": "word"}}, ["tokens.tokenizer"]),
        ({"tokens": {"path": "a", "tokenizer": "split:(?<=x)y"}}, ["tokens.tokenizer"]),
        ({"tokens": {"path": "a", "tokenizer": "ngrams:0"}}, ["tokens.tokenizer"]),
        (
            {
                "tokens": {"path": [], "lower": True, "stop_words": [1], "lower_case": 1},
                "max_delay": "soon",
            },
            ["max_delay", "tokens.lower", "tokens.lower_case", "tokens.path", "tokens.stop_words"],
        ),
    ],
)
def test_every_wrong_field_is_named(
    service: Service, changes: dict[str, Any], fields: list[str]
) -> None:
    answer = service.client.put(f"/v1/streams/{fresh()}", json=stream(service, **changes))
    assert sorted(problem(answer, 422, 42202)) == fields


def test_a_refused_expression_has_its_reason(service: Service) -> None:
    tokens = {"path": "a", "tokenizer": r"split:(a)\1"}
    answer = service.client.put(f"/v1/streams/{fresh()}", json=stream(service, tokens=tokens))
    (error,) = answer.json()["errors"]
    assert error["field"] == "tokens.tokenizer"
    assert error["problem"].endswith(r"invalid escape sequence: \1")
    assert "no backreferences" in error["remedy"]


def test_explain_shows_the_tokens_of_both_events(service: Service) -> None:
    client = service.client
    name, condition = put_stream(service, tokens=TEXT), fresh("c")
    assert client.put(f"/v1/conditions/{condition}", json=pair(name, name)).status_code == 201
    event = {"id": "e", "key": "k", "earliest": 0, "latest": 0}
    request = {
        "a": {"record": event | {"alert": {"message": "Disk; the, FULL, disk"}}},
        "b": {"record": event | {"id": "f", "alert": {"message": 3}}},
    }
    answer = client.post(f"/v1/conditions/{condition}/explain", json=request).json()
    assert answer["a"]["tokens"] == ["disk", "full"]
    assert answer["b"]["tokens"] is None
    assert answer["b"]["reason"] == "bad_tokens"
    assert_names(answer["b"]["detail"], "field 'alert.message'", "string", "got a number")
