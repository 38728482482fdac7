"""Filters over attributes: meaning, round trips and errors."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.errors import InvalidFieldError
from correlation.limits import FILTER_CONSTANTS_LIMIT
from correlation.resources.attributes import AttributeValue
from correlation.resources.filters import read_filter
from tests.oracle.filters import matches
from tests.support.filters import DECLARED, TYPES, columns, events, filters
from tests.support.messages import assert_names


@given(filters(), st.lists(events(), max_size=8))
def test_filters_match_as_the_oracle_says(
    document: dict[str, Any], rows: list[dict[str, Any]]
) -> None:
    found = read_filter(document, DECLARED)
    expected = [matches(document, row, TYPES) for row in rows]
    assert found.mask(columns(rows), len(rows)).tolist() == expected
    assert [found.mismatch(row) is None for row in rows] == expected


@given(filters())
def test_a_filter_reads_what_it_writes(document: dict[str, Any]) -> None:
    found = read_filter(document, DECLARED)
    written = json.loads(json.dumps(found.to_document()))
    assert read_filter(written, DECLARED) == found
    assert read_filter(written, None).bind(DECLARED) == found


@pytest.mark.parametrize(
    ("wanted", "value", "expected"),
    [
        ({"severity": 2**53 + 1}, 2**53, False),
        ({"severity": 2**53 + 1}, 2**53 + 1, True),
        ({"severity": {"min": 2**53 + 1}}, 2**53, False),
        ({"severity": Decimal("3.0")}, 3, True),
        ({"level": Decimal("0.1")}, 0.1, True),
        ({"level": {"min": Decimal("0.1"), "max": Decimal("0.1")}}, 0.1, True),
        ({"level": 2**60 + 1}, float(2**60), True),
        ({"rule": {"min": "a"}}, "B", False),
        ({"rule": {"min": "\ufb01"}}, "\U0001f525", True),
        ({"open": {"not": False}}, None, False),
        ({"open": {"not": [True, False]}}, True, False),
        ({"severity": {"min": 1, "max": 3, "not": 2}}, 1, True),
        ({"severity": {"min": 1, "max": 3, "not": 2}}, 2, False),
        ({"severity": {"min": 1, "max": 3, "not": 2}}, 3, True),
        ({"severity": {"min": 1, "max": 3, "not": 2}}, 4, False),
    ],
)
def test_a_value_is_compared_exactly(
    wanted: dict[str, Any], value: AttributeValue | None, *, expected: bool
) -> None:
    (name,) = wanted
    row = {name: value}
    found = read_filter(wanted, DECLARED)
    assert found.mask(columns([row]), 1).tolist() == [expected]
    assert (found.mismatch(row) is None) == expected


def test_an_attribute_without_a_column_is_missing() -> None:
    found = read_filter({"rule": {"not": "x"}}, DECLARED)
    assert found.mask({}, 3).tolist() == [False] * 3
    assert found.mask({}, 0).dtype == np.bool_


def test_a_buffered_value_of_another_type_does_not_match() -> None:
    rows = [{"rule": "3"}, {"rule": "x"}]
    stale = {"attribute.severity": columns(rows)["attribute.rule"]}
    for wanted in ({"min": 0}, {"not": 1}, 3):
        assert not read_filter({"severity": wanted}, DECLARED).mask(stale, 2).any()


@pytest.mark.parametrize(
    ("document", "fields"),
    [
        ([], ["where"]),
        ({}, ["where"]),
        ("rule", ["where"]),
        ({"rule": None}, ["where.rule"]),
        ({"rule": {}}, ["where.rule"]),
        ({"rule": []}, ["where.rule"]),
        ({"rule": {"not": []}}, ["where.rule.not"]),
        ({"rule": ["A", ["B"]]}, ["where.rule[1]"]),
        ({"rule": "\ud800"}, ["where.rule"]),
        ({"rule": 3}, ["where.rule"]),
        ({"rule": {"min": 3}}, ["where.rule.min"]),
        ({"severity": "high"}, ["where.severity"]),
        ({"severity": [1, "2", True]}, ["where.severity[1]", "where.severity[2]"]),
        ({"severity": {"min": "3"}}, ["where.severity.min"]),
        ({"severity": {"min": Decimal("2.5")}}, ["where.severity.min"]),
        ({"severity": 2**63}, ["where.severity"]),
        ({"severity": {"not": ["x", 1]}}, ["where.severity.not[0]"]),
        ({"severity": {"min": 4, "max": 3}}, ["where.severity.min"]),
        ({"rule": {"min": "b", "max": "a"}}, ["where.rule.min"]),
        ({"severity": {"least": 3}}, ["where.severity.least"]),
        ({"level": float("inf")}, ["where.level"]),
        ({"level": float("nan")}, ["where.level"]),
        ({"level": 10**400}, ["where.level"]),
        ({"level": 10**5000}, ["where.level"]),
        (
            {"level": [Decimal("1e9999999"), Decimal("-1e9999999")]},
            ["where.level[0]", "where.level[1]"],
        ),
        (
            {"severity": {"min": 10**5000, "max": -(10**5000)}},
            ["where.severity.min", "where.severity.max"],
        ),
        ({"level": {"min": Decimal("sNaN")}}, ["where.level.min"]),
        ({"open": {"min": True}}, ["where.open.min"]),
        ({"open": 1}, ["where.open"]),
        ({"severity": True}, ["where.severity"]),
        ({"room": "hall"}, ["where.room"]),
        (
            {"room": "hall", "rule": {"min": 1, "max": None}, "severity": []},
            ["where.room", "where.rule.max", "where.severity"],
        ),
    ],
)
def test_problems_name_the_field_and_the_remedy(document: object, fields: list[str]) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        read_filter(document, DECLARED)
    assert [it.field for it in caught.value.problems] == fields
    assert all(it.problem and it.remedy for it in caught.value.problems)


def test_problems_name_the_field_the_value_and_what_is_allowed() -> None:
    with pytest.raises(InvalidFieldError) as caught:
        read_filter({"severity": {"min": "3"}, "room": 1}, DECLARED, "where.a")
    room, severity = caught.value.problems
    assert (room.field, severity.field) == ("where.a.room", "where.a.severity.min")
    assert_names(room.remedy, "rule, severity, level, open", "attributes")
    assert_names(severity.problem, "64-bit integer", "type integer", 'got "3"')
    assert_names(severity.remedy, "without quotes")


def test_types_are_checked_when_the_streams_are_known() -> None:
    found = read_filter({"severity": "high", "rule": "A"}, None)
    with pytest.raises(InvalidFieldError, match=r"^where\.severity: must be a 64-bit integer"):
        found.bind(DECLARED)
    with pytest.raises(InvalidFieldError, match="declare it in attributes"):
        found.bind(())


def test_the_number_of_constants_is_limited() -> None:
    most = [*range(FILTER_CONSTANTS_LIMIT - 1)]
    read_filter({"severity": most, "rule": "A"}, DECLARED)
    with pytest.raises(InvalidFieldError, match=r"^where: has 1,001 constants"):
        read_filter({"severity": most, "rule": ["A", "B"]}, DECLARED)
