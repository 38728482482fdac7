"""The reader finds in the records of every kind of result what the job wrote."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coincide.alarms import (
    AlarmReader,
    EventQueryAlarm,
    InvalidRecordError,
    MissingTableError,
    Result,
    TimingAlarm,
    UnknownRecordVersionError,
)
from correlation.kinds import KINDS
from correlation.operators import encode_json
from correlation.timing.alarm_format import TIMING_KINDS
from correlation.timing.conditions import TimingCondition
from correlation.topk.listed import ListedPair, Move, SetRef
from tests.support import result_values as results
from tests.support.messages import naming
from tests.support.result_values import DETECTED_AT, Row, Written

if TYPE_CHECKING:
    from correlation.operators import Encode

ROOT = Path(__file__).parents[4]
TIMES = st.integers(0, 400)
IDS = st.binary(min_size=1, max_size=4)
KEYS = st.none() | st.binary(max_size=4)
INT64 = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
VALUES = {"n": st.none() | INT64, "text": st.none() | st.text(max_size=5), "x": FLOATS}
ENCODERS = st.sampled_from([encode_json, orjson.dumps])


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    """Draw events with distinct ids and the same attributes."""
    names = draw(st.sampled_from([("n",), ("n", "text", "x")]))
    found = []
    for ident in draw(st.lists(IDS, min_size=1, max_size=5, unique=True)):
        earliest, latest = sorted((draw(TIMES), draw(TIMES)))
        values = {name: draw(VALUES[name]) for name in names}
        found.append(Row(ident, earliest, latest, draw(st.booleans()), values))
    return found


REFS = st.builds(SetRef, INT64, st.integers(0, 1), st.binary(max_size=4), st.integers(4, 9))
LISTED = st.builds(ListedPair, st.just(1), st.integers(0, 4), REFS, REFS)
CONDITIONS = st.builds(
    results.timing_condition, st.sampled_from(TIMING_KINDS), reports=st.booleans()
)


def read(
    written: Written, reader: AlarmReader | None = None, encode: Encode = orjson.dumps
) -> list[Result]:
    """Return what a reader finds in the records of a result."""
    reader = reader or AlarmReader()
    headers = written.result.heading(DETECTED_AT).headers
    common = [(name, value.encode()) for name, value in headers.items()]
    return [
        found
        for record in written.result.records(DETECTED_AT, encode)
        for found in reader.read(record.key, record.value, common)
    ]


@given(CONDITIONS, KEYS, rows(), rows(), ENCODERS)
def test_pairs_are_what_was_written(
    condition: TimingCondition, key: bytes | None, a: list[Row], b: list[Row], encode: Encode
) -> None:
    written = results.pairs(condition, key, a, b)
    assert read(written, encode=encode) == written.values


@given(CONDITIONS, KEYS, rows(), ENCODERS)
def test_events_without_a_b_are_what_was_written(
    condition: TimingCondition, key: bytes | None, a: list[Row], encode: Encode
) -> None:
    written = results.unmatched(condition, key, a)
    assert read(written, encode=encode) == written.values


@given(CONDITIONS, st.none() | st.just(b"k"), rows(), rows(), st.booleans(), ENCODERS)
def test_factored_records_are_the_pairs_that_satisfy_the_condition(
    condition: TimingCondition,
    key: bytes | None,
    a: list[Row],
    b: list[Row],
    base_is_a: bool,  # noqa: FBT001 - drawn
    encode: Encode,
) -> None:
    # Ids of factored pairs are computed from the ids as alarms contain them.
    a, b = ([it._replace(id=it.id.hex().encode()) for it in side] for side in (a, b))
    written = results.factored(condition, key, a, b, base_is_a=base_is_a)
    reader = AlarmReader()
    found = [
        replace(it, decided_by="")
        for it in read(written, reader, encode)
        if isinstance(it, TimingAlarm)
    ]
    assert sorted(found, key=repr) == sorted(written.values, key=repr)
    assert not reader.holds_tables


@given(KEYS, rows(), rows(), st.none() | st.just([0.1, 0.25, 1.0, 1 / 3, 0.7]), ENCODERS)
def test_results_of_event_queries_are_what_was_written(
    key: bytes | None, s: list[Row], t: list[Row], chances: list[float] | None, encode: Encode
) -> None:
    written = results.query_results(key, s, t, chances)
    assert read(written, encode=encode) == written.values


@given(st.booleans(), KEYS, st.lists(LISTED, max_size=3), ENCODERS)
def test_changes_and_lists_are_what_was_written(
    distance: bool,  # noqa: FBT001 - drawn
    key: bytes | None,
    pairs: list[ListedPair],
    encode: Encode,
) -> None:
    condition = results.topk_condition(distance=distance)
    moves = [Move("moved", rank, it, "expiry", 5 * rank) for rank, it in enumerate(pairs, start=1)]
    for written in (
        results.changes(condition, key, moves),
        results.lists(condition, key, pairs),
    ):
        assert read(written, encode=encode) == written.values


def test_one_reader_reads_all_kinds_from_one_topic() -> None:
    reader = AlarmReader()
    for written in results.one_of_each_kind():
        found = read(written, reader)
        assert len(found) == len(written.values) > 0
    assert reader.holds_tables is False


def test_repeated_alarms_are_left_out_until_enough_others_were_read() -> None:
    condition = results.timing_condition()
    alarms = [results.unmatched(condition, None, [results.row(b"%d" % i, 1, 2)]) for i in range(3)]
    reader = AlarmReader(remembered_alarms=2)
    counts = [len(read(alarms[i], reader)) for i in (0, 0, 1, 0, 2, 0, 1)]
    # The second alarm is the only one that two others followed before it was repeated.
    assert counts == [1, 0, 1, 0, 1, 0, 1]
    forgetful = AlarmReader(remembered_alarms=0)
    assert [len(read(alarms[0], forgetful)) for _ in range(2)] == [1, 1]


def _alarm_of(kind: str, key: bytes, a_time: int, b_time: int) -> Written:
    """Return an alarm of a kind; only key and times of its events differ."""
    a, b = results.row(b"mic-1", a_time, a_time), results.row(b"geo-7", b_time, b_time)
    condition = results.timing_condition()
    match kind:
        case "pair":
            return results.pairs(condition, key, [a], [b])
        case "factored pair":
            return results.factored(condition, key, [a], [b], base_is_a=True)
        case "A without a B":
            return results.unmatched(condition, key, [a])
    return results.query_results(key, [a._replace(attributes={"n": 1})], [b], None)


ALARM_TYPES = (EventQueryAlarm, TimingAlarm)
ALARM_KINDS = ("pair", "factored pair", "A without a B", "event query")


@pytest.mark.parametrize("kind", ALARM_KINDS)
def test_alarms_of_events_with_repeated_ids_are_read(kind: str) -> None:
    reader = AlarmReader()
    events = [(b"north", 10, 20), (b"north", 11, 20), (b"south", 10, 20)]
    if kind != "A without a B":
        events.append((b"north", 10, 21))
    alarms = [it for each in events for it in read(_alarm_of(kind, *each), reader)]
    assert len(alarms) == len(events)
    assert len({it.alarm_id for it in alarms if isinstance(it, ALARM_TYPES)}) == 1
    # The same events, sent again.
    assert [read(_alarm_of(kind, *each), reader) for each in events] == [[]] * len(events)


@pytest.mark.parametrize("kind", ALARM_KINDS)
def test_alarm_is_read_again_after_an_error_in_the_loop(kind: str) -> None:
    written = _alarm_of(kind, b"north", 10, 20)
    headers = [("ce_type", written.result.heading(0).headers["ce_type"])]
    reader = AlarmReader()

    def process() -> None:
        for record in written.result.records(DETECTED_AT):
            for alarm in reader.read(record.key, record.value, headers):
                raise ValueError(alarm)

    for _ in range(2):
        with pytest.raises(ValueError, match="mic-1"):
            process()
        # As before a position is set.
        reader.drop_tables()
    assert len(read(written, reader)) == 1
    assert read(written, reader) == []


def test_changes_and_lists_are_never_left_out() -> None:
    reader = AlarmReader()
    for written in results.one_of_each_kind()[-3:]:
        assert read(written, reader) == read(written, reader) == written.values


def test_number_of_remembered_alarms_is_not_negative() -> None:
    with pytest.raises(ValueError, match=r"^remembered_alarms: must be at least 0; got -1$"):
        AlarmReader(remembered_alarms=-1)


def test_table_is_held_until_its_base_records_or_a_new_position() -> None:
    written = results.one_of_each_kind()[2]
    headers = [("ce_type", written.result.heading(0).headers["ce_type"])]
    table, base = written.result.records(DETECTED_AT)
    reader = AlarmReader()
    assert list(reader.read(table.key, table.value, headers)) == []
    assert reader.holds_tables is True
    reader.drop_tables()
    assert reader.holds_tables is False
    with pytest.raises(MissingTableError, match=r"^table [0-9a-f]{32} is missing"):
        list(reader.read(base.key, base.value, headers))


ALARM = json.loads(next(results.one_of_each_kind()[0].result.records(DETECTED_AT)).value or b"")
TYPE = [("ce_type", b"coincide.alarm.v1")]


def test_unknown_fields_are_ignored() -> None:
    grown = {**ALARM, "color": "red", "a": {**ALARM["a"], "color": "red"}}
    expected = list(AlarmReader().read(None, orjson.dumps(ALARM), TYPE))
    assert list(AlarmReader().read(None, orjson.dumps(grown), TYPE)) == expected
    assert len(expected) == 1


def test_list_without_items_names_the_limit() -> None:
    record = {"v": 1, "kind": "topk_similarity", "error": "too_large", "omitted_bytes": 2_000_000}
    with pytest.raises(InvalidRecordError, match=r"^items: were left out: 2000000 bytes exceed"):
        list(AlarmReader().read(b"c", orjson.dumps(record), [("ce_type", b"coincide.list.v1")]))


def test_values_are_frozen() -> None:
    (alarm,) = AlarmReader().read(None, orjson.dumps(ALARM), TYPE)
    with pytest.raises(FrozenInstanceError):
        setattr(alarm, "condition", "other")  # noqa: B010 - the types refuse an assignment


@pytest.mark.parametrize(
    ("changes", "field", "names"),
    [
        ({"alarm_id": 3}, "alarm_id", ["string", "got 3", "skip the record"]),
        ({"a": None}, "a", ["object", "got None"]),
        ({"b": {**ALARM["b"], "earliest": "now"}}, "b.earliest", ["integer", "got 'now'"]),
        (
            {"a": {**ALARM["a"], "attributes": {"n": []}}},
            "a.attributes.n",
            ["string", "number", "got []"],
        ),
        ({"late": 0}, "late", ["true or false", "got 0"]),
        ({"threshold": True}, "threshold", ["number", "got True"]),
    ],
)
def test_error_names_the_field(changes: dict[str, Any], field: str, names: list[str]) -> None:
    with pytest.raises(InvalidRecordError, match=naming(*names)) as caught:
        list(AlarmReader().read(None, orjson.dumps({**ALARM, **changes}), TYPE))
    assert caught.value.field == field


@pytest.mark.parametrize("name", sorted(set(ALARM) - {"v", "probability"}))
def test_missing_field_is_named(name: str) -> None:
    content = {field: value for field, value in ALARM.items() if field != name}
    with pytest.raises(InvalidRecordError, match="missing") as caught:
        list(AlarmReader().read(None, orjson.dumps(content), TYPE))
    assert caught.value.field == name


@pytest.mark.parametrize(
    ("value", "record_type", "field", "names"),
    [
        (b"{", b"coincide.alarm.v1", "value", ["JSON object", "Expecting"]),
        (b"[1]", b"coincide.alarm.v1", "value", ["JSON object", "got list"]),
        (b"[" * 100_000, b"coincide.alarm.v1", "value", ["JSON object", "maximum"]),
        (None, b"coincide.alarm.v1", "value", ["JSON object", "Expecting"]),
        (None, b"coincide.list.v1", "key", ["missing", "pass the key"]),
        (b"{}", None, "ce_type", ["missing", "pass the headers"]),
        (
            b'{"record": "x"}',
            b"coincide.alarm.factored.v1",
            "record",
            ["targets or base", "got 'x'"],
        ),
    ],
)
def test_records_of_other_programs_are_refused(
    value: bytes | None, record_type: bytes | None, field: str, names: list[str]
) -> None:
    with pytest.raises(InvalidRecordError, match=naming(*names)) as caught:
        list(AlarmReader().read(None, value, [("ce_type", record_type)]))
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("changes", "record_type", "names"),
    [
        ({"v": 2}, b"coincide.alarm.v1", ["v", "version 2", "reads version 1"]),
        ({"v": None}, b"coincide.alarm.v1", ["v", "version None", "reads version 1"]),
        ({"kind": "toy"}, b"coincide.alarm.v1", ["kind", "'toy'", "mutual_deadline"]),
        ({}, b"coincide.alarm.v9", ["ce_type", "'coincide.alarm.v9'", "coincide.alarm.v1"]),
        ({"v": 7, "record": "base"}, b"coincide.alarm.factored.v1", ["v", "version 7"]),
    ],
)
def test_unknown_formats_are_refused(
    changes: dict[str, Any], record_type: bytes, names: list[str]
) -> None:
    value = orjson.dumps({**ALARM, **changes})
    with pytest.raises(UnknownRecordVersionError, match=naming(*names)):
        list(AlarmReader().read(None, value, [("ce_type", record_type)]))


def test_every_kind_of_condition_has_a_decoder() -> None:
    assert set(KINDS) == {*TIMING_KINDS, "event_query", "topk_similarity"}


def test_reader_needs_only_the_standard_library() -> None:
    code = "import sys, coincide.alarms; print(*sys.modules)"
    # This interpreter, without site-packages, and our own code.
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded - sys.stdlib_module_names - {"__main__"} == {"coincide", "correlation"}
