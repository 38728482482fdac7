"""Every route under /v1 refuses unknown and repeated query parameters."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import orjson
import pytest

from correlation.resources.records import Resource
from service.app import create_app
from service.log import LogRecord
from service.settings import Settings
from tests.support.messages import assert_names

# The lifespan does not begin: nothing asks for Kafka.
APP = create_app(Settings(bootstrap="127.0.0.1:1"))
# The condition below reads it.
STREAM = Resource("stream", "x", 1, 0, {"topic": "t", "max_uncertainty_us": 9, "max_delay_us": 9})
APP.state.plane.registry.apply(LogRecord(0, STREAM.key, orjson.dumps(STREAM.to_record()), 0))
CONDITION = {"kind": "mutual_deadline", "a": "x", "b": "x", "window": "1s", "threshold": 1}
BODIES: dict[str, Any] = {
    "/v1/streams/{name}": {"topic": "t", "max_uncertainty": "1s", "max_delay": "1s"},
    "/v1/conditions/{name}": CONDITION,
    "/v1/templates/{name}": {"buckets": [[0, 10, 1]]},
    "/v1/config": {"resources": []},
    "/v1/job/slots": {"slots": 2},
    "/v1/conditions:validate": {"condition": CONDITION},
    "/v1/conditions/{name}/explain": {"a": {"id": "a1"}, "b": {"id": "b1"}},
}
OPERATIONS = [
    (method, path, [it["name"] for it in operation.get("parameters", ()) if it["in"] == "query"])
    for path, operations in APP.openapi()["paths"].items()
    if path.startswith("/v1/")
    for method, operation in operations.items()
]


def ask(method: str, target: str, body: object = None) -> httpx.Response:
    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(APP)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(method, target, json=body)

    return asyncio.run(asked())


def refused(method: str, path: str, query: str) -> list[tuple[str, str, str]]:
    body = BODIES.get(path) if method in {"put", "post"} else None
    target = path.format(name="x", topic="x", partition=0, offset=0)
    answer = ask(method, f"{target}?{query}", body)
    assert (answer.status_code, answer.json()["error_code"]) == (422, 42206), answer.text
    return [(it["field"], it["problem"], it["remedy"]) for it in answer.json()["errors"]]


@pytest.mark.parametrize(("method", "path", "known"), OPERATIONS)
def test_unknown_parameter_is_refused_everywhere(method: str, path: str, known: list[str]) -> None:
    ((field, problem, remedy),) = refused(method, path, "nonsense=1")
    assert field == "nonsense"
    assert_names(problem, "not a query parameter")
    assert all(name in remedy for name in known)
    for name in known:
        assert refused(method, path, f"{name}=1&{name}=1") == [
            (name, "occurs 2 times", "write it once")
        ]


def test_every_route_is_tried() -> None:
    assert len(OPERATIONS) == 30
    found = {name for _, _, known in OPERATIONS for name in known}
    assert found == {
        *("dry_run", "prune", "limit", "after", "key", "sample_from_topic", "sample_records"),
        *("condition", "since", "until"),
    }


@pytest.mark.parametrize(
    ("method", "path", "query", "remedies"),
    [
        (
            "delete",
            "/v1/conditions/{name}",
            "dry-run=true",
            [("dry-run", "dry_run")],
        ),
        (
            "get",
            "/v1/streams",
            "Limits=3&afer=a",
            [
                ("Limits", "limit, after"),
                ("afer", "after, limit"),
            ],
        ),
        (
            "get",
            "/v1/job",
            "x",
            [("x", "leave it out")],
        ),
    ],
)
def test_near_names_come_first(
    method: str, path: str, query: str, remedies: list[tuple[str, str]]
) -> None:
    found = refused(method, path, query)
    assert [field for field, _, _ in found] == [field for field, _ in remedies]
    for (_, problem, remedy), (_, names) in zip(found, remedies, strict=True):
        assert_names(problem, "not a query parameter")
        assert_names(remedy, names)


def test_paths_for_machines_take_any_query() -> None:
    assert ask("get", "/livez?since=1").status_code == 200
