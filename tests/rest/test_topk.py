"""Conditions of the kind topk_similarity over REST, on a real Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.rest.test_resources import fresh, pair, problem, put_stream, stream
from tests.support.messages import assert_names

if TYPE_CHECKING:
    from tests.rest.running import Service

pytestmark = pytest.mark.kafka

SECOND = 1_000_000
TOKENS = {
    "max_uncertainty": "0s",
    "partitioning": "grid",
    "clock": "replay",
    "tokens": "tags",
    "attributes": {"rule": "rule", "level": {"path": "level", "type": "integer"}},
}
DEFAULTS = {
    "kind": "topk_similarity",
    "b": None,
    "similarity": "jaccard",
    "per_key": False,
    "min_similarity": None,
    "max_distance": None,
    "report": "batch",
    "search": "shortest",
    "output_topic": None,
    "where": None,
}


def put_sets(service: Service, **changes: object) -> str:
    """Register a stream of events with tokens; return its name."""
    return put_stream(service, **{**TOKENS, **changes})


def topk(a: str, **changes: object) -> dict[str, Any]:
    return {"kind": "topk_similarity", "a": a, "k": 2, "window": "10s", **changes}


def put_topk(service: Service, a: str, **changes: object) -> str:
    """Register a condition; return its path."""
    path = f"/v1/conditions/{fresh('c')}"
    answer = service.client.put(path, json=topk(a, **changes))
    assert answer.status_code == 201, answer.text
    return path


def test_condition_is_stored_with_all_fields_and_comes_back(service: Service) -> None:
    client, path, a, b = (
        service.client,
        f"/v1/conditions/{fresh('c')}",
        put_sets(service),
        put_sets(service),
    )
    stored = {**DEFAULTS, "a": a, "k": 2, "window_us": 10 * SECOND}
    created = client.put(path, json=topk(a))
    assert (created.status_code, created.json()["document"]) == (201, stored), created.text
    many = {
        "b": b,
        "k": 10_000,
        "window": "1us",
        "similarity": "hamming",
        "max_distance": 0,
        "report": "every",
        "search": "newest",
        "output_topic": f"{service.settings.prefix}-pairs",
        "where": {"a": {"rule": ["A", "B"]}, "b": {"level": {"min": 3}}},
    }
    changed = client.put(path, json=topk(a, **many))
    assert (changed.status_code, changed.json()["version"]) == (200, 2), changed.text
    del many["window"]
    assert changed.json()["document"] == {**stored, **many, "window_us": 1}
    # The stored form, and other spellings of it, are the same document.
    read = client.get(path).json()["document"]
    for again in (read, {**topk(a, **many), "window": "0.001ms"}):
        same = client.put(path, json=again)
        assert (same.status_code, same.json()["version"]) == (200, 2), same.text
    minimum = client.put(path, json=topk(a, min_similarity=0.8))
    assert minimum.json()["document"]["min_similarity"] == "0.8"
    same = client.put(path, json=topk(a, b=None, min_similarity="0.80"))
    assert (same.status_code, same.json()["version"]) == (200, 3), same.text


def test_a_list_per_key_requires_streams_by_key(service: Service) -> None:
    client, path = service.client, f"/v1/conditions/{fresh('c')}"
    keyed, other = put_sets(service, partitioning="key"), put_sets(service, partitioning="key")
    single, cells = put_sets(service), put_sets(service, partitioning={"by": "grid", "groups": 2})
    for document, fields in (
        (topk(keyed), ["per_key"]),
        (topk(single, per_key=True), ["per_key"]),
        (topk(keyed, b=single, per_key=True), ["b"]),
        (topk(single, b=keyed), ["b"]),
        (topk(single, b=cells), ["b"]),
        (topk(cells, per_key=True), ["per_key"]),
    ):
        assert problem(client.put(path, json=document), 422, 42203) == fields
    assert client.get(path).status_code == 404
    assert client.put(path, json=topk(keyed, b=other, per_key=True)).status_code == 201
    # The same stream twice is one stream.
    twice = topk(keyed, b=keyed, per_key=True)
    assert client.put(path, json=twice).status_code == 200
    assert problem(client.put(path, json=twice | {"where": {"b": {"rule": "A"}}}), 422, 42204) == [
        "where.b"
    ]
    # Cells of a grid are merged.
    assert client.put(path, json=topk(cells)).status_code == 200


@pytest.mark.parametrize(
    ("changes", "problems"),
    [
        ({"k": 0}, {"k": "must be at least 1"}),
        ({"k": 10_001}, {"k": "must be at most 10000"}),
        ({"window": "0s"}, {"window": "must be at least 1us; got 0s"}),
        ({"window": "-1s"}, {"window": "must be at least 1us; got -1s"}),
        ({"similarity": "euclid"}, {"similarity": "is unknown"}),
        ({"report": "all", "search": "longest"}, {"report": "is unknown", "search": "is unknown"}),
        ({"per_key": "yes"}, {"per_key": "true or false"}),
        ({"min_similarity": 1.00001}, {"min_similarity": "decimal places"}),
        ({"min_similarity": -0.1}, {"min_similarity": "must be at least 0"}),
        ({"min_similarity": 1.0001}, {"min_similarity": "must be at most 1, the jaccard"}),
        ({"min_similarity": "1e15", "similarity": "cosine"}, {"min_similarity": "at most 1, "}),
        ({"min_similarity": 10_001, "similarity": "overlap"}, {"min_similarity": "most 10000, "}),
        ({"min_similarity": 1, "similarity": "hamming"}, {"min_similarity": "is a distance"}),
        ({"max_distance": 1}, {"max_distance": "is not a distance"}),
        ({"max_distance": -1, "similarity": "hamming"}, {"max_distance": "must be at least 0"}),
        (
            {"max_distance": 1.5, "similarity": "hamming"},
            {"max_distance": "a whole number"},
        ),
        ({"where": {"b": {"rule": "A"}}}, {"where.b": "has no stream"}),
        ({"where": {"c": {"rule": "A"}}}, {"where.c": "is unknown"}),
        ({"where": {"a": {"room": "A"}}}, {"where.a.room": "is not an attribute"}),
        ({"where": {"a": {"level": "A"}}}, {"where.a.level": "must be a 64-bit integer"}),
        (
            {"output_topic": "a b", "windw": 1},
            {"output_topic": "is not a valid", "windw": "is not a field"},
        ),
        (
            {"k": 0, "window": "-1s", "similarity": "x"},
            {"k": "at least 1", "window": "at least 1us", "similarity": "unknown"},
        ),
    ],
)
def test_every_wrong_field_is_named(
    service: Service, changes: dict[str, Any], problems: dict[str, str]
) -> None:
    a = put_sets(service)
    answer = service.client.put(f"/v1/conditions/{fresh('c')}", json=topk(a, **changes))
    assert answer.status_code == 422, answer.text
    found = {it["field"]: it["problem"] for it in answer.json()["errors"]}
    assert found.keys() == problems.keys()
    assert all(part in found[name] for name, part in problems.items()), found
    assert all(it["remedy"] for it in answer.json()["errors"])


def test_streams_must_have_sets_with_one_exact_time(service: Service) -> None:
    client, path, good = service.client, f"/v1/conditions/{fresh('c')}", put_sets(service)
    lasts = stream(service, **TOKENS, mapping={"begin": "b", "end": "e"}, max_length="1h")
    del lasts["max_uncertainty"]
    lasting = fresh("s")
    assert client.put(f"/v1/streams/{lasting}", json=lasts).status_code == 201
    for name, problems in (
        (put_sets(service, tokens=None), ["declares no tokens"]),
        (put_sets(service, max_uncertainty="1ms"), ["are uncertain"]),
        (lasting, ["last (begin and end)"]),
        (put_sets(service, tokens=None, max_uncertainty="1s"), ["no tokens", "are uncertain"]),
    ):
        for field, document in (("a", topk(name)), ("b", topk(good, b=name))):
            answer = client.put(path, json=document)
            assert problem(answer, 422, 42203) == [field] * len(problems)
            found = [it["problem"] for it in answer.json()["errors"]]
            assert all(part in it for part, it in zip(problems, found, strict=True)), found
    assert problem(client.put(path, json=topk("nobody", b="no-one")), 422, 42203) == ["a", "b"]


def test_streams_of_a_condition_stay_usable(service: Service) -> None:
    client, name = service.client, put_sets(service)
    path = put_topk(service, name, where={"a": {"level": {"min": 3}}})
    condition = path.removeprefix("/v1/").replace("/", ".")
    for changes, part in (
        ({"tokens": None}, "declares no tokens"),
        ({"max_uncertainty": "1ms"}, "are uncertain"),
        ({"partitioning": "key"}, "reads the stream"),
        ({"partitioning": {"by": "grid", "groups": 2}}, "reads the stream"),
        ({"attributes": {}}, "where.a.level"),
        ({"attributes": {"level": "level"}}, "where.a.level"),
    ):
        answer = client.put(f"/v1/streams/{name}", json=stream(service, **{**TOKENS, **changes}))
        assert problem(answer, 409, 40901) == [condition]
        assert part in answer.json()["errors"][0]["problem"]
    other = stream(service, **{**TOKENS, "tokens": {"path": "text", "tokenizer": "words"}})
    assert client.put(f"/v1/streams/{name}", json=other).status_code == 200
    assert problem(client.delete(f"/v1/streams/{name}"), 409, 40901) == [condition]


def test_validate_derives_numbers_and_names_fields(service: Service) -> None:
    a, b = put_sets(service), put_sets(service, max_delay="3s")
    body = {"condition": topk(a, b=b, k=5), "rates": {a: 100, b: 0.5}}
    answer = service.client.post("/v1/conditions:validate", json=body).json()
    assert (answer["valid"], answer["errors"]) == (True, [])
    assert answer["document"]["similarity"] == "jaccard"
    # Of window and max_delay, 10 s and 3 s.
    assert answer["derived"] == {
        "buffer_horizon_us": {a: 13 * SECOND, b: 13 * SECOND},
        "worst_case_alarm_latency_us": 3 * SECOND,
        "expected_buffered_events": {a: 1300, b: 6},
        "max_stock_pairs": 5 * 1306.5 // 1,
    }
    unknown = service.client.post("/v1/conditions:validate", json={"condition": topk(a)}).json()
    assert unknown["derived"] == {
        "buffer_horizon_us": {a: 11 * SECOND},
        "worst_case_alarm_latency_us": SECOND,
    }
    wrong = {"condition": topk(a, b="nobody", k=0, min_similarity=2)}
    answer = service.client.post("/v1/conditions:validate", json=wrong).json()
    assert sorted(it["field"] for it in answer["errors"]) == ["b", "k", "min_similarity"]


def test_plan_describes_list_and_search(service: Service) -> None:
    a, b = put_sets(service), put_sets(service)
    plan = service.client.get(f"{put_topk(service, a, b=b, search='newest')}/plan").json()
    sentences = plan.pop("sentences")
    assert_names(sentences[0], "2 most similar pairs", a, b)
    assert_names(sentences[1], "10s")
    assert_names(sentences[2], "all watermarks")
    assert len(sentences) == 3
    partitioning = plan.pop("partitioning")
    assert_names(partitioning.pop("why"), "one slot")
    assert partitioning == {"by": "grid", "groups": 1, "cells": 1, "copies": 1}
    assert set(plan) == {"similarity", "search", "report", "stock"}
    assert plan["similarity"] == "jaccard"
    assert_names(plan["search"], "newest token first")
    assert_names(plan["report"], "net change")
    assert_names(plan["stock"], "at most k")
    keyed = put_sets(service, partitioning="key")
    path = put_topk(service, keyed, per_key=True, report="every")
    plan = service.client.get(f"{path}/plan").json()
    assert_names(plan["sentences"][0], "each join key", "2 most similar pairs", keyed)
    assert plan["report"] == "every set and expiry"
    assert_names(plan["partitioning"].pop("why"), "equal keys")
    assert plan["partitioning"] == {"by": "key", "copies": 1}


def test_the_list_is_empty_before_the_job_writes_one(service: Service) -> None:
    client, name = service.client, put_sets(service)
    path = put_topk(service, name)
    nothing = ("key", "applied_version", "version", "as_of", "detected_at", "error", "next")
    empty: dict[str, object] = {field: [] for field in ("items", "rows", "keys")}
    empty |= {
        "condition": path.rsplit("/", 1)[1],
        "columns": ["rank", "value", "older", "time", "newer", "time"],
    }
    assert client.get(f"{path}/topk").json() == empty | dict.fromkeys(nothing)
    status = client.get(f"{path}/status").json()
    assert (status["state"], status["applied"], set(status["streams"])) == (
        "pending",
        False,
        {name},
    )
    other = f"/v1/conditions/{fresh('c')}"
    timing = put_stream(service)
    assert client.put(other, json=pair(timing, timing)).status_code == 201
    refused = client.get(f"{other}/topk")
    assert problem(refused, 404, 40403) == []
    assert_names(refused.json()["detail"], "kind mutual_deadline", "topk_similarity")
    assert problem(client.get("/v1/conditions/none/topk"), 404, 40401) == []
