"""Streams of event types."""

from __future__ import annotations

import pytest

from correlation.errors import InvalidFieldError
from correlation.event_query.language.parser import parse_query
from correlation.event_query.language.streams import stream_of, streams_of
from tests.support.messages import assert_names

QUERY = parse_query("DETECT A ON event s: Smoke not event r: Fire.Report END")


def test_event_type_is_a_stream_in_lower_case() -> None:
    assert streams_of(QUERY, {}) == {"s": "smoke", "r": "fire.report"}


def test_types_map_event_types_to_streams() -> None:
    assert streams_of(QUERY, {"Smoke": "hall-1"}) == {"s": "hall-1", "r": "fire.report"}


@pytest.mark.parametrize(
    ("event_type", "types", "field", "name"),
    [
        ("_Smoke", {}, "types._Smoke", "'_smoke'"),
        ("Smoke", {"Smoke": "a b"}, "types.Smoke", "'a b'"),
    ],
)
def test_names_that_no_stream_has_are_refused(
    event_type: str, types: dict[str, str], field: str, name: str
) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        stream_of(event_type, types)
    assert caught.value.field == field
    assert_names(caught.value.problem, name, "not a valid name")


def test_unused_types_are_refused() -> None:
    with pytest.raises(
        InvalidFieldError, match=r"^types\.smoke: no event .*; did you mean Smoke\?$"
    ):
        streams_of(QUERY, {"smoke": "hall-1"})
