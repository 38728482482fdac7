"""The interface conforms to /openapi.json for all requests (schemathesis, in process).

The phases are the examples of the description, all boundary values of all parameters, generated
requests (valid and invalid), and sequences of linked requests.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import pytest
import schemathesis
from httpx import codes
from schemathesis.engine import events, from_schema

from correlation.kinds import KINDS
from service.api.common import make_precondition
from service.app import create_app
from tests.rest.running import fresh_settings

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
CONDITIONS: dict[str, dict[str, Any]] = {
    "pair": dict(KINDS["mutual_deadline"].example) | {"window_us": 5},
    "query": {"kind": "event_query", "query": _QUERY, "threshold": "0.5"},
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
        if name == "seismic":
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
    complaints: list[str] = []
    statuses: Counter[int] = Counter()
    succeeded: set[tuple[str, str]] = set()
    for event in from_schema(schema).execute():
        if isinstance(event, events.ScenarioFinished):
            for interaction in event.recorder.interactions.values():
                if interaction.response is not None:
                    statuses[interaction.response.status_code] += 1
                    succeeded |= content_of(interaction)
        elif isinstance(event, events.NonFatalError):
            complaints.append(f"{event.label}: {event.value}")
        elif isinstance(event, events.FatalError):
            complaints.append(str(event.exception))
        elif isinstance(event, events.EngineFinished):
            complaints += [f"{it.operation}: {it.title}: {it.message}" for it in event.failures]
    return Found(complaints, statuses, succeeded)


def content_of(interaction: Any) -> set[tuple[str, str]]:  # noqa: ANN401 - of schemathesis
    """Return the path and the content type of an answer of 200."""
    if interaction.response.status_code != codes.OK:
        return set()
    path = urlsplit(interaction.request.uri).path
    return {(path, str(interaction.response.headers["content-type"][0]))}


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
