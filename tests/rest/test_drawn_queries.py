"""Event queries that Hypothesis draws and changes, over REST: no fault, and errors with places."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from httpx import codes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from correlation.event_query.language.documents import query_to_document
from correlation.event_query.language.writer import write_query
from tests.unit.correlation.event_query.strategies import (
    JSON,
    changed_documents,
    changed_texts,
    queries,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from correlation.event_query.query import Query
    from tests.rest.running import Service

pytestmark = pytest.mark.kafka
_FORMS = st.sampled_from([write_query, query_to_document])
# All examples are registered under one name of one service.
_FEW = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module", autouse=True)
def _stream(service: Service) -> None:
    document = {"topic": "drawn", "max_uncertainty": "0s", "max_delay": "1s"}
    service.client.put("/v1/streams/drawn", json=document).raise_for_status()


@_FEW
@given(query=queries(), form=_FORMS)
def test_any_valid_query_is_registered_or_refused_with_its_places(
    client: httpx.Client, query: Query, form: Callable[[Query], object]
) -> None:
    types = {event.type: "drawn" for event in query.events}
    assert_registered_or_refused(client, form(query), types=types)


@_FEW
@given(drawn=changed_texts() | changed_documents() | JSON)
def test_any_changed_query_is_registered_or_refused_with_its_places(
    client: httpx.Client, drawn: object
) -> None:
    assert_registered_or_refused(client, drawn)


def assert_registered_or_refused(client: httpx.Client, drawn: object, **more: object) -> None:
    """Register a query, and check that each problem has a place in it."""
    body = json.dumps({"kind": "event_query", "query": drawn, **more})
    headers = {"content-type": "application/json"}
    answer = client.put("/v1/conditions/drawn", content=body, headers=headers)
    if answer.is_success:
        return
    assert answer.status_code in {codes.BAD_REQUEST, codes.UNPROCESSABLE_ENTITY}, answer.text
    errors = answer.json()["errors"]
    if not errors[-1]["field"]:
        # A summary of further problems has no place.
        errors.pop()
    assert errors
    for error in errors:
        if isinstance(drawn, str):
            place = error["place"]
            assert error["field"] == "query"
            assert 1 <= place["line"] <= drawn.count("\n") + 1
            assert place["column"] >= 1
        else:
            assert is_field_of(error["field"], drawn), error


def is_field_of(path: str, document: object) -> bool:
    """Return whether the field `query` has a path, or an object in which it is missing."""
    if not path.startswith("query"):
        return False
    node: object = {"query": document}
    for step in re.findall(r"[^.\[\]]+", path):
        if isinstance(node, list):
            node = node[int(step)]
        elif isinstance(node, dict):
            node = node.get(step)
        else:
            return False
    return True
