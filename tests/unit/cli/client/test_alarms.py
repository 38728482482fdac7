"""Alarms as lines for a person."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from cli.client.alarms import Found, ResultReaders, hint_at_silence
from cli.client.lines import describe_result, describe_set_aside
from cli.client.tail_command import _report
from correlation.errors import CorrelationError
from correlation.printable import printable
from tests.support.messages import naming

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


def describe_alarm(alarm: dict[str, Any]) -> str:
    (found,) = ResultReaders().read(orjson.dumps(alarm))
    return describe_result(*found)


def test_describe_alarm_tells_times_and_probability() -> None:
    assert describe_alarm(_ALARM) == _EVENTS + "p=0.750  (satisfaction region)"


def test_describe_alarm_tells_the_threshold_when_there_is_no_probability() -> None:
    changes = {"probability": None, "late": True, "decided_by": "probe"}
    assert describe_alarm(_ALARM | changes) == _EVENTS + "p≥0.6  (probe)  late"


def test_describe_alarm_tells_that_there_is_no_b() -> None:
    alone = {**_ALARM, "b": None, "decided_by": "watermark"}
    del alone["probability"]
    assert describe_alarm(alone) == _EVENTS.split("  ↔", maxsplit=1)[0] + (
        "  without  p≥0.6  (watermark)"
    )


def test_describe_alarm_shows_the_attributes_that_are_not_missing() -> None:
    attributes = {"rule": "A \u00e9", "severity": 3, "open": False, "room": None}
    a = _ALARM["a"] | {"attributes": attributes}
    expected = _EVENTS.replace("500000Z]", '500000Z] rule="A \u00e9" severity=3 open=false')
    assert describe_alarm(_ALARM | {"a": a}) == expected + "p=0.750  (satisfaction region)"


def test_an_alarm_whose_attributes_are_not_an_object_is_refused() -> None:
    with pytest.raises(ValueError, match="not an alarm"):
        describe_alarm(_ALARM | {"a": _ALARM["a"] | {"attributes": [1]}})


def test_describe_set_aside_tells_the_place_of_a_record_that_was_read() -> None:
    read = {"reason": "null_value", "detail": "no value", "stream": "s", "topic": "t"}
    letter = {**read, "partition": "1", "offset": "7", "value": None}
    assert describe_set_aside(letter) == "null_value  t-1@7  s  no value  no value"


def test_describe_set_aside_tells_the_topic_that_did_not_take_an_alarm() -> None:
    letter = {"reason": "output_refused", "detail": "no such topic", "topic": "t", "value": "{}"}
    assert describe_set_aside(letter) == "output_refused  t  no such topic  {}"


def _read(value: bytes | None) -> list[dict[str, Any]]:
    return [found.result for found in ResultReaders().read(value)]


def test_readers_takes_an_alarm_whole() -> None:
    assert _read(orjson.dumps(_ALARM)) == [_ALARM]
    unknown = _ALARM | {"probability": None}
    assert _read(orjson.dumps(unknown)) == [unknown]


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"no JSON",
        b"\xff",
        b"[]",
        b"3",
        b'{"at": 1}',
        orjson.dumps(_ALARM | {"detected_at": "now"}),
        orjson.dumps(_ALARM | {"a": None}),
        orjson.dumps(_ALARM | {"b": {"id": "2"}}),
        orjson.dumps({name: value for name, value in _ALARM.items() if name != "b"}),
        orjson.dumps(_ALARM | {"probability": "high"}),
    ],
)
def test_readers_tells_what_is_none(value: bytes | None) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the JSON reader has words of its own
        _read(value)


def test_readers_expands_factored_records() -> None:
    common = {"v": 1, "table": "t", "condition": "near", "version": 1}
    facts = {"kind": "mutual_deadline", "threshold": 0.6, "report_probability": False}
    window = {"lower_us": -5, "upper_us": 5}
    of_all = {"record": "targets", "stream": "y", "key": "k", "size": 3, "uses": 1}
    columns = {"first": 0, "ids": ["y0", "y1", "y2"], "late": [2]}
    times = {"earliest": [0, 1, 2], "latest": [3, 4, 5]}
    table = common | facts | window | of_all | columns | times
    pairs = {"pairs": 2, "certain": [0, 1], "probed": [[1, "QA=="]]}
    base = common | pairs | {"record": "base", "late": False, "a": _ALARM["a"], "detected_at": 9}
    readers = ResultReaders()
    with pytest.raises(CorrelationError, match="table t is missing"):
        list(readers.read(orjson.dumps(base)))
    assert list(readers.read(orjson.dumps(table))) == []
    found = [it.result for it in readers.read(orjson.dumps(base))]
    assert [(it["b"]["id"], it["decided_by"], it["late"]) for it in found] == [
        ("y0", "satisfaction_region", False),
        ("y2", "probe", True),
    ]


@pytest.mark.parametrize("probability", [[], {}, "0.5"])
def test_a_query_result_with_another_probability_is_not_a_result(probability: object) -> None:
    event = {"id": "s1", "stream": "smoke", "key": None, "earliest": 0, "latest": 0}
    record = {"kind": "event_query", "condition": "q", "version": 1, "type": "Alarm"}
    record |= {"attributes": {}, "begin": 0, "end": 0, "detected_at": 5, "events": {"s": event}}
    readers = ResultReaders()
    (found,) = readers.read(orjson.dumps(record | {"probability": 0.5}))
    assert "p=0.500" in found.description
    with pytest.raises(ValueError, match=naming("not a result")):
        list(readers.read(orjson.dumps(record | {"probability": probability})))


_NASTY = "\x1b[2J\nfake\r\u202e\u2028\x9b"
_ESCAPED = r"\x1b[2J\nfake\r\u202e\u2028\x9b"


def test_printable_escapes_what_does_not_print() -> None:
    assert printable(_NASTY) == _ESCAPED
    assert printable("é ↔ µs …") == "é ↔ µs …"
    assert printable("a\nb\tc\0", kept="\n\t") == "a\nb\tc\\x00"


def test_report_of_a_skipped_record_is_a_line_without_codes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = "\x1b[2J\x1b[31mowned\nforged line\u202e [bold] :x:"
    with pytest.raises(CorrelationError) as told:
        _read(orjson.dumps({"v": 1, "record": "base", "table": table}))
    _report(f"alarms-0@1: {told.value}")
    shown = capsys.readouterr().err.removesuffix("\n")
    assert shown.isprintable()
    escaped = r"\x1b[2J\x1b[31mowned\nforged line\u202e [bold] :x:"
    assert shown.startswith(f"alarms-0@1: table {escaped} is missing")


def test_describe_lets_no_record_command_the_terminal() -> None:
    event = _ALARM["a"] | {"id": _NASTY, "key": _NASTY}
    line = describe_alarm(_ALARM | {"a": event})
    assert f"acoustic:{_ESCAPED} @{_ESCAPED} [" in line
    letter = {"reason": "r", "detail": _NASTY, "topic": "t", "value": _NASTY}
    assert describe_set_aside(letter) == f"r  t  {_ESCAPED}  {_ESCAPED}"


@pytest.mark.parametrize(
    ("results", "hints"),
    [
        ([None] * 5, 0),
        ([None] * 20, 1),
        ([Found({}, "first"), *[None] * 20], 0),
    ],
)
def test_a_long_wait_for_the_first_result_is_reported_once(
    results: list[Found | None], hints: int
) -> None:
    seconds = iter(range(100))
    reported: list[str] = []
    found = hint_at_silence(iter(results), reported.append, lambda: next(seconds))
    assert list(found) == results
    assert len(reported) == hints
