"""The published AsyncAPI document, and the records of the config topic that it describes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from service.asyncapi import make_document
from tests.rest.running import fresh_settings, running
from tests.support.kafka import read_committed
from tests.support.records import RecordChecker

if TYPE_CHECKING:
    from tests.rest.running import Service

pytestmark = pytest.mark.kafka


def test_document_describes_this_installation(service: Service) -> None:
    answer = service.client.get("/v1/asyncapi.json")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json() == make_document(service.settings)
    addresses = {it["address"] for it in answer.json()["channels"].values()}
    assert set(service.settings.topics.all()) < addresses


def test_registered_resources_are_stored_as_described(kafka_bootstrap: str) -> None:
    settings = fresh_settings(kafka_bootstrap)
    buckets = [["0s", "20ms", "0.1"], ["20ms", "30ms", "0.9"]]
    first = {
        "topic": f"{settings.prefix}-x",
        "max_uncertainty": "1s",
        "max_delay": "1s",
        "templates": ["t"],
        "tokens": "tags",
        "attributes": {"rule": "alert.rule"},
        "where": {"rule": ["A-1", "A-2"]},
    }
    near = {"kind": "mutual_deadline", "a": "x", "b": "x", "window": "2s", "threshold": 0.6}
    requests = [
        ("templates/t", {"buckets": buckets}),
        ("streams/x", first),
        ("conditions/near", {**near, "where": {"a": {"rule": "A-1"}}}),
    ]
    with running(settings) as service:
        for path, body in requests:
            answer = service.client.put(f"/v1/{path}", json=body)
            assert answer.status_code == 201, answer.text
        for path, _ in reversed(requests):
            assert service.client.delete(f"/v1/{path}").status_code == 204
    records = read_committed(kafka_bootstrap, settings.topics.config)
    checker = RecordChecker()
    assert [checker.type_of("config", it) for it in records] == [
        *("template", "stream", "mutual_deadline_condition"),
        *["deleted_resource"] * 3,
    ]
