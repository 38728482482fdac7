"""Decimals through REST and the config topic are read back as they were written."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from correlation.kinds import to_condition
from correlation.resources.mapping import EventMapping
from correlation.resources.records import Resource
from correlation.resources.streams import Stream
from service.api.body import parse_json
from service.documents.fields import Document
from service.documents.models import ConditionDocument, TemplateDocument
from service.explaining import Asked, Explainer
from service.fold import Stored
from service.lookup import Span
from service.settings import Settings

CONDITION: TypeAdapter[Document] = TypeAdapter(ConditionDocument)
TEMPLATE: TypeAdapter[Document] = TypeAdapter(TemplateDocument)
UNIT = Decimal("1e-10")
WHOLE = 10**10


def _stored(model: TypeAdapter[Document], kind: Any, body: str) -> Resource:  # noqa: ANN401 - a ResourceKind
    """Return a resource as it comes back from the config topic."""
    document = model.validate_python(parse_json(body.encode())).normalised()
    written = orjson.dumps(Resource(kind, "n", 1, 0, document).to_record())
    return Resource.from_record(orjson.loads(written))


@given(st.integers(1, WHOLE), st.sampled_from(["{}", '"{}"']), st.sampled_from(["f", "E"]))
def test_a_threshold_reads_back_as_it_was_written(units: int, quoted: str, form: str) -> None:
    threshold = units * UNIT
    text = quoted.format(format(threshold, form))
    body = f'{{"kind": "mutual_deadline", "a": "x", "b": "y", "window": "2s", "threshold": {text}}}'
    stored = _stored(CONDITION, "condition", body)
    assert Decimal(stored.document["threshold"]) == threshold
    condition: Any = to_condition(stored)
    assert condition.threshold == threshold
    # Alarms have it as a number.
    alarm = json.loads(orjson.dumps(float(condition.threshold)), parse_float=Decimal)
    assert alarm == threshold


@given(st.integers(0, WHOLE), st.sampled_from(["{}", '"{}"']))
def test_masses_read_back_as_they_were_written(units: int, quoted: str) -> None:
    masses = [units * UNIT, 1 - units * UNIT]
    first, second = (quoted.format(format(mass, "f")) for mass in masses)
    body = f'{{"buckets": [[0, 10, {first}], [10, 20, {second}]]}}'
    stored = _stored(TEMPLATE, "template", body)
    filled = [mass for mass in masses if mass]
    assert [Decimal(bucket["p"]) for bucket in stored.document["buckets"]] == filled
    assert [bucket.mass * UNIT for bucket in stored.to_template().histogram.buckets] == filled


def test_explain_reads_the_times_of_a_request_exactly() -> None:
    mapping = EventMapping("time", time_path=("at",), format="epoch_s", key_path=("k",))
    stream = Stream("s", "s", 2**45, 0, clock="replay", mapping=mapping)
    document = {"kind": "mutual_deadline", "a": "s", "b": "s", "window_us": 1, "threshold": "0.5"}
    stored = Stored(Resource("condition", "c", 1, 0, document), 0)
    asked = b'{"a": {"k": "n", "at": 17179869184.123457}, "b": {"k": "n", "at": 1.0000001}}'
    body: Any = parse_json(asked)
    explainer = Explainer(Settings())
    answer = explainer.explain(stored, {"s": stream}, Asked(body), Span(), lambda _key: None)
    spans = sorted((answer[role]["earliest"], answer[role]["latest"]) for role in "ab")
    assert spans == [(1_000_000, 1_000_001), (17_179_869_184_123_457, 17_179_869_184_123_457)]
