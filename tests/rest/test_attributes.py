"""Attributes, filters and events that last over REST, on a real Kafka."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.rest.test_resources import fresh, pair, problem, put_stream, stream
from tests.support.kafka import Sent, produce
from tests.support.patience import wait_until

if TYPE_CHECKING:
    from tests.rest.running import Service

pytestmark = pytest.mark.kafka

ATTRIBUTES = {
    "rule": "alert.rule",
    "level": {"path": "level", "type": "integer"},
    "name": {"path": ["a.b", "c"]},
    "at": "$offset",
}
WHERE = {"rule": ["A-1", "A-2"], "level": {"min": 3, "not": 5}}
STORED = {
    "rule": {"path": "alert.rule", "type": "string"},
    "level": {"path": "level", "type": "integer"},
    "name": {"path": ["a.b", "c"], "type": "string"},
    "at": {"path": "$offset", "type": "integer"},
}
LASTING: dict[str, Any] = {"mapping": {"begin": "start", "end": "stop"}, "max_length": "1h"}


def lasting(service: Service, **changes: object) -> dict[str, Any]:
    document = stream(service, **LASTING) | changes
    del document["max_uncertainty"]
    return document


def test_attributes_and_where_are_stored_and_come_back(service: Service) -> None:
    client, path = service.client, f"/v1/streams/{fresh()}"
    document = stream(service, attributes=ATTRIBUTES, where=WHERE)
    created = client.put(path, json=document)
    assert created.status_code == 201, created.text
    found = created.json()["document"]
    assert (found["attributes"], found["where"]) == (STORED, WHERE)
    # The stored form is accepted, and is the same document.
    for again in (document, client.get(path).json()["document"]):
        same = client.put(path, json=again)
        assert (same.status_code, same.json()["version"]) == (200, 1), same.text
    declared = client.get(f"{path}/status").json()
    assert (declared["declared"]["attributes"], declared["filtered"]) == (STORED, 0)
    changed = client.put(path, json=stream(service, attributes=ATTRIBUTES))
    assert (changed.json()["version"], changed.json()["document"]["where"]) == (2, None)


def test_a_stream_of_before_there_were_attributes_is_unchanged(service: Service) -> None:
    name = fresh()
    path, client = f"/v1/streams/{name}", service.client
    old = {
        "topic": f"{service.settings.prefix}-events",
        "min_uncertainty_us": 0,
        "max_uncertainty_us": 200_000,
        "max_delay_us": 1_000_000,
    }
    record = {"v": 1, "kind": "stream", "name": name, "version": 3, "updated_at": 1}
    value = json.dumps({**record, "document": old}).encode()
    produce(
        service.settings.bootstrap,
        service.settings.topics.config,
        [Sent(value, f"stream/{name}".encode())],
    )
    wait_until(lambda: client.get(path).status_code == 200)
    same = client.put(path, json=stream(service))
    assert (same.status_code, same.json()["version"]) == (200, 3), same.text


@pytest.mark.parametrize(
    ("changes", "code", "fields"),
    [
        (
            {
                "attributes": {
                    "A": "a",
                    "rule": {"path": "rule", "type": "text"},
                    "level": {"type": "integer"},
                    "at": {"path": "$offset", "type": "number"},
                    "no": {"path": "$key", "kind": 1},
                },
                "max_delay": "soon",
                "topic": "a b",
            },
            42202,
            [
                "attributes.A",
                "attributes.at.type",
                "attributes.level.path",
                "attributes.no.kind",
                "attributes.no.path",
                "attributes.rule.type",
                "max_delay",
                "topic",
            ],
        ),
        ({"attributes": {f"a{it}": "a" for it in range(101)}}, 42202, ["attributes"]),
        ({"attributes": 3, "where": {"x": {"least": 1}}}, 42202, ["attributes", "where.x.least"]),
        (
            {"attributes": ATTRIBUTES, "where": {"rule": 3, "level": {"min": 1.5}, "room": "a"}},
            42202,
            ["where.level.min", "where.room", "where.rule"],
        ),
        ({"where": {"rule": "a"}, "max_skew": "-1s"}, 42202, ["max_skew", "where.rule"]),
        ({"where": {}}, 42202, ["where"]),
        # The other fields are checked even if attributes or mapping are not valid.
        ({"attributes": {"A": "a"}, "clock": "live", "max_delay": "-1s"}, 42202, None),
    ],
)
def test_every_wrong_field_is_named(
    service: Service, changes: dict[str, Any], code: int, fields: list[str] | None
) -> None:
    answer = service.client.put(f"/v1/streams/{fresh()}", json=stream(service, **changes))
    assert sorted(problem(answer, 422, code)) == (fields or ["attributes.A", "max_delay"])


def test_events_that_last_have_limits_of_their_lengths(service: Service) -> None:
    client, path = service.client, f"/v1/streams/{fresh()}"
    created = client.put(path, json=lasting(service, min_length_ms=5))
    assert created.status_code == 201, created.text
    found = created.json()["document"]
    assert (found["min_length_us"], found["max_length_us"]) == (5_000, 3_600_000_000)
    assert not {"min_uncertainty_us", "max_uncertainty_us"} & set(found)
    assert found["mapping"]["begin"] == "start"
    same = client.put(path, json=client.get(path).json()["document"])
    assert (same.status_code, same.json()["version"]) == (200, 1), same.text
    declared = client.get(f"{path}/status").json()["declared"]
    assert (declared["min_length_us"], "max_uncertainty_us" in declared) == (5_000, False)
    unlimited = lasting(service)
    del unlimited["max_length"]
    assert "max_length_us" not in client.put(path, json=unlimited).json()["document"]


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({**LASTING}, ["max_uncertainty"]),
        ({**LASTING, "min_uncertainty_ms": 3}, ["max_uncertainty", "min_uncertainty_ms"]),
        ({"max_length": "1h", "min_length_s": 1}, ["max_length", "min_length_s"]),
        ({**LASTING, "mapping": {"begin": "a"}}, ["mapping.end", "max_uncertainty"]),
        (
            {**LASTING, "mapping": {"begin": "a", "end": "b", "time": "t"}, "max_delay": "-1s"},
            ["mapping.begin", "mapping.end", "max_delay", "max_uncertainty"],
        ),
        # A mapping that cannot be read says nothing about the limits.
        ({"mapping": {"begin": "a", "end": 3}, "max_length": "1h"}, None),
    ],
)
def test_lengths_and_uncertainties_exclude_each_other(
    service: Service, changes: dict[str, Any], fields: list[str] | None
) -> None:
    answer = service.client.put(f"/v1/streams/{fresh()}", json=stream(service, **changes))
    assert sorted(problem(answer, 422, 42202)) == (fields or ["mapping.end", "max_uncertainty"])


def test_a_missing_limit_is_named(service: Service) -> None:
    document = stream(service)
    del document["max_uncertainty"]
    answer = service.client.put(f"/v1/streams/{fresh()}", json=document)
    assert problem(answer, 422, 42202) == ["max_uncertainty"]
    assert answer.json()["errors"][0]["problem"] == "is missing"


def test_timing_conditions_refuse_events_that_last(service: Service) -> None:
    client, name = service.client, fresh()
    assert client.put(f"/v1/streams/{name}", json=lasting(service)).status_code == 201
    other = put_stream(service)
    for a, b, fields in ((name, other, ["a"]), (other, name, ["b"]), (name, name, ["a", "b"])):
        answer = client.put(f"/v1/conditions/{fresh('c')}", json=pair(a, b))
        assert problem(answer, 422, 42203) == fields
        assert f"the events of stream {name} last" in answer.json()["errors"][0]["problem"]


def test_a_stream_in_use_cannot_change_to_events_that_last(service: Service) -> None:
    client = service.client
    used, condition = put_stream(service), fresh("c")
    assert client.put(f"/v1/conditions/{condition}", json=pair(used, used)).status_code == 201
    answer = client.put(f"/v1/streams/{used}", json=lasting(service))
    assert problem(answer, 422, 42203) == ["mapping.begin"]
    assert condition in answer.json()["errors"][0]["problem"]
    assert client.delete(f"/v1/conditions/{condition}").status_code == 204
    assert client.put(f"/v1/streams/{used}", json=lasting(service)).status_code == 200
