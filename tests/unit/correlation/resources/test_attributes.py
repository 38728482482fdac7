"""Attributes of streams: declarations and the stored form of values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.errors import InvalidFieldError
from correlation.resources.attributes import (
    ATTRIBUTES_LIMIT,
    Attribute,
    AttributeType,
    AttributeValue,
    column_name,
    decode_value,
    default_type,
    encode_value,
)
from correlation.resources.paths import Path
from correlation.resources.streams import Stream


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        ("room 1", '"room 1"'),
        ("Süd", '"Süd"'),
        ('a "b"\n', r'"a \"b\"\n"'),
        ("", '""'),
        (3, "3"),
        (-(2**63), "-9223372036854775808"),
        (3.0, "3"),
        (0.1, "0.1"),
        (-0.0, "0"),
        (1e22, "1e+22"),
        (1e-7, "1e-07"),
        (True, "true"),
        (False, "false"),
    ],
)
def test_values_are_stored_as_canonical_json(value: AttributeValue, encoded: str) -> None:
    assert encode_value(value) == encoded.encode()
    assert decode_value(encoded.encode()) == value


@given(
    value=st.one_of(
        st.text(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.booleans(),
    )
)
def test_a_stored_value_is_read_back(value: AttributeValue) -> None:
    assert decode_value(encode_value(value)) == value
    assert encode_value(decode_value(encode_value(value))) == encode_value(value)


@given(a=st.floats(allow_nan=False, allow_infinity=False), b=st.integers(-100, 100))
def test_equal_numbers_have_equal_bytes(a: float, b: int) -> None:
    assert (encode_value(a) == encode_value(float(b))) == (a == b)


def test_the_column_of_an_attribute() -> None:
    assert Attribute("rule", ("alert", "rule")).column_name == column_name("rule")
    assert column_name("rule") == "attribute.rule"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (("alert", "rule"), "string"),
        (("$topic",), "string"),
        (("$offset",), "integer"),
        (("_id", "$offset"), "string"),
    ],
)
def test_the_default_type_follows_the_path(path: Path, kind: AttributeType) -> None:
    assert default_type(path) == kind
    assert Attribute("a", path, kind).type == kind


@pytest.mark.parametrize(
    ("name", "path", "kind", "errors"),
    [
        ("Rule", ("rule",), "string", ["attributes.Rule: 'Rule' is not"]),
        ("rule", (), "string", ["attributes.rule.path: has an empty part"]),
        ("rule", ("a", ""), "string", ["attributes.rule.path: has an empty part"]),
        ("rule", ("$key",), "string", ["attributes.rule.path: '$key' is unknown"]),
        ("rule", ("rule",), "text", ["attributes.rule.type: 'text' is unknown"]),
        (
            "at",
            ("$offset",),
            "string",
            ["attributes.at.type: must be integer for $offset; got string"],
        ),
        (
            "at",
            ("",),
            "text",
            ["attributes.at.path: has an empty part", "attributes.at.type: 'text' is unknown"],
        ),
    ],
)
def test_a_faulty_declaration_is_refused(
    name: str, path: Path, kind: AttributeType, errors: list[str]
) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        Attribute(name, path, kind)
    found = refused.value.problems
    assert len(found) == len(errors)
    for it, error in zip(found, errors, strict=True):
        assert f"{it.field}: {it.problem}".startswith(error)


@pytest.mark.parametrize(
    ("attributes", "error"),
    [
        ((Attribute("a", ("a",)), Attribute("a", ("b",))), "attributes.a: is repeated"),
        (
            tuple(Attribute(f"a{it}", ("a",)) for it in range(ATTRIBUTES_LIMIT + 1)),
            "attributes: got 101 attributes; use at most 100",
        ),
    ],
)
def test_a_stream_refuses_repeated_and_too_many_attributes(
    attributes: tuple[Attribute, ...], error: str
) -> None:
    with pytest.raises(InvalidFieldError, match=error):
        Stream("s", "s", 0, 0, attributes=attributes)
