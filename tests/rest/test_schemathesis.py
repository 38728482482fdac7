"""The interface keeps what /openapi.json says, whatever is sent (schemathesis, in process)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings

from service.app import create_app
from tests.rest.running import fresh_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from schemathesis.schemas import BaseSchema

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def api(kafka_bootstrap: str) -> Iterator[BaseSchema]:
    """Return the interface of an application that is started, with two streams in it."""
    app = create_app(fresh_settings(kafka_bootstrap))
    plane = app.state.plane
    plane.start()
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    # A document may be well formed and still name a stream that is not there, or an ETag that
    # does not hold: no schema can say that.
    schema.config.checks.positive_data_acceptance.expected_statuses += ["412", "422"]
    yield schema
    plane.stop()


schema = schemathesis.pytest.from_fixture("api")


@schema.parametrize()
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
def test_answers_are_as_described(case: schemathesis.Case[Any]) -> None:
    case.call_and_validate()
