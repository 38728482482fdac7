"""Alarms as lines for a person."""

from __future__ import annotations

from typing import Any

from cli.alarms import describe_alarm, describe_set_aside

_ALARM: dict[str, Any] = {
    "condition": "near",
    "threshold": 0.6,
    "probability": 0.75,
    "decided_by": "satisfaction_region",
    "late": False,
    "detected_at": 1_357_063_380_000_000,
    "a": {"id": "1", "stream": "acoustic", "key": "k", "earliest": 0, "latest": 1_500_000},
    "b": {"id": "2", "stream": "seismic", "key": None, "earliest": -1, "latest": 2**60},
}


_EVENTS = (
    "2013-01-01T18:03:00Z  near  acoustic:1 @k [1970-01-01T00:00:00Z … 1970-01-01T00:00:01.500000Z]"
    f"  ↔  seismic:2 [1969-12-31T23:59:59.999999Z … {2**60} µs]  "
)


def test_describe_alarm_tells_times_and_probability() -> None:
    assert describe_alarm(_ALARM) == _EVENTS + "p=0.750  (satisfaction region)"


def test_describe_alarm_tells_the_threshold_when_there_is_no_probability() -> None:
    changes = {"probability": None, "late": True, "decided_by": "probe"}
    assert describe_alarm(_ALARM | changes) == _EVENTS + "p≥0.6  (probe)  late"


def test_describe_set_aside_tells_the_place_of_a_record_that_was_read() -> None:
    read = {"reason": "null_value", "detail": "no value", "stream": "s", "topic": "t"}
    letter = {**read, "partition": "1", "offset": "7", "value": None}
    assert describe_set_aside(letter) == "null_value  t-1@7  s  no value  no value"


def test_describe_set_aside_tells_the_topic_that_did_not_take_an_alarm() -> None:
    letter = {"reason": "output_refused", "detail": "no such topic", "topic": "t", "value": "{}"}
    assert describe_set_aside(letter) == "output_refused  t  no such topic  {}"
