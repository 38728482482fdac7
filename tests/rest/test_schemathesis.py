"""The interface conforms to /openapi.json for all requests (schemathesis, in process).

The phases are the examples of the description, all boundary values of all parameters, generated
requests (valid and invalid), and sequences of linked requests.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
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


@pytest.fixture
def app(kafka_bootstrap: str) -> Iterator[FastAPI]:
    """Return an application that is started, with the streams and the name of the examples."""
    found = create_app(fresh_settings(kafka_bootstrap))
    plane = found.state.plane
    plane.start()
    buckets = {"buckets": [[0, 20, "0.5"], [20, 30, "0.5"]]}
    plane.put("template", "acoustic", buckets, make_precondition(None, None))
    for name in ("acoustic", "seismic"):
        document: dict[str, Any] = {
            "topic": name,
            "max_uncertainty_us": 200_000,
            "max_delay_us": 1_000_000,
        }
        if name == "seismic":
            document |= {"templates": ["acoustic"]}
        plane.put("stream", name, document, make_precondition(None, None))
    pair = dict(KINDS["mutual_deadline"].example) | {"window_us": 5}
    plane.put("condition", "acoustic", pair, make_precondition(None, None))
    yield found
    found.state.plane.stop()


def run(app: FastAPI, examples: int) -> tuple[list[str], Counter[int]]:
    """Let schemathesis try everything; give its complaints and how often which status came."""
    schema: Any = schemathesis.openapi.from_asgi("/openapi.json", app)
    accepted = schema.config.checks.positive_data_acceptance
    accepted.expected_statuses = [*accepted.expected_statuses, *_REFUSALS]
    schema.config.generation.max_examples = examples
    schema.config.seed = 1
    complaints: list[str] = []
    statuses: Counter[int] = Counter()
    for event in from_schema(schema).execute():
        if isinstance(event, events.ScenarioFinished):
            for interaction in event.recorder.interactions.values():
                if interaction.response is not None:
                    statuses[interaction.response.status_code] += 1
        elif isinstance(event, events.NonFatalError):
            complaints.append(f"{event.label}: {event.value}")
        elif isinstance(event, events.FatalError):
            complaints.append(str(event.exception))
        elif isinstance(event, events.EngineFinished):
            complaints += [f"{it.operation}: {it.title}: {it.message}" for it in event.failures]
    return complaints, statuses


def test_answers_are_as_described(app: FastAPI) -> None:
    complaints, statuses = run(app, _EXAMPLES)
    assert complaints == []
    # It got somewhere, and nonsense was refused.
    assert {200, 404, 405, 415, 422} <= set(statuses)
    assert not any(status >= 500 for status in statuses)
