"""The description of `explain` in /openapi.json names the steps of every kind."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from correlation.explaining import GivenRecord
from correlation.kinds import KINDS, condition_from_document
from correlation.resources.records import stream_from_document
from service.app import create_app
from service.documents.fields import Document
from service.documents.models import ConditionDocument
from service.settings import Settings

# The lifespan does not begin: nothing asks for Kafka.
SCHEMAS: dict[str, Any] = create_app(Settings(bootstrap="127.0.0.1:1")).openapi()["components"][
    "schemas"
]
CONDITION: TypeAdapter[Document] = TypeAdapter(ConditionDocument)
_QUERY = "DETECT A ON event s: Smoke {n {var X}} not event r: Report {n {var X}} WHERE "
_QUERY += "s.rt.end <= r.rt.end, r.rt.end <= s.rt.end + 1 s END"
_FILTERS = {"a": {"n": "1"}}


@pytest.mark.parametrize(
    "document",
    [
        # A stream with itself and filters: the steps `same_event` and `filter`.
        {**KINDS["within"].example, "a": "smoke", "b": "smoke", "where": _FILTERS},
        {"kind": "event_query", "query": _QUERY, "threshold": "0.5"},
    ],
)
def test_description_names_the_steps(document: dict[str, Any]) -> None:
    description = SCHEMAS["ExplainedStep"]["properties"]["step"]["description"]
    condition = condition_from_document("c", 1, CONDITION.validate_python(document).normalised())
    declared = {"max_uncertainty_us": 5, "max_delay_us": 0, "attributes": {"n": "n"}}
    declared |= {"partitioning": {"by": "grid", "groups": 1}}
    streams = {
        name: stream_from_document(name, {"topic": name, **declared}) for name in condition.streams
    }
    kind = KINDS[condition.kind]
    event = GivenRecord({"id": "e", "n": "1", "earliest": 0, "latest": 2})
    answer = kind.explain(condition, streams, dict.fromkeys(kind.roles(condition), event))
    steps = [it["step"] for it in answer["steps"]]
    assert {"contract", "key", "threshold"} < set(steps)
    assert [it for it in steps if it not in description] == []
    assert [it.name for it in kind.steps if it.name in steps] == steps


def test_steps_belong_to_events_of_any_kind() -> None:
    assert "pair" not in SCHEMAS["ExplainedStep"]["description"]
