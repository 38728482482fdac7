"""Decimals and counts of kinds have the bounds that their fields declare."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from correlation.condition_kind import Field
from service.api.body import parse_json
from service.api.wording import field_problems
from service.documents.fields import document_model
from tests.support.messages import assert_names

FIELDS = (
    Field("similarity", "decimal", "Any decimal from 0.", required=False, minimum=0),
    Field("share", "decimal", "From 0 to 1.", required=False, minimum=0, maximum=1),
    Field("offset", "decimal", "Any decimal.", required=False),
    Field("distance", "count", "Any count from 0.", required=False, minimum=0),
    Field("places", "count", "From 1 to 10.", required=False, maximum=10),
)
MODEL = document_model("Sample", "A sample.", FIELDS, None)
LIMIT = 10**15


@pytest.mark.parametrize(
    ("field", "text", "stored"),
    [
        ("similarity", "0", "0"),
        ("similarity", "3.5", "3.5"),
        ("similarity", '"12.0000000001"', "12.0000000001"),
        ("similarity", "1000000000000000", str(LIMIT)),
        ("share", "1.0", "1"),
        ("offset", "-1.50", "-1.5"),
        ("distance", "0", 0),
        ("places", "10", 10),
    ],
)
def test_value_within_its_bounds_is_stored(field: str, text: str, stored: object) -> None:
    document = MODEL.model_validate(parse_json(f'{{"{field}": {text}}}'.encode()))
    assert document.normalised()[field] == stored


@pytest.mark.parametrize(
    ("field", "value", "problem", "remedy"),
    [
        ("similarity", -1, "must be at least 0; got -1", f"write a decimal from 0 to {LIMIT}"),
        ("similarity", "1e99", f"must be at most {LIMIT}; got 1e99", ""),
        ("similarity", "much", 'a decimal; got "much"', ""),
        ("similarity", True, "a decimal", ""),
        ("similarity", float("inf"), "finite number", "use a smaller number"),
        ("similarity", "0.12345678901", "too many decimal places", "use at most 10 places"),
        ("share", Decimal("1.01"), "must be at most 1; got 1.01", "write a decimal from 0 to 1"),
        ("offset", -LIMIT - 1, f"must be at least -{LIMIT}; got {-LIMIT - 1}", ""),
        ("distance", -1, "must be at least 0", "use at least 0"),
        ("places", 0, "must be at least 1", "use at least 1"),
        ("places", 11, "must be at most 10", "use at most 10"),
    ],
)
def test_value_out_of_its_bounds_is_refused(
    field: str, value: object, problem: str, remedy: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        MODEL.model_validate({field: value})
    (found,) = field_problems(caught.value.errors())
    assert found.field == field
    assert_names(found.problem, problem)
    assert remedy in found.remedy


@pytest.mark.parametrize(
    ("field", "low", "high", "strings", "others"),
    [
        ("similarity", 0, LIMIT, ["0", "999999999999999.5"], ["-1", "1e3"]),
        ("share", 0, 1, ["0", "0.5"], ["-0.5", "1.5", "9"]),
        ("offset", -LIMIT, LIMIT, ["-3", "0.25"], ["+3"]),
    ],
)
def test_schema_of_a_decimal_has_its_bounds(
    field: str, low: int, high: int, strings: list[str], others: list[str]
) -> None:
    numbers, text = _schemas(field)[:2]
    assert (numbers["minimum"], numbers["maximum"]) == (low, high)
    assert all(re.search(text["pattern"], it) for it in strings)
    assert not any(re.search(text["pattern"], it) for it in others)


def _schemas(field: str) -> list[dict[str, Any]]:
    found = MODEL.model_json_schema()["properties"][field]["anyOf"]
    return [one for it in found for one in it.get("anyOf", [it])]


def test_schema_of_a_count_has_its_bounds() -> None:
    distance, places = (_schemas(it)[0] for it in ("distance", "places"))
    assert (distance["minimum"], distance.get("maximum")) == (0, None)
    assert (places["minimum"], places["maximum"]) == (1, 10)
