"""Malformed request bodies written by people and programs."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.api.body import parse_json
from service.errors import BodyError


@pytest.mark.parametrize(
    ("body", "parsed"),
    [
        (b"{}", {}),
        (b"null", None),
        (b'{"a": 0.70000000000000000001}', {"a": Decimal("0.70000000000000000001")}),
        (b'{"a": 12345678901234567890}', {"a": 12345678901234567890}),
        (b'{"a": 1e400}', {"a": float("inf")}),
        (b'{"a": -1e999999999}', {"a": float("inf")}),
        (b'{"a": 1' + b"0" * 5000 + b"}", {"a": float("inf")}),
        (b'{"a": 1e99999999999999999999}', {"a": float("inf")}),
        (b'{"a": 0e-99999999999999999999}', {"a": float("inf")}),
        (b'{"a": Infinity}', {"a": float("inf")}),
        (b'{"a": NaN}', {"a": float("inf")}),
        ('{"é": "\\u0000 \\ud83d\\ude00"}'.encode(), {"é": "\0 😀"}),
    ],
)
def test_parse_json_keeps_numbers_exact(body: bytes, parsed: object) -> None:
    assert parse_json(body) == parsed


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b'{"a": 1,}', "not valid JSON"),
        (b"\xff\xfe{}", "not valid UTF-8 at byte 0"),
        (b'{"a": 1, "a": 2}', "'a' is repeated"),
        (b'{"a": {"b": 1, "b": 1}}', "'b' is repeated"),
        (b'{"a": "\\ud800"}', "surrogate"),
        (b'{"\\udfff": 1}', "surrogate"),
        (b"[" * 90 + b"]" * 90, "nested deeper than 80"),
        (b"[" * 100_000, "nested deeper than 80"),
        (b'{"a":' * 100_000, "nested deeper than 80"),
    ],
)
def test_parse_json_says_what_is_wrong(body: bytes, detail: str) -> None:
    with pytest.raises(BodyError, match=detail):
        parse_json(body)


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode()))
def test_parse_json_gives_a_document_or_a_body_error(body: bytes) -> None:
    with suppress(BodyError):
        assert parse_json(b"[" + body + b"]") == [parse_json(body)] or b"," in body
