"""Comparisons of attributes with constants: the job, explanations and filters agree."""

from __future__ import annotations

import sys
from dataclasses import replace
from decimal import Decimal
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from correlation.event_query.comparing import round_constants, satisfies
from correlation.event_query.condition import EventQueryCondition
from correlation.event_query.evaluation.candidates import compare_values, decode_exactly
from correlation.event_query.explain import explain_combination
from correlation.event_query.query import (
    AttributePattern,
    Comparison,
    Constant,
    EventPattern,
    OutputAttribute,
    Query,
)
from correlation.explaining import GivenRecord
from correlation.resources.attributes import Attribute, AttributeType, encode_value, fit_value
from correlation.resources.filters import read_filter
from correlation.resources.streams import Stream
from tests.oracle.event_queries import Event
from tests.support.event_queries import ALARM_STREAMS
from tests.support.query_slots import (
    Arrival,
    QuerySlot,
    closing_heartbeats,
    make_query_block,
    make_streams,
    query_control,
    read_results,
)

numbers = (
    st.sampled_from([0, 0.1, 0.3, 2**53, 2**53 + 1, -(2**63), 1e22, 5e-324, 1.7e308])
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
)
constants = (
    numbers.map(lambda it: it if isinstance(it, int) else Decimal(repr(it)))
    | st.decimals(-(10**30), 10**30, allow_nan=False)
    | st.sampled_from([Decimal("0.30000000000000001"), Decimal("1e-400")])
)


def query_of(constant: Constant, operator: str = "=", name: str = "x") -> Query:
    pattern = AttributePattern(name, Comparison(operator, constant))  # type: ignore[arg-type]
    return Query("Q", (), (EventPattern("s", "Smoke", (pattern,)),))


def rounded(comparison: Comparison, kind: AttributeType) -> Comparison:
    """Return the comparison for an attribute of a type."""
    stream = Stream("smoke", "smoke", 0, 0, attributes=(Attribute("x", ("x",), kind),))
    query = round_constants(query_of(comparison.constant, comparison.operator), {"s": stream})
    (pattern,) = query.events[0].attributes
    assert isinstance(pattern.pattern, Comparison)
    return pattern.pattern


@given(value=numbers, constant=constants, kind=st.sampled_from(["integer", "number"]))
@example(value=-sys.float_info.max, constant=int(-sys.float_info.max), kind="number")
@example(value=sys.float_info.max, constant=int(sys.float_info.max), kind="number")
def test_numbers_are_compared_as_by_filters(
    value: float, constant: int | Decimal, kind: AttributeType
) -> None:
    if kind == "integer" and not (value == int(value) and constant == int(constant)):
        return
    if kind == "integer" and not all(-(2**63) <= it < 2**63 for it in (value, constant)):
        return
    fitted = fit_value(value, kind)
    declared = (Attribute("x", ("x",), kind),)
    for operator, document in (
        ("=", {"x": constant}),
        ("<=", {"x": {"max": constant}}),
        (">=", {"x": {"min": constant}}),
    ):
        comparison = rounded(Comparison(operator, constant), kind)  # type: ignore[arg-type]
        expected = read_filter(document, declared).mismatch({"x": fitted}) is None
        assert satisfies(fitted, comparison) == expected
        stored = decode_exactly([encode_value(fitted)])
        assert compare_values(stored, comparison).tolist() == [expected]


@pytest.mark.parametrize(
    ("value", "constant", "kind", "expected"),
    [
        (0.1, Decimal("0.1"), "number", True),
        (0.3, Decimal("0.30000000000000001"), "number", True),
        (2**53, 2**53 + 1, "number", True),
        (2**53, 2**53 + 1, "integer", False),
        (2**53 + 1, 2**53 + 1, "integer", True),
        (True, 1, "boolean", False),
        (1, True, "integer", False),
        ("1", 1, "string", False),
        (None, 0, "number", False),
    ],
)
def test_equality(
    value: Constant | float | None, constant: Constant, kind: AttributeType, *, expected: bool
) -> None:
    assert satisfies(value, rounded(Comparison("=", constant), kind)) is expected


def test_constants_that_exceed_all_numbers_are_above_or_below_them() -> None:
    for sign, operator in product((1, -1), "<>="):
        comparison = rounded(Comparison(operator, sign * Decimal("1e400")), "number")  # type: ignore[arg-type]
        assert satisfies(1.7e308, comparison) == (operator == ("<" if sign == 1 else ">"))


def test_constants_of_the_result_and_of_other_attributes_stay_as_written() -> None:
    exact = 2**53 + 1
    query = replace(query_of(exact), attributes=(OutputAttribute("y", exact),))
    stream = Stream("smoke", "smoke", 0, 0, attributes=(Attribute("x", ("x",), "integer"),))
    assert round_constants(query, {"s": stream}) == query


VALUES = (0.1, 0.3, 1, 1.5, 2**53, 2**53 + 2, 1e22)
CONSTANTS: tuple[Constant, ...] = (
    *map(Decimal, ("0.1", "0.30000000000000001", "1.0", "1.4999999999999999999")),
    2**53 + 1,
    10**22,
)


@pytest.mark.parametrize("operator", ["=", "<", ">="])
def test_the_job_and_explain_agree_on_numbers(operator: str) -> None:
    slot = QuerySlot(make_streams(ALARM_STREAMS, keyed=False))
    queries = {f"q{place}": query_of(it, operator, "n") for place, it in enumerate(CONSTANTS)}
    controls = [
        query_control(place, query, ALARM_STREAMS, place + 1, name)
        for place, (name, query) in enumerate(queries.items())
    ]
    arrivals = [
        Arrival(Event("smoke", 0, 0, (("n", fit_value(value, "number")),), place), 0, place)
        for place, value in enumerate(VALUES)
    ]
    slot.advance(make_query_block(arrivals, controls))
    outcome = slot.advance(make_query_block([], heartbeats=closing_heartbeats(slot.streams)))
    for name, query in queries.items():
        condition = EventQueryCondition(name, 1, query, {"Smoke": "smoke"})
        explained = []
        for place, value in enumerate(VALUES):
            record = {"id": str(place), "key": "0", "earliest": 0, "latest": 0, "n": value}
            given = {"s": GivenRecord(record, form="record")}
            if explain_combination(condition, slot.streams, given)["verdict"] == "satisfied":
                explained.append((place,))
        assert read_results(outcome, name) == explained
        assert explained or operator != "="
