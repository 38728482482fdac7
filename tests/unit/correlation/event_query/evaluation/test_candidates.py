"""Attribute patterns: which events of a segment can take an alias."""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.buffers.columns import BytesColumn, DictionaryColumn
from correlation.buffers.segment import Segment
from correlation.event_query.evaluation.candidates import (
    compare_values,
    decode_exactly,
    equal_encodings,
    read_candidates,
)
from correlation.event_query.evaluation.views import ViewKey, Views
from correlation.event_query.query import AttributePattern, Comparison, EventPattern, Variable
from correlation.resources.attributes import encode_value

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
}
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)
numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
decimals = st.decimals(allow_nan=False, allow_infinity=False)
small = st.sampled_from([0, 1, 2, 0.1, 0.5, -0.0, 1e22, 10**18, 5e-324, 1.7976931348623157e308])


def exact(value: object) -> object:
    """Return a value as it is compared: a float by its shortest digits."""
    return Decimal(repr(value)) if isinstance(value, float) else value


@given(
    values=st.lists(small | numbers | texts | st.booleans(), max_size=6),
    name=st.sampled_from(sorted(_COMPARE)),
    constant=small.map(exact) | decimals | texts | st.booleans(),
)
def test_comparisons_are_exact_and_of_one_type(
    values: list[object], name: str, constant: object
) -> None:
    def kind(value: object) -> type:
        return type(value) if isinstance(value, bool | str) else int

    encoded = [encode_value(it) for it in values]  # type: ignore[arg-type]
    expected = [
        kind(it) is kind(constant) and bool(_COMPARE[name](exact(it), constant)) for it in values
    ]
    comparison = Comparison(name, constant)  # type: ignore[arg-type]
    assert compare_values(decode_exactly(encoded), comparison).tolist() == expected
    if name == "=":
        found = equal_encodings(constant)  # type: ignore[arg-type]
        assert [it in found for it in encoded] == expected


def test_a_huge_exponent_is_compared_without_its_digits() -> None:
    huge = Decimal("1e999999")
    assert equal_encodings(huge) == []
    assert compare_values(decode_exactly([b"1e+308", b"3"]), Comparison("<", huge)).all()


def segment_of(**attributes: list[bytes | None]) -> Segment:
    count = len(next(iter(attributes.values())))
    times = np.arange(count)
    keys = BytesColumn.from_list([b"k"])
    return Segment(
        keys,
        np.array([0, count]),
        times,
        times,
        BytesColumn.from_list([b"%d" % n for n in range(count)]),
        np.zeros(count, np.bool_),
        None,
        {f"attribute.{name}": DictionaryColumn.from_list(it) for name, it in attributes.items()},
    )


def times_of(segment: Segment, *patterns: AttributePattern, by: tuple[str, ...] = ()) -> list[int]:
    """Return the times of the candidates."""
    candidates, _ = read_candidates(EventPattern("a", "A", patterns))
    view = Views().view(segment, ViewKey(candidates, keyed=False, attributes=by))
    return [] if view is None else sorted(view.groups.end.tolist())


X = Variable("X")


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ([], [0, 1, 2, 3, 4]),
        ([AttributePattern("k", X)], [0, 1, 2, 4]),
        ([AttributePattern("k", X), AttributePattern("m", X)], [0, 4]),
        ([AttributePattern("k", X), AttributePattern("m", Variable("Y"))], [0, 1, 4]),
        ([AttributePattern("k", Comparison("=", "p"))], [0, 1]),
        ([AttributePattern("k", Comparison(">", "p"))], [2, 4]),
        ([AttributePattern("n", Comparison("=", 1))], [1]),
        ([AttributePattern("n", Comparison("=", constant=True))], [2]),
        ([AttributePattern("n", Comparison("<=", Decimal("1.5")))], [0, 1, 3]),
        (
            [
                AttributePattern("n", Comparison("<=", 2)),
                AttributePattern("k", Comparison("=", "p")),
                AttributePattern("n", Comparison(">=", 1)),
            ],
            [1],
        ),
        ([AttributePattern("unknown", X)], []),
        ([AttributePattern("unknown", Comparison("=", 0))], []),
    ],
)
def test_candidates_match_all_patterns(
    patterns: list[AttributePattern], expected: list[int]
) -> None:
    segment = segment_of(
        k=[b'"p"', b'"p"', b'"q"', None, b'"q"'],
        m=[b'"p"', b'"q"', None, b'"p"', b'"q"'],
        n=[b"0.5", b"1", b"true", b"1.5", b"3"],
    )
    assert times_of(segment, *patterns) == expected


def test_a_boolean_and_a_number_are_different_patterns_of_one_segment() -> None:
    segment, views = segment_of(n=[b"1", b"true"]), Views()
    for constant, expected in ((1, [0]), (True, [1])):
        pattern = AttributePattern("n", Comparison("=", constant))
        candidates, _ = read_candidates(EventPattern("a", "A", (pattern,)))
        view = views.view(segment, ViewKey(candidates, keyed=False, attributes=()))
        assert view is not None
        assert view.groups.end.tolist() == expected
