"""Request bodies built to overload the service: the work is linear in their length."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from typing import Any

import httpx
import pytest
from anyio import CapacityLimiter
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError

from service.api.body import MAX_VALUES, PARSED_AT_ONCE, Allowance, _unique, parse_json
from service.api.problems import install
from service.app import create_app
from service.errors import MAX_PROBLEMS, BodyError
from service.settings import Settings
from tests.support.messages import assert_names

JSON = {"Content-Type": "application/json"}


class CountedName(str):
    """A name that counts how often names are compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        CountedName.compared += 1
        return str.__eq__(self, other)

    def __hash__(self) -> int:
        return str.__hash__(self)


def comparisons(names: int) -> int:
    """Count the comparisons of an object's names, of which only the last two are equal."""
    pairs: list[tuple[str, object]] = [(CountedName(f"n{at}"), 0) for at in range(names)]
    pairs.append((CountedName(f"n{names - 1}"), 0))
    CountedName.compared = 0
    with pytest.raises(BodyError, match="is repeated"):
        _unique(pairs)
    return CountedName.compared


def test_twice_the_names_cost_twice_the_comparisons() -> None:
    assert comparisons(2_000) <= 2 * comparisons(1_000) + 2


class CountedProblem(dict[str, Any]):
    """A problem of a request that counts how often problems are compared."""

    compared = 0
    __hash__ = None

    def __eq__(self, other: object) -> bool:
        CountedProblem.compared += 1
        return dict.__eq__(self, other)


def test_problems_of_a_document_are_not_compared_with_each_other() -> None:
    found = [
        CountedProblem(type="extra_forbidden", loc=("body", f"n{at}"), msg="", input=0)
        for at in range(100)
    ]
    app = FastAPI()
    install(app)

    @app.get("/")
    def refuse() -> None:
        raise RequestValidationError(found)

    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.get("/")

    CountedProblem.compared = 0
    answer = asyncio.run(asked())
    assert answer.status_code == 422
    assert len(answer.json()["errors"]) == MAX_PROBLEMS + 1
    assert CountedProblem.compared == 0


def test_names_of_fields_are_not_copied_for_every_value() -> None:
    body = b'{"' + b"n" * 20_000 + b'": [' + b", ".join([b"1"] * 5_000) + b"]}"
    tracemalloc.start()
    try:
        parse_json(body)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100 * len(body)


@pytest.mark.parametrize(
    "body",
    [
        b"[" + b",".join([b"1"] * MAX_VALUES) + b"]",
        b"[" + b",".join([b"{}"] * MAX_VALUES) + b"]",
        b"[" + b",".join([b"[0,0]"] * (MAX_VALUES // 3 + 1)) + b"]",
        b"{" + b",".join(b'"n%d":0' % at for at in range(MAX_VALUES)) + b"}",
    ],
)
def test_body_of_too_many_values_is_refused(body: bytes) -> None:
    with pytest.raises(BodyError, match="more than 10,000 values") as raised:
        parse_json(body)
    assert_names(raised.value.problems[0].remedy, "fewer values", "several documents")


def test_a_field_may_have_a_limit_of_its_own() -> None:
    own = {"sample": Allowance(3, "send fewer records")}
    assert parse_json(b'{"sample": [1, 2], "a": 1}', own) == {"sample": [1, 2], "a": 1}
    many = {"a": [1] * (MAX_VALUES - 3)}
    assert parse_json(json.dumps(many | {"sample": [1, 2]}).encode(), own)
    for body in ('{"sample": {"a": [1, 2]}}', '{"sample": [1, 2, 3]}'):
        with pytest.raises(BodyError, match="more than 3 values") as raised:
            parse_json(body.encode(), own)
        (problem,) = raised.value.problems
        assert (problem.field[:6], problem.remedy) == ("sample", "send fewer records")
    # Of other values and of the nesting, the limits are those of all documents.
    for other in (b'{"a": {"sample": [' + b"1," * MAX_VALUES + b"1]}}", b"[[1,2,3]," * 90):
        with pytest.raises(BodyError):
            parse_json(other, own)
    deep = b'{"sample": ' + b"[" * 81 + b"]" * 81 + b"}"
    with pytest.raises(BodyError, match="nested deeper than 80"):
        parse_json(deep, {"sample": Allowance(1000, "")})


def test_body_of_many_values_is_read() -> None:
    values = [1] * (MAX_VALUES - 1)
    assert parse_json(str(values).encode()) == values


NAMES = {f"n{at}": 0 for at in range(MAX_VALUES - 10)}
PAIR = {"kind": "mutual_deadline", "a": "x", "b": "x", "window": "1s", "threshold": 1}


@pytest.mark.parametrize(
    ("method", "path", "document"),
    [
        ("PUT", "/v1/streams/x", NAMES),
        ("PUT", "/v1/conditions/x", PAIR | NAMES),
        ("POST", "/v1/conditions:validate", {"condition": PAIR | NAMES}),
        ("POST", "/v1/conditions:validate", {"condition": PAIR, "rates": NAMES}),
        (
            "POST",
            "/v1/conditions:validate",
            {"condition": PAIR | NAMES, "sample": {n: [0] for n in NAMES}},
        ),
        (
            "POST",
            "/v1/conditions:validate",
            {"condition": {}, "rates": {f"N{n}": 0 for n in NAMES}},
        ),
    ],
)
def test_answer_lists_the_first_of_many_problems(
    method: str, path: str, document: dict[str, Any]
) -> None:
    async def asked() -> httpx.Response:
        # The lifespan does not begin: nothing asks for Kafka.
        transport = httpx.ASGITransport(create_app(Settings(bootstrap="127.0.0.1:1")))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(method, path, json=document)

    problems = asyncio.run(asked()).json()["errors"]
    assert len(problems) == MAX_PROBLEMS + 1
    assert problems[-1]["field"] == ""
    assert_names(problems[-1]["problem"], "further fields")


def test_service_answers_while_bodies_are_parsed() -> None:
    app = create_app(Settings(bootstrap="127.0.0.1:1"))
    parsing: CapacityLimiter = app.state.parsing

    async def asked() -> None:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://localhost"
        ) as client:
            # As if that many bodies were being parsed in threads.
            for place in range(PARSED_AT_ONCE):
                await parsing.acquire_on_behalf_of(place)
            writing = asyncio.create_task(client.put("/v1/streams/x", content=b"{", headers=JSON))
            while not parsing.statistics().tasks_waiting:  # noqa: ASYNC110  it has no event
                await asyncio.sleep(0)
            assert (await client.get("/livez")).status_code == 200
            assert not writing.done()
            parsing.release_on_behalf_of(0)
            assert (await writing).json()["error_code"] == 42201

    asyncio.run(asked())
