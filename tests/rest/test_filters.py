"""Filters of conditions over REST, and changes of the attributes that they use."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import httpx

    from tests.rest.running import Service

pytestmark = pytest.mark.kafka
_NUMBERS = itertools.count()
ATTRIBUTES = {
    "rule": "alert.rule",
    "severity": {"path": "alert.severity", "type": "integer"},
    "level": {"path": "level", "type": "number"},
}
WHERE = {"a": {"rule": ["A-1", "A-2"], "severity": {"min": 3}}, "b": {"level": {"not": 0.1}}}


def stream(service: Service, attributes: object) -> dict[str, Any]:
    return {
        "topic": f"{service.settings.prefix}-events",
        "max_uncertainty": "200ms",
        "max_delay": "1s",
        "attributes": attributes,
    }


def put_stream(service: Service, attributes: object = ATTRIBUTES) -> str:
    name = f"s{next(_NUMBERS)}"
    answer = service.client.put(f"/v1/streams/{name}", json=stream(service, attributes))
    assert answer.status_code == 201, answer.text
    return name


def pair(a: str, b: str, where: object) -> dict[str, Any]:
    found = {"kind": "mutual_deadline", "a": a, "b": b, "window": "2s", "threshold": 0.6}
    return {**found, "where": where}


def put_pair(service: Service, where: object = WHERE) -> tuple[str, str]:
    """Register a condition; return its path and the path of its stream A."""
    a, path = put_stream(service), f"/v1/conditions/c{next(_NUMBERS)}"
    answer = service.client.put(path, json=pair(a, put_stream(service), where))
    assert answer.status_code == 201, answer.text
    return path, f"/v1/streams/{a}"


def problems(answer: httpx.Response, status: int, error_code: int) -> dict[str, str]:
    """Check a problem body; return the problems by field."""
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert (body["status"], body["error_code"]) == (status, error_code)
    assert all(it["problem"] and it["remedy"] for it in body["errors"])
    return {it["field"]: it["problem"] for it in body["errors"]}


def test_filters_are_stored_and_shown(service: Service) -> None:
    path, _ = put_pair(service)
    found = service.client.get(path).json()["document"]
    assert found["where"] == WHERE
    assert service.client.get(f"{path}/plan").json()["where"] == WHERE
    # The same filters in other words write nothing.
    other = {
        "b": {"level": {"not": [0.10]}},
        "a": {"severity": {"min": 3.0}, "rule": ["A-1", "A-2"]},
    }
    answer = service.client.put(path, json=pair(found["a"], found["b"], other))
    assert (answer.status_code, answer.json()["version"]) == (200, 1)


def test_a_condition_without_filters_shows_none(service: Service) -> None:
    path, _ = put_pair(service, None)
    assert service.client.get(path).json()["document"]["where"] is None
    assert "where" not in service.client.get(f"{path}/plan").json()


@pytest.mark.parametrize(
    ("where", "fields"),
    [
        ([], ["where"]),
        ({}, ["where"]),
        ({"c": {"rule": "x"}}, ["where.c"]),
        ({"a": {}}, ["where.a"]),
        ({"a": {"rule": {}}, "b": {"severity": {"min": 4, "max": 3}}}, None),
        ({"a": {"rule": []}}, ["where.a.rule"]),
        ({"a": {"severity": {"least": 3}}}, ["where.a.severity.least"]),
        ({"a": {"rule": None}}, ["where.a.rule"]),
        ({"a": {"rule": 1, "severity": {"max": True}}}, ["where.a.severity.max"]),
        ({"a": {"severity": ["x"] * 1001}}, ["where.a"]),
    ],
)
def test_filters_that_are_not_valid_are_refused(
    service: Service, where: object, fields: list[str] | None
) -> None:
    a = put_stream(service)
    answer = service.client.put("/v1/conditions/refused", json=pair(a, a, where))
    found = problems(answer, 422, 42202)
    assert list(found) == (fields or ["where.a.rule", "where.b.severity.min"])
    assert service.client.get("/v1/conditions/refused").status_code == 404


@pytest.mark.parametrize(
    ("where", "fields"),
    [
        ({"a": {"room": "hall"}}, ["where.a.room"]),
        ({"b": {"severity": "3"}}, ["where.b.severity"]),
        ({"b": {"severity": [1, 2.5]}}, ["where.b.severity[1]"]),
        (
            {"a": {"rule": 1}, "b": {"level": {"not": ["x"]}}},
            ["where.a.rule", "where.b.level.not"],
        ),
    ],
)
def test_filters_must_fit_the_attributes(
    service: Service, where: object, fields: list[str]
) -> None:
    a, b = put_stream(service), put_stream(service)
    document = pair(a, b, where)
    answer = service.client.put("/v1/conditions/refused", json=document)
    assert list(problems(answer, 422, 42203)) == fields
    validated = service.client.post("/v1/conditions:validate", json={"condition": document}).json()
    assert not validated["valid"]
    assert [it["field"] for it in validated["errors"]] == fields


def test_attributes_that_a_condition_uses_cannot_be_removed(service: Service) -> None:
    condition, path = put_pair(service)
    name = condition.rsplit("/", 1)[1]
    missing = "is not an attribute"
    for attributes, expected in (
        ({}, [f"where.a.rule: {missing}", f"where.a.severity: {missing}"]),
        (ATTRIBUTES | {"severity": "alert.severity"}, ["where.a.severity.min: must be a string"]),
    ):
        answer = service.client.put(path, json=stream(service, attributes))
        assert set(problems(answer, 409, 40901)) == {f"conditions.{name}"}
        found = [it["problem"] for it in answer.json()["errors"]]
        assert len(found) == len(expected)
        assert all(map(str.startswith, found, expected))
    # The condition does not use the others.
    used = {name: ATTRIBUTES[name] for name in ("rule", "severity")}
    assert service.client.put(path, json=stream(service, used)).status_code == 200
    document = service.client.get(condition).json()["document"]
    changed = pair(document["a"], document["b"], {"b": WHERE["b"]})
    assert service.client.put(condition, json=changed).status_code == 200
    assert service.client.put(path, json=stream(service, {})).status_code == 200


def test_explain_names_the_filter_that_fails(service: Service) -> None:
    path, _ = put_pair(service)
    time = {"id": "e", "key": "k", "earliest": 0, "latest": 0}
    alert = {"rule": "A-2", "severity": 2}
    a = time | {"alert": alert, "level": 1.5}
    b = time | {"attributes": {"level": 0.1}}
    asked = {"a": {"record": a}, "b": {"event": b}}
    answer = service.client.post(f"{path}/explain", json=asked).json()
    assert answer["failed_step"] == "filter"
    assert answer["explanation"] == ('severity of A is 2, but where.a.severity is {"min": 3}')
    assert answer["a"]["attributes"] == {"rule": "A-2", "severity": 2, "level": 1.5}
    alert["severity"] = 3
    answer = service.client.post(f"{path}/explain", json=asked).json()
    assert answer["failed_step"] == "filter"
    b["attributes"] = {"level": 0.2}
    answer = service.client.post(f"{path}/explain", json=asked).json()
    assert answer["verdict"] == "satisfied"


def test_the_schema_of_conditions_has_filters(service: Service) -> None:
    schemas = service.client.get("/openapi.json").json()["components"]["schemas"]
    where = schemas["WithinCondition"]["properties"]["where"]
    assert [sorted(it.get("properties", ())) for it in where["anyOf"]] == [[], ["a", "b"]]
