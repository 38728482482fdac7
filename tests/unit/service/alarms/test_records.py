"""Selection of results, and their form in answers."""

from __future__ import annotations

import json

import pytest

import correlation.kinds
from service.alarms.records import Selection
from tests.support.recent_results import record
from tests.toy import toy_kind

TIMED = b'{"detected_at": 5000, "key": "inner"}'
UNTIMED = b'{"record": "targets"}'


@pytest.mark.parametrize(
    ("selection", "value", "is_selected"),
    [
        (Selection(), TIMED, True),
        (Selection(condition="c"), TIMED, True),
        (Selection(condition="d"), TIMED, False),
        (Selection(key="k"), TIMED, True),
        (Selection(key="inner"), TIMED, True),
        (Selection(key="x"), TIMED, False),
        (Selection(key="x"), b'{"key": ["x"]}', False),
        (Selection(since_us=5000), TIMED, True),
        (Selection(since_us=5001), TIMED, False),
        (Selection(until_us=5000), TIMED, True),
        (Selection(until_us=4999), TIMED, False),
        # Kafka's timestamp, 7 ms, is the time of records that have no other.
        (Selection(since_us=7000, until_us=7000), UNTIMED, True),
        (Selection(since_us=7001), UNTIMED, False),
        (Selection(since_us=7001), b"not JSON", False),
        (Selection(since_us=7000), b'{"detected_at": "noon"}', True),
        (Selection(), b"not JSON", True),
    ],
)
def test_selection(selection: Selection, value: bytes, *, is_selected: bool) -> None:
    assert (selection.show(record(7, value=value)) is not None) == is_selected


def test_record_is_shown_as_written() -> None:
    value = b'{"n":\r\n1.10, "big": 123456789012345678901, "s": "\\n\xe2\x80\xa8"}'
    line = Selection().show(record(7, 3, value=value))
    assert line is not None
    assert b"\n" not in line
    assert b"\r" not in line
    assert b"1.10" in line
    assert json.loads(line) == {
        "topic": "t",
        "partition": 3,
        "offset": 7,
        "timestamp": 7000,
        "type": "coincide.alarm.v1",
        "error": None,
        "description": None,
        "record": {"n": 1.1, "big": 123456789012345678901, "s": "\n\u2028"},
    }


@pytest.mark.parametrize("value", [b"", b"[]", b"{", b"\xff", b"NaN", b"[" * 100_000])
def test_unreadable_record_is_shown_as_such(value: bytes) -> None:
    line = Selection().show(record(7, value=value))
    assert line is not None
    shown = json.loads(line)
    assert (shown["error"], shown["record"]) == ("unreadable", None)


EVENT = {"stream": "s", "id": "e", "earliest": 0, "latest": 0}
ALARM = {"condition": "c", "detected_at": 0, "threshold": 0.5, "decided_by": "probe", "a": EVENT}
LONG = {"kind": "long_event", "condition": "c", "id": "long", "length_us": 3, "began": 1}


@pytest.mark.parametrize(
    ("value", "description"),
    [
        (LONG, "id=long  length_us=3"),
        ({**LONG, "id": "x" * 2_000}, f"id={'x' * 996}…"),
        ({**ALARM, "b": None}, "s:e  without"),
        ({**ALARM, "b": EVENT, "probability": 0.75}, "s:e  ↔  s:e  p=0.750"),
        ({"record": "targets", "stream": "s", "size": 3}, "table of 3 targets of s"),
        ({"record": "base", "b": EVENT, "pairs": 2}, "s:e  in 2 pairs"),
        # Not an alarm, an unknown kind, and parts of factored output that are not valid.
        (ALARM, None),
        ({"kind": "unknown", "condition": "c"}, None),
        ({"record": "targets"}, None),
        ({"record": "base", "b": {**EVENT, "id": 5}, "pairs": 2}, None),
        ({"kind": "event_query", "events": {"a": 5}}, None),
    ],
)
def test_result_is_described_by_its_kind(
    monkeypatch: pytest.MonkeyPatch, value: dict[str, object], description: str | None
) -> None:
    (kind,) = toy_kind.KINDS
    monkeypatch.setattr(correlation.kinds, "KINDS", {**correlation.kinds.KINDS, kind.name: kind})
    line = Selection().show(record(7, value=json.dumps(value).encode()))
    assert line is not None
    assert json.loads(line)["description"] == description
