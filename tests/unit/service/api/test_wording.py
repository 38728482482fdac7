"""Common errors in documents, and the messages that correct them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from correlation.errors import InvalidFieldError
from correlation.kinds import condition_from_document
from correlation.resources.records import stream_from_document
from service.api.body import parse_json
from service.api.documents import problem_of_field
from service.api.wording import field_problems
from service.documents.fields import Document
from service.documents.models import ConditionDocument, StreamDocument, TemplateDocument
from service.errors import BodyError, FieldProblem

CONDITION: TypeAdapter[Document] = TypeAdapter(ConditionDocument)
PAIR: dict[str, Any] = {"kind": "mutual_deadline", "a": "x", "b": "y", "window": "2s"}
STREAM: dict[str, Any] = {"topic": "t", "max_uncertainty": "200ms", "max_delay": "1s"}
DECIMAL = "write a decimal greater than 0 and at most 1, for example 0.7"
UNIT = 'write "500ms" (or us, s, min, h, d), or max_uncertainty_ms: 500'


def problem_of(document: dict[str, Any]) -> FieldProblem:
    """Return the only problem of a document, as the service would."""
    try:
        if "kind" in document:
            condition_from_document("c", 1, CONDITION.validate_python(document).normalised())
        else:
            stream_from_document("s", StreamDocument.model_validate(document).normalised())
    except ValidationError as error:
        (problem,) = field_problems(error.errors())
        return problem
    except InvalidFieldError as error:
        return problem_of_field(error, document)
    raise AssertionError("nothing is wrong")


@pytest.mark.parametrize(
    ("value", "problem", "remedy"),
    [
        (70, "must be greater than 0 and at most 1; got 70", "write 0.7"),
        ("70", "must be greater than 0 and at most 1; got 70", "write 0.7"),
        ("60%", 'must be a decimal; got "60%"', "write 0.6"),
        ("0,7", 'must be a decimal; got "0,7"', "write 0.7"),
        ("150%", 'must be a decimal; got "150%"', DECIMAL),
        ("much", 'must be a decimal; got "much"', DECIMAL),
        (Decimal("1.5"), "must be greater than 0 and at most 1; got 1.5", DECIMAL),
        (0, "must be greater than 0 and at most 1; got 0", DECIMAL),
        ("9e9999999", "must be greater than 0 and at most 1; got 9e9999999", DECIMAL),
        ("9e-9999999%", 'must be a decimal; got "9e-9999999%"', DECIMAL),
        (None, "must be a decimal", DECIMAL),
        (True, "must be a decimal", DECIMAL),
        ("0.12345678901", "has too many decimal places", "use at most 10 places"),
    ],
)
def test_threshold(value: object, problem: str, remedy: str) -> None:
    assert problem_of(PAIR | {"threshold": value}) == FieldProblem("threshold", problem, remedy)


@pytest.mark.parametrize(
    ("field", "value", "problem", "remedy"),
    [
        ("max_uncertainty", 500, "must have a unit; got 500", UNIT),
        ("max_uncertainty", "500", "must have a unit; got 500", UNIT),
        ("max_uncertainty", "-5s", "must not be negative; got -5s", 'write "5s" or "0s"'),
        ("max_uncertainty", "-500d", "must not be negative; got -500d", 'write "0s"'),
        ("max_uncertainty", "500d", "must be at most 407 days; got 500d", "use at most 407 days"),
        ("max_delay", "20000d", "must be at most 35 years; got 20000d", "use at most 35 years"),
        ("max_delay_ms", 10**20, "must be at most 35 years", "use at most 35 years"),
        (
            "max_delay_ms",
            "5",
            'must be a number; got "5"',
            'write a number, without quotes, or max_delay: "250ms"',
        ),
        ("max_delay_ms", -5, "must not be negative; got -5ms", 'write "5ms" or "0s"'),
    ],
)
def test_duration(field: str, value: object, problem: str, remedy: str) -> None:
    rest = {name: it for name, it in STREAM.items() if not field.startswith(name)}
    assert problem_of(rest | {field: value}) == FieldProblem(field, problem, remedy)


def test_duration_of_any_size_is_named() -> None:
    """Longer than what parse_duration_us reads back."""
    problem = problem_of(PAIR | {"threshold": 1, "window": "99999999999999999.9d"})
    assert problem.remedy == "use at most 35 years"


@pytest.mark.parametrize(
    ("changes", "field", "problem", "remedy"),
    [
        (
            {"clock": "relay"},
            "clock",
            '"relay" is unknown',
            "did you mean replay? use one of: live, replay",
        ),
        ({"clock": 3}, "clock", "3 is unknown", "use one of: live, replay"),
        ({"maxDelay": 1}, "maxDelay", "is not a field of this document", "did you mean max_delay?"),
        ({"delay": 1}, "delay", "is not a field of this document", "did you mean max_delay?"),
        ({"zzz": 1}, "zzz", "is not a field of this document", "remove it, or check its spelling"),
        (
            {"mapping": {"tme": "t"}},
            "mapping.tme",
            "is not a field of this document",
            "did you mean time?",
        ),
        ({"mapping": 3}, "mapping", "must be an object", "write a JSON object: {…}"),
        ({"topic": 3}, "topic", "must be a string", "write a string, in double quotes"),
        (
            {"partitioning": {"by": "grid", "groups": 45}},
            "partitioning.groups",
            "must be at most 44",
            "use at most 44",
        ),
        (
            {"partitioning": {"groups": 2}},
            "partitioning.groups",
            "requires a grid",
            'leave it out, or write "by": "grid"',
        ),
        (
            {"partitioning": "gird"},
            "partitioning",
            '"gird" is not valid',
            'write "key", "grid", or {"by": "grid", "groups": 3}',
        ),
        (
            {"mapping": {"time": "t", "timezone": "x" * 65}},
            "mapping.timezone",
            "is longer than 64 characters",
            "use at most 64 characters",
        ),
    ],
)
def test_field(changes: dict[str, Any], field: str, problem: str, remedy: str) -> None:
    assert problem_of(STREAM | changes) == FieldProblem(field, problem, remedy)


def test_kind_and_flag() -> None:
    assert problem_of(PAIR | {"kind": "witin"}).remedy.startswith("did you mean within? ")
    flag = problem_of(PAIR | {"threshold": 1, "report_probability": "yes"})
    assert (flag.problem, flag.remedy) == (
        "must be true or false",
        "write true or false, without quotes",
    )


@pytest.mark.parametrize(
    ("body", "problem", "remedy"),
    [
        ('{"a": 1,}', "an extra comma at line 1 column 8", "remove the comma at line 1 column 8"),
        (
            '{"a": [1,\n ]}',
            "an extra comma at line 1 column 9",
            "remove the comma at line 1 column 9",
        ),
        ("", "the text is empty", "send a JSON object: {…}"),
        ("{'a': 1}", "a single quote at line 1 column 2", 'write double quotes: "…"'),
        ('{"a":\n True}', "True at line 2 column 2", "write true"),
        (
            '{"a": 1 "b": 2}',
            "a comma is missing at line 1 column 9",
            "write a comma between values",
        ),
        ('{"a": 1} x', "text follows the document at line 1 column 10", "remove it"),
        (
            "{a: 1}",
            "a name in double quotes is missing at line 1 column 2",
            "put every name in double quotes",
        ),
        ('{"a": "x', "a string is not closed at line 1 column 7", "close it with a double quote"),
        ('{"a": 1', "ends too early", "close all strings, objects and lists"),
    ],
)
def test_body(body: str, problem: str, remedy: str) -> None:
    with pytest.raises(BodyError) as caught:
        parse_json(body.encode())
    assert caught.value.problems == (FieldProblem("", problem, remedy),)


@pytest.mark.parametrize("name", ["deadline", "body", "query", "header", "path", ""])
@pytest.mark.parametrize("document", [StreamDocument, TemplateDocument])
def test_unknown_field_is_named_whatever_it_is_called(name: str, document: type[Document]) -> None:
    with pytest.raises(ValidationError) as raised:
        document.model_validate({name: 1})
    located = [error | {"loc": ("body", *error["loc"])} for error in raised.value.errors()]
    kind = "template" if document is TemplateDocument else ""
    problems = field_problems(located, ("body", "query", "path", "header"), kind)
    assert name in {problem.field for problem in problems}
