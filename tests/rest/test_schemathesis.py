"""The interface conforms to /openapi.json for all requests (schemathesis, in process).

The phases are the examples of the description, all boundary values of all parameters, generated
requests (valid and invalid), and sequences of linked requests.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import schemathesis
from httpx import codes
from pydantic import TypeAdapter

from correlation.kinds import KINDS
from correlation.topk.condition import build_condition
from correlation.topk.listed import ListedPair, SetRef
from correlation.topk.results import present_lists
from correlation.topk.similarities import SIMILARITIES
from service.api.common import make_precondition
from service.app import create_app
from service.documents.fields import Document
from service.documents.models import ConditionDocument
from tests.rest.running import fresh_settings
from tests.support.generated_requests import send_generated
from tests.support.kafka import Sent, produce
from tests.support.patience import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fastapi import FastAPI

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
_EXAMPLES = 25
# A document may be well formed and still name a stream that is not there, be inconsistent in
# itself, or come with an ETag that does not hold: no schema can say that.
_REFUSALS = ["412", "422"]
# The aliases are those of the example of `explain`.
_QUERY = """DETECT Heard ON event s: Acoustic not event r: Seismic
WHERE s.rt.end <= r.rt.end, r.rt.end <= s.rt.end + 1 s END"""
_CONDITIONS: TypeAdapter[Document] = TypeAdapter(ConditionDocument)
CONDITIONS: dict[str, dict[str, Any]] = {
    "pair": dict(KINDS["mutual_deadline"].example) | {"window_us": 5},
    "query": {"kind": "event_query", "query": _QUERY, "threshold": "0.5"},
    "sets": _CONDITIONS.validate_python(KINDS["topk_similarity"].example).normalised(),
}
# A set has one exact time.
_SETS = {
    "max_uncertainty_us": 0,
    "partitioning": {"by": "grid", "groups": 1},
    "tokens": "tags",
}
# Events of the stream of the sets, the older one first.
PAIR: dict[str, dict[str, Any]] = {
    "a": {"id": "a-1", "time": 5_000_000, "tags": ["disk", "full"]},
    "b": {"id": "a-2", "time": 6_000_000, "tags": ["disk", "full", "var"]},
}


class Found(NamedTuple):
    """Complaints, the number of answers by status, and the content types of answers of 200."""

    complaints: list[str]
    statuses: Counter[int]
    succeeded: set[tuple[str, str]]


@pytest.fixture
def app(kafka_bootstrap: str, request: pytest.FixtureRequest) -> Iterator[FastAPI]:
    """Return an application that is started, with the streams and the condition of the examples."""
    found = create_app(fresh_settings(kafka_bootstrap, allowed_hosts=("*",)))
    plane = found.state.plane
    plane.start()
    buckets = {"buckets": [[0, 20, "0.5"], [20, 30, "0.5"]]}
    plane.writes.put("template", "acoustic", buckets, make_precondition(None, None))
    for name in ("acoustic", "seismic"):
        document: dict[str, Any] = {
            "topic": name,
            "max_uncertainty_us": 200_000,
            "max_delay_us": 1_000_000,
        }
        if request.param == "sets":
            document |= _SETS
        elif name == "seismic":
            document |= {"templates": ["acoustic"]}
        plane.writes.put("stream", name, document, make_precondition(None, None))
    condition = CONDITIONS[request.param]
    plane.writes.put("condition", "acoustic", condition, make_precondition(None, None))
    yield found
    found.state.plane.stop()


def run(app: FastAPI, path: str = "", accept: str | None = None) -> Found:
    """Let schemathesis try all operations whose path matches; it draws no media types."""
    schema: Any = schemathesis.openapi.from_asgi("/openapi.json", app)
    if path:
        schema = schema.include(path_regex=path)
    accepted = schema.config.checks.positive_data_acceptance
    accepted.expected_statuses = [*accepted.expected_statuses, *_REFUSALS]
    schema.config.generation.max_examples = _EXAMPLES
    if accept is not None:
        schema.config.update(headers={"Accept": accept})
    schema.config.seed = 1
    found = send_generated(schema)
    return Found(
        found.errors + found.failures,
        Counter(it.status for it in found.answers),
        {(it.path, it.content_type) for it in found.answers if it.status == codes.OK},
    )


@pytest.mark.parametrize("app", ["pair"], indirect=True)
def test_answers_are_as_described(app: FastAPI) -> None:
    found = run(app)
    assert found.complaints == []
    # It got somewhere, and nonsense was refused.
    assert {200, 404, 405, 415, 422} <= set(found.statuses)
    assert not any(status >= 500 for status in found.statuses)


@pytest.mark.parametrize("app", ["query"], indirect=True)
def test_answers_about_an_event_query_are_as_described(app: FastAPI) -> None:
    routes, prefix = r"^/v1/conditions/\{name\}/", "/v1/conditions/acoustic/"
    found = run(app, routes)
    drawn = run(app, f"{routes}plan$", "image/svg+xml")
    assert found.complaints == drawn.complaints == []
    assert not any(status >= 500 for status in found.statuses + drawn.statuses)
    assert {
        (f"{prefix}explain", "application/json"),
        (f"{prefix}plan", "application/json"),
        (f"{prefix}status", "application/json"),
    } <= found.succeeded
    assert drawn.succeeded == {(f"{prefix}plan", "image/svg+xml")}


@pytest.mark.parametrize("app", ["sets"], indirect=True)
def test_answers_about_a_list_are_as_described(app: FastAPI) -> None:
    write_list(app)
    found = run(app, r"^/v1/conditions/\{name\}/")
    assert found.complaints == []
    assert not any(status >= 500 for status in found.statuses)
    prefix = "/v1/conditions/acoustic/"
    assert {
        (f"{prefix}{name}", "application/json") for name in ("explain", "plan", "status", "topk")
    } <= found.succeeded

    # Examples and generated requests contain no pair of sets: these requests do.
    schema: Any = schemathesis.openapi.from_asgi("/openapi.json", app)
    answers = {
        name: answer_to(schema, name, None if name != "explain" else PAIR)
        for name in ("explain", "plan", "status", "topk")
    }
    explained = answers["explain"]
    assert (explained["verdict"], explained["rank"]) == ("satisfied", 1)
    assert (explained["kind"], explained["overlap"]) == ("topk_similarity", 2)
    (item,) = answers["topk"]["items"]
    assert (item["older"]["id"], item["newer"]["id"], item["sizes"]) == ("a-1", "a-2", [2, 3])
    assert answers["plan"]["similarity"] == "jaccard"
    assert answers["status"]["state"] == "pending"


def write_list(app: FastAPI) -> None:
    """Write the pair as the list of the condition, as the job does; wait until it is read."""
    plane = app.state.plane
    document = plane.find("condition", "acoustic").resource.document
    older, newer = (
        SetRef(it["time"], 0, it["id"].encode(), len(it["tags"])) for it in PAIR.values()
    )
    similarity = SIMILARITIES[document["similarity"]]
    pair = ListedPair(similarity.key(2, older.size, newer.size), 2, older, newer)
    condition = build_condition("acoustic", 1, document)
    listed = present_lists(condition, newer.time_us, [(None, [pair])])
    records = [Sent(it.value, it.key) for it in listed.records(newer.time_us)]
    produce(plane.settings.bootstrap, plane.settings.topics.of(listed.channel), records)
    lists = plane.lists.of_kind(condition.kind)
    wait_until(lambda: lists.find("acoustic", None) is not None)


def answer_to(schema: Any, name: str, body: object) -> dict[str, Any]:  # noqa: ANN401 - of schemathesis
    """Return the answer of a route of the condition, which must be 200 and as described."""
    operation = schema[f"/v1/conditions/{{name}}/{name}"]["GET" if body is None else "POST"]
    given: dict[str, Any] = {"path_parameters": {"name": "acoustic"}}
    if body is not None:
        given |= {"body": body, "media_type": "application/json"}
    answer = operation.Case(**given).call_and_validate()
    assert answer.status_code == codes.OK
    found: dict[str, Any] = answer.json()
    return found
