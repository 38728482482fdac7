"""Attributes of records: columns, values that do not fit, and the filter of a stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import orjson
import pytest

from correlation.buffers.columns import DictionaryColumn, Int64s
from correlation.buffers.events import Events
from correlation.errors import RejectedEventError
from correlation.parsing.stream_reader import StreamReader
from correlation.reasons import Reason
from correlation.resources.attributes import column_name
from correlation.resources.records import stream_from_document

PARTITION, FIRST_OFFSET = 7, 100
TIMED: dict[str, Any] = {"id": "e", "key": "k", "time": 5}


def intake(
    declared: Mapping[str, Any], records: Sequence[Any], timestamps: Sequence[int] = ()
) -> tuple[Events | None, list[tuple[int, str]], int]:
    """Return the events of the records, the rejected rows, and the number of filtered records."""
    document: dict[str, Any] = {
        "topic": "t",
        "max_uncertainty_us": 0,
        "max_delay_us": 0,
        "clock": "replay",
    }
    taken = StreamReader(stream_from_document("s", {**document, **declared})).begin(PARTITION)
    times = np.array(timestamps or [9] * len(records), np.int64)
    rejected = []
    for row, record in enumerate(records):
        text = record if isinstance(record, bytes) else orjson.dumps(record)
        try:
            taken.add(row, orjson.loads(text), text, b"k", int(times[row]))
        except RejectedEventError as error:
            rejected.append((row, f"{error.reason}: {error.detail}"))

    def positions(rows: Sequence[int]) -> tuple[Int64s, Int64s]:
        places = np.array(rows, np.int64)
        return places + FIRST_OFFSET, times[places]

    rejected += [(row, f"{it.reason}: {it.detail}") for row, it in taken.settle(positions)]
    assert len(taken.rows) == len(taken.latest)
    events = taken.to_events(*positions(taken.rows)) if taken.rows else None
    return events, sorted(rejected), taken.filtered


def values(events: Events | None, name: str) -> list[bytes | None]:
    assert events is not None
    column = events.columns[column_name(name)]
    assert isinstance(column, DictionaryColumn)
    return column.to_list()


@pytest.mark.parametrize(
    ("kind", "found", "stored"),
    [
        ("string", '"room 1"', b'"room 1"'),
        ("string", '"S\\u00fcd"', '"Süd"'.encode()),
        ("string", '""', b'""'),
        ("string", '"' + 1_000 * "x" + '"', b'"' + 1_000 * b"x" + b'"'),
        ("integer", "3", b"3"),
        ("integer", "-9223372036854775808", b"-9223372036854775808"),
        ("integer", "9223372036854775807", b"9223372036854775807"),
        ("integer", "3.0", b"3"),
        ("integer", "2e3", b"2000"),
        # float64 would round it to 9007199254740992.
        ("integer", "9007199254740993.0", b"9007199254740993"),
        ("number", "3", b"3"),
        ("number", "3.50", b"3.5"),
        ("number", "-0.0", b"0"),
        ("number", "1e-7", b"1e-07"),
        ("number", "9007199254740993", b"9007199254740992"),
        ("boolean", "true", b"true"),
        ("boolean", "false", b"false"),
        *((kind, "null", None) for kind in ("string", "integer", "number", "boolean")),
    ],
)
def test_a_value_is_stored_as_canonical_json(kind: str, found: str, stored: bytes | None) -> None:
    record = f'{{"id": "e", "key": "k", "time": 5, "at": {{"x": {found}}}}}'.encode()
    declared = {"attributes": {"x": {"path": "at.x", "type": kind}}}
    events, rejected, _ = intake(declared, [record])
    assert (values(events, "x"), rejected) == ([stored], [])


@pytest.mark.parametrize(
    ("kind", "found", "shown"),
    [
        ("string", "3", "a number"),
        ("string", "true", "a boolean"),
        ("string", "{}", "an object"),
        ("string", '"' + 1_001 * "x" + '"', "a string of 1001 characters"),
        ("integer", '"3"', "a string"),
        ("integer", "true", "a boolean"),
        ("integer", "[3]", "a list"),
        ("integer", "3.5", "3.5"),
        ("integer", "9223372036854775808", "9223372036854775808"),
        ("integer", "9223372036854775808.0", "9223372036854775808.0"),
        ("integer", "1e300", "1E+300"),
        ("integer", "-9223372036854775809", "-9223372036854775809"),
        ("number", '"3"', "a string"),
        ("number", "false", "a boolean"),
        ("boolean", "1", "a number"),
        ("boolean", '"true"', "a string"),
    ],
)
def test_a_value_of_another_type_is_rejected(kind: str, found: str, shown: str) -> None:
    record = f'{{"id": "e", "key": "k", "time": 5, "x": {found}}}'.encode()
    good = b'{"id": "f", "key": "k", "time": 6}'
    declared = {"attributes": {"x": {"path": "x", "type": kind}}}
    events, rejected, _ = intake(declared, [record, good])
    ((row, detail),) = rejected
    assert (row, detail.split(":")[0]) == (0, Reason.BAD_ATTRIBUTE)
    assert detail.endswith(f"; got {shown}")
    assert values(events, "x") == [None]


def test_a_missing_field_is_a_missing_value() -> None:
    records = [TIMED, TIMED | {"at": {"x": "a"}}, TIMED | {"at": "b"}, TIMED | {"at": {"x": "a"}}]
    events, _, _ = intake({"attributes": {"x": "at.x", "y": ["at.x"]}}, records)
    assert values(events, "x") == [None, b'"a"', None, b'"a"']
    assert values(events, "y") == [None] * 4


def test_the_place_of_a_record_is_an_attribute() -> None:
    places = {name: f"${name}" for name in ("topic", "partition", "offset", "timestamp")}
    events, _, _ = intake({"attributes": places}, [TIMED, {}, TIMED, TIMED], [8, 8, 0, 9])
    assert {name: values(events, name) for name in places} == {
        "topic": [b'"t"'] * 3,
        "partition": [b"7"] * 3,
        "offset": [b"100", b"102", b"103"],
        # Kafka does not know the timestamp of the second record.
        "timestamp": [b"8", None, b"9"],
    }


def test_a_stream_without_attributes_has_no_columns() -> None:
    events, _, filtered = intake({}, [TIMED | {"x": 3}])
    assert (events is not None and events.columns, filtered) == ({}, 0)


WHERE = {
    "attributes": {"rule": "rule", "level": {"path": "level", "type": "integer"}, "place": "place"},
    "where": {"rule": ["a", "b"], "level": {"min": 3}},
}


@pytest.mark.parametrize(
    ("record", "outcome"),
    [
        ({"rule": "a", "level": 3}, "event"),
        ({"rule": "c", "level": 3}, "filtered"),
        ({"rule": "a", "level": 2}, "filtered"),
        ({"level": 3}, "filtered"),
        ({}, "filtered"),
        # Records of another kind do not have the fields of an event.
        ({"rule": "c", "time": None}, "filtered"),
        ({"rule": "a", "level": 3, "time": None}, "wrong_type"),
        ({"rule": "a", "level": 3, "id": []}, "wrong_type"),
        # The other attributes decide, if they can.
        ({"rule": "a", "level": "high"}, "bad_attribute"),
        ({"rule": "c", "level": "high"}, "filtered"),
        ({"rule": 1, "level": 2}, "filtered"),
        ({"rule": 1, "level": "high"}, "bad_attribute"),
        ({"rule": "a", "level": 3, "place": 1}, "bad_attribute"),
        ({"rule": "c", "level": 3, "place": 1}, "filtered"),
        ([], "not_an_object"),
    ],
)
def test_a_record_that_does_not_match_is_no_event(record: Any, outcome: str) -> None:  # noqa: ANN401 - any JSON
    merged = TIMED | record if isinstance(record, dict) else record
    # Beside a matching and another record, so that it is not the only one of its intake.
    around = [TIMED | {"rule": "b", "level": 9, "id": "first"}, TIMED | {"rule": "z"}]
    events, rejected, filtered = intake(WHERE, [around[0], merged, around[1]])
    assert events is not None
    assert filtered == 1 + (outcome == "filtered")
    assert events.id.to_list() == [b"first", *([b"e"] if outcome == "event" else [])]
    wanted = [] if outcome in {"event", "filtered"} else [(1, outcome)]
    assert [(row, detail.split(":")[0]) for row, detail in rejected] == wanted


def test_ids_from_positions_and_columns_stay_with_their_events() -> None:
    records = [
        {"key": "k", "time": place, "rule": rule, "level": place}
        for place, rule in enumerate(["z", "a", "a", "z", "b", "b", "a"], 1)
    ]
    events, rejected, filtered = intake(WHERE, records)
    assert events is not None
    assert (rejected, filtered) == ([], 3)
    assert events.id.to_list() == [b"t-7-102", b"t-7-104", b"t-7-105", b"t-7-106"]
    assert events.latest.tolist() == [3, 5, 6, 7]
    assert values(events, "rule") == [b'"a"', b'"b"', b'"b"', b'"a"']
    assert values(events, "level") == [b"3", b"5", b"6", b"7"]


def test_a_filter_may_use_the_place_of_a_record() -> None:
    declared = {"attributes": {"at": "$offset"}, "where": {"at": {"min": 101, "max": 102}}}
    events, rejected, filtered = intake(declared, [TIMED, TIMED, {"id": "bad"}, TIMED, {}])
    assert events is not None
    assert (values(events, "at"), filtered) == ([b"101"], 3)
    assert [row for row, _ in rejected] == [2]
