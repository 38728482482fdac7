"""Streams that are filtered, by the filters of their roles."""

from __future__ import annotations

import pytest

from correlation.resources.filters import Filter, read_filter
from correlation.timing.filter_operator import filters_of_streams
from correlation.two_streams import Where
from tests.support.filters import DECLARED


def wanted(rule: object) -> Filter:
    return read_filter({"rule": rule}, DECLARED)


@pytest.mark.parametrize(
    ("a", "b", "where", "expected"),
    [
        ("x", "y", Where(), {}),
        ("x", "y", Where(a=wanted("A")), {"x": {"A"}}),
        ("x", "y", Where(wanted("A"), wanted("B")), {"x": {"A"}, "y": {"B"}}),
        ("x", "x", Where(wanted("A"), wanted("B")), {"x": {"A", "B"}}),
        # Every event of the stream may be B.
        ("x", "x", Where(a=wanted("A")), {}),
    ],
)
def test_a_stream_is_filtered_by_all_of_its_roles(
    a: str, b: str, where: Where, expected: dict[str, set[str]]
) -> None:
    found = filters_of_streams(a, b, where)
    rules = {
        stream: {it.to_document()["rule"] for it in filters} for stream, filters in found.items()
    }
    assert rules == expected
