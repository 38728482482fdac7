"""Documents: durations in every notation, exact decimals, and errors that name the field."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from correlation.kinds import KINDS, condition_from_document
from correlation.resources.partitioning import Partitioning
from correlation.resources.records import stream_from_document
from correlation.timing.kinds import TIMING_KINDS
from service.api.body import parse_json
from service.api.wording import field_problems
from service.documents.fields import Document, name_as_written
from service.documents.models import (
    ConditionDocument,
    StreamDocument,
    TemplateDocument,
    condition_models,
)

CONDITION: TypeAdapter[Document] = TypeAdapter(ConditionDocument)
PAIR: dict[str, Any] = {"kind": "mutual_deadline", "a": "x", "b": "y", "threshold": Decimal("0.7")}
STREAM: dict[str, Any] = {"topic": "t", "max_uncertainty": "200ms", "max_delay": "1s"}


def problems_of(document: object) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        CONDITION.validate_python(document)
    return sorted(it.field for it in field_problems(caught.value.errors()))


@pytest.mark.parametrize(
    ("field", "value", "window_us"),
    [
        ("window_us", 2_000_000, 2_000_000),
        ("window_us", Decimal("2E6"), 2_000_000),
        ("window_ms", 250, 250_000),
        ("window_ms", Decimal("0.001"), 1),
        ("window_s", Decimal("0.1"), 100_000),
        ("window", "2s", 2_000_000),
        ("window", "250ms", 250_000),
        ("window", "5min", 300_000_000),
        ("window", "1.5s", 1_500_000),
    ],
)
def test_duration_is_normalised_exactly(field: str, value: object, window_us: int) -> None:
    document = CONDITION.validate_python({**PAIR, field: value}).normalised()
    assert document["window_us"] == window_us
    assert "window" not in document
    assert condition_from_document("c", 1, document).kind == "mutual_deadline"


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({}, ["window"]),
        ({"window": "2s", "window_ms": 3}, ["window"]),
        ({"window_ms": True}, ["window_ms"]),
        ({"window_ms": "2"}, ["window_ms"]),
        ({"window_ms": None}, ["window_ms"]),
        ({"window_us": Decimal("0.5")}, ["window_us"]),
        ({"window_us": float("inf")}, ["window_us"]),
        ({"window_us": 2**70}, ["window_us"]),
        ({"window": "soon"}, ["window"]),
        ({"window": 2}, ["window"]),
        ({"window": "2s", "windw": 1}, ["windw"]),
        ({"window": "2s", "threshold": "much"}, ["threshold"]),
        ({"window": "2s", "threshold": True}, ["threshold"]),
        ({"window": "2s", "threshold": 0}, ["threshold"]),
        ({"window": "2s", "threshold": Decimal("1.01")}, ["threshold"]),
        ({"window": "2s", "threshold": Decimal("0.12345678901")}, ["threshold"]),
        ({"window": "2s", "threshold": float("inf")}, ["threshold"]),
        ({"window": "2s", "a": "X", "b": 3}, ["a", "b"]),
        ({"window": "2s", "emit": "all"}, ["emit"]),
        ({"window": "2s", "output": "zip"}, ["output"]),
        ({"window": "2s", "report_probability": "yes"}, ["report_probability"]),
        ({"kind": "unheard_of"}, ["kind"]),
        ({"kind": None}, ["kind"]),
    ],
)
def test_condition_names_the_wrong_field(changes: dict[str, Any], fields: list[str]) -> None:
    assert problems_of({**PAIR, **changes}) == fields


@pytest.mark.parametrize("document", [None, [], "x", 3, {}])
def test_condition_must_be_an_object_with_a_kind(document: object) -> None:
    assert problems_of(document) in ([""], ["kind"])


@pytest.mark.parametrize(
    ("written", "stored"),
    [("0.7", "0.7"), ("0.70", "0.7"), ("1", "1"), ("1.0", "1"), ("1e-10", "0.0000000001")],
)
def test_threshold_stays_the_decimal_that_was_written(written: str, stored: str) -> None:
    body = b'{"threshold": %s}' % written.encode()
    parsed = parse_json(body)
    assert isinstance(parsed, dict)
    document = CONDITION.validate_python({**PAIR, **parsed, "window": "2s"}).normalised()
    assert document["threshold"] == stored


@pytest.mark.parametrize("kind", TIMING_KINDS, ids=lambda kind: kind.name)
def test_every_kind_may_be_reported_in_three_ways(kind: Any) -> None:  # noqa: ANN401  of any kind
    for emit in (None, "pairs", "best", "unmatched"):
        given = {**kind.example, **({} if emit is None else {"emit": emit})}
        document = CONDITION.validate_python(given).normalised()
        assert document["emit"] == (emit or "pairs")
        assert condition_from_document("c", 1, document).streams == ("acoustic", "seismic")
    choices = condition_models()[kind.name].model_json_schema()["properties"]["emit"]
    assert choices["enum"] == ["pairs", "best", "unmatched"]


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_example_of_every_kind_is_valid(kind: Any) -> None:  # noqa: ANN401  of any kind
    document = CONDITION.validate_python(dict(kind.example)).normalised()
    assert set(document) == {"kind", *(field.stored_name for field in kind.fields)}
    assert condition_from_document("c", 1, document).kind == kind.name


def test_stream_fills_in_the_defaults() -> None:
    stream = stream_from_document("s", StreamDocument.model_validate(STREAM).normalised())
    assert (stream.max_uncertainty_us, stream.max_delay_us, stream.min_uncertainty_us) == (
        200_000,
        1_000_000,
        0,
    )
    assert (stream.clock, stream.max_skew_us) == ("live", 1_000_000)
    assert (stream.mapping.form, stream.partitioning.by) == ("canonical", "key")
    assert (stream.templates, stream.histograms) == ((), False)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("key", Partitioning("key")),
        ("grid", Partitioning("grid")),
        ({}, Partitioning("key")),
        ({"by": "key", "groups": 1}, Partitioning("key")),
        ({"by": "grid", "groups": 44}, Partitioning("grid", 44)),
    ],
)
def test_stream_reads_a_partitioning_also_in_short(written: object, expected: Partitioning) -> None:
    document = StreamDocument.model_validate({**STREAM, "partitioning": written}).normalised()
    assert stream_from_document("s", document).partitioning == expected


def test_stream_reads_a_mapping() -> None:
    mapping = {"time": "at.when", "after": "1min", "key": ["a.b", "c"], "format": "epoch_ms"}
    document = StreamDocument.model_validate(
        {**STREAM, "max_uncertainty": "1h", "mapping": mapping}
    )
    found = stream_from_document("s", document.normalised()).mapping
    assert found.time_path == ("at", "when")
    assert found.key_path == ("a.b", "c")
    assert (found.before_us, found.after_us, found.format) == (0, 60_000_000, "epoch_ms")


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"mapping": {"before": "1s", "earliest": "e", "latest": "l"}}, ["mapping.before"]),
        ({"mapping": {"time": ""}}, ["mapping.time"]),
        ({"mapping": {"time": []}}, ["mapping.time"]),
        ({"mapping": {"time": [1]}}, ["mapping.time"]),
        ({"mapping": {"tme": "t"}}, ["mapping.tme"]),
        ({"partitioning": {"by": "name"}}, ["partitioning.by"]),
        ({"partitioning": {"by": "grid", "groups": 45}}, ["partitioning.groups"]),
        ({"partitioning": {"by": "grid", "groups": 0}}, ["partitioning.groups"]),
        ({"partitioning": {"by": "key", "groups": 2}}, ["partitioning.groups"]),
        ({"partitioning": "grids"}, ["partitioning"]),
        ({"partitioning": None}, ["partitioning"]),
        ({"partitioning": 3}, ["partitioning"]),
        ({"topic": "no spaces"}, ["topic"]),
        ({"clock": "broken"}, ["clock"]),
        ({"max_uncertainty_us": 3}, ["max_uncertainty"]),
        ({"templates": "s1"}, ["templates"]),
        ({"templates": ["s1", "No Name", 5]}, ["templates[1]", "templates[2]"]),
        ({"templates": [f"t{n}" for n in range(1001)]}, ["templates"]),
        ({"histograms": "yes"}, ["histograms"]),
        ({"mapping": {"detected": ""}}, ["mapping.detected"]),
    ],
)
def test_stream_names_the_wrong_field(changes: dict[str, Any], fields: list[str]) -> None:
    with pytest.raises(ValidationError) as caught:
        StreamDocument.model_validate({**STREAM, **changes})
    assert [it.field for it in field_problems(caught.value.errors())] == fields


@pytest.mark.parametrize(
    "buckets",
    [
        [[0, 20, "0.1"], [20, 30, Decimal("0.3")], [30, 40, Decimal("0.60")]],
        [["0s", "20us", "0.1"], ["0.020ms", "30us", "0.3"], [30, Decimal("40.0"), "0.6"]],
        [
            {"lo": 100, "hi_ms": Decimal("0.12"), "p": "0.1"},
            {"lo_us": 120, "hi": "130us", "p": Decimal("0.3")},
            {"lo_s": Decimal("0.00013"), "hi_us": Decimal("1.4E2"), "p": "0.6"},
        ],
        [[0, 20, "0.1"], [20, 30, "0.3"], [30, 40, "0.6"], [40, 50, 0]],
    ],
)
def test_template_is_held_as_offsets_from_its_end(buckets: object) -> None:
    document = TemplateDocument.model_validate({"buckets": buckets}).normalised()
    assert document == {
        "buckets": [
            {"lo": -40, "hi": -20, "p": "0.1"},
            {"lo": -20, "hi": -10, "p": "0.3"},
            {"lo": -10, "hi": 0, "p": "0.6"},
        ]
    }
    assert TemplateDocument.model_validate(document).normalised() == document


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({}, "buckets"),
        ({"bucket": [], "buckets": [[0, 1, 1]]}, "bucket"),
        ({"buckets": None}, "buckets"),
        ({"buckets": []}, "buckets"),
        ({"buckets": [[0, 1, 1]] * 101}, "buckets"),
        ({"buckets": [[0, 1, "0.9"]]}, "buckets"),
        ({"buckets": [[0, 1]]}, "buckets[0]"),
        ({"buckets": ["0, 1, 1"]}, "buckets[0]"),
        ({"buckets": [[0, 5, "0.5"], [6, 9, "0.5"]]}, "buckets[1].lo"),
        ({"buckets": [[0, Decimal("0.5"), 1]]}, "buckets[0].hi"),
        ({"buckets": [[0, float("inf"), 1]]}, "buckets[0].hi"),
        ({"buckets": [[True, 1, 1]]}, "buckets[0].lo"),
        ({"buckets": [["soon", 1, 1]]}, "buckets[0].lo"),
        ({"buckets": [[0, 1, float("inf")]]}, "buckets[0].p"),
        ({"buckets": [[0, 1, None]]}, "buckets[0].p"),
        ({"buckets": [{"lo": 0, "hi": 1}]}, "buckets[0].p"),
        ({"buckets": [{"lo": 0, "p": 1}]}, "buckets[0].hi"),
        ({"buckets": [{"lo": 0, "lo_ms": 0, "hi": 1, "p": 1}]}, "buckets[0].lo"),
        ({"buckets": [{"lo": 0, "hi_ms": "1", "p": 1}]}, "buckets[0].hi_ms"),
        ({"buckets": [{"lo": 0, "hi": 1, "p": 1, "q": 1}]}, "buckets[0].q"),
    ],
)
def test_template_names_the_wrong_field(document: object, field: str) -> None:
    with pytest.raises(ValidationError) as caught:
        TemplateDocument.model_validate(document)
    (found,) = field_problems(caught.value.errors(), document="template")
    assert found.field == field
    assert found.remedy


def test_misspelt_field_of_a_template_is_told_from_those_of_streams() -> None:
    with pytest.raises(ValidationError) as caught:
        TemplateDocument.model_validate({"bucket": [[0, 1, 1]], "buckets": [[0, 1, 1]]})
    (found,) = field_problems(caught.value.errors(), document="template")
    assert found.remedy == "did you mean buckets?"


def test_document_refuses_parts_of_a_microsecond() -> None:
    assert problems_of({**PAIR, "window_ms": Decimal("0.0001")}) == ["window_ms"]


@pytest.mark.parametrize(
    ("field", "document", "written"),
    [
        ("window", {"window_ms": 1}, "window_ms"),
        ("window", {"window": "1s"}, "window"),
        ("mapping.before", {"mapping": {"before_s": 1}}, "mapping.before_s"),
        ("mapping.before", {"mapping": None}, "mapping.before"),
        ("topic", {}, "topic"),
    ],
)
def test_name_as_written_carries_the_unit(
    field: str, document: dict[str, Any], written: str
) -> None:
    assert name_as_written(field, document) == written
