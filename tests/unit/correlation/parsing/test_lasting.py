"""Records of events that last: times, limits, and reasons of rejection."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from correlation.errors import RejectedEventError
from correlation.parsing.event_reader import compile_mapping
from correlation.reasons import Reason
from correlation.resources.mapping import EventMapping
from correlation.resources.streams import Stream

HOUR = 3_600_000_000
JAN_2013 = 1_356_998_400_000_000  # 2013-01-01T00:00:00Z


def stream(**changes: Any) -> Stream:  # noqa: ANN401 - as Stream
    mapping = EventMapping(
        "lasting", begin_path=("at", "start"), end_path=("stop",), format=changes.pop("format")
    )
    return Stream("s", "s", 0, 0, mapping=mapping, **{"clock": "replay", **changes})


@pytest.mark.parametrize(
    ("format_", "begin", "end", "span"),
    [
        ("epoch_s", "1", "2", (1_000_000, 2_000_000)),
        ("epoch_us", "5", "5", (5, 5)),
        # Both are rounded down, so that equal times stay equal.
        ("epoch_ns", "1500", "1500", (1, 1)),
        ("epoch_ns", "-1500", "2999", (-2, 2)),
        (
            "iso8601",
            '"2013-01-01T00:00:00Z"',
            '"2013-01-01T03:30:00+02:30"',
            (JAN_2013, JAN_2013 + HOUR),
        ),
    ],
)
def test_a_record_has_begin_and_end(
    format_: str, begin: str, end: str, span: tuple[int, int]
) -> None:
    text = f'{{"at": {{"start": {begin}}}, "stop": {end}}}'.encode()
    event = compile_mapping(stream(format=format_))(orjson.loads(text), text, b"k", 0)
    assert (event.earliest, event.latest, event.shape) == (*span, None)


@pytest.mark.parametrize(
    ("record", "limits", "reason", "detail"),
    [
        ({"at": {"start": 3}, "stop": 1}, {}, "begin_after_end", "begin is 2 us after end"),
        (
            {"at": {"start": 1}, "stop": 4},
            {"min_length_us": 4},
            "shorter_than_declared",
            "length 3 us is below min_length, 4 us",
        ),
        (
            {"at": {"start": 1}, "stop": 4},
            {"max_length_us": 2},
            "longer_than_declared",
            "length 3 us exceeds max_length, 2 us",
        ),
        ({"at": {}, "stop": 4}, {}, "missing_field", "field 'at.start' is missing"),
        ({"at": {"start": 1}}, {}, "missing_field", "field 'stop' is missing"),
        ({"at": {"start": 1}, "stop": 2**61}, {}, "time_out_of_range", "36,000 years"),
        (
            {"at": {"start": 1}, "stop": 112},
            {"clock": "live", "max_skew_us": 1},
            "future_dated",
            "Kafka timestamp; max_skew is 1 us",
        ),
    ],
)
def test_a_record_outside_the_limits_is_rejected(
    record: dict[str, Any], limits: dict[str, Any], reason: str, detail: str
) -> None:
    text = orjson.dumps(record)
    with pytest.raises(RejectedEventError) as rejected:
        compile_mapping(stream(format="epoch_us", **limits))(record, text, b"k", 100)
    assert rejected.value.reason == Reason(reason)
    assert detail in rejected.value.detail


def test_the_limits_include_their_ends_and_are_optional() -> None:
    for limits in ({}, {"min_length_us": 3, "max_length_us": 3}):
        read = compile_mapping(stream(format="epoch_us", clock="live", max_skew_us=1, **limits))
        assert read({"at": {"start": 98}, "stop": 101}, None, b"k", 100).latest == 101
    # 30,000 years: longer than any uncertainty.
    ages = {"at": {"start": -(2**59)}, "stop": 2**59}
    assert compile_mapping(stream(format="epoch_us"))(ages, None, b"k", 0).earliest == -(2**59)
