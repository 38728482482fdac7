"""Attributes of the events of alarms, plain and factored."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pytest

from correlation.buffers.attribute_json import attribute_bytes, encode_attributes
from correlation.buffers.columns import DictionaryColumn
from correlation.buffers.events import Events
from correlation.buffers.segment import Segment
from correlation.errors import InvalidRecordError
from correlation.kinds import condition_from_document
from correlation.operators import Encode, encode_json
from correlation.timing.alarms import AttributeNames, PairBatch, UnmatchedBatch
from correlation.timing.conditions import TimingCondition
from correlation.timing.factored.batch import FactoredBatch
from correlation.timing.factored.expanding import Expander, MissingTableError
from correlation.timing.factored.search import correlate_spans
from correlation.timing.intervals.pairs import Side
from tests.support.factored import expand

DOCUMENT = {"kind": "mutual_deadline", "a": "x", "b": "y", "window_us": 100, "threshold": "0.7"}
VALUES: list[dict[str, Any]] = [
    {"rule": 'A "1"', "severity": 2**63 - 1, "level": 1e22, "open": True},
    {"rule": "\u00e9\U0001f525", "severity": None, "level": 0.1, "open": False},
    {"rule": None, "severity": -3, "level": 5e-324, "open": None},
]
NAMES = tuple(VALUES[0])
ENCODERS = pytest.mark.parametrize("encode", [encode_json, orjson.dumps])


def segment(stream: str, values: list[dict[str, Any]]) -> Segment:
    rows = [(b"k", b"%s%d" % (stream.encode(), i), i, i, 0, i, i) for i in range(len(values))]
    columns = {
        f"attribute.{name}": DictionaryColumn.from_list(
            [None if it[name] is None else orjson.dumps(it[name]) for it in values]
        )
        for name in NAMES
    }
    events = replace(Events.from_rows(stream, rows), columns=columns)
    return Segment.from_events(events, np.zeros(len(values), np.bool_))[0]


def condition() -> TimingCondition:
    found = condition_from_document("near", 1, DOCUMENT)
    assert isinstance(found, TimingCondition)
    return found


def factored(a: Segment, b: Segment, names: AttributeNames, *, base_is_a: bool) -> FactoredBatch:
    base, target = (a, b) if base_is_a else (b, a)
    spans = correlate_spans(
        Side(base.earliest, base.latest),
        Side(target.earliest, target.latest),
        np.array([[0, len(base), 0, len(target)]]),
        condition().window,
    )
    return FactoredBatch(condition(), True, base, target, base_is_a, spans, names)  # noqa: FBT003 - keyed


@ENCODERS
def test_pairs_have_the_attributes_of_both_events(encode: Encode) -> None:
    a, b = segment("x", VALUES), segment("y", VALUES[::-1])
    rows_a, rows_b = np.array([0, 1, 2, 0]), np.array([0, 1, 2, 2])
    ways = np.zeros(4, np.uint8)
    names = AttributeNames(NAMES, NAMES)
    batch = PairBatch(condition(), True, a, b, rows_a, rows_b, ways, names)  # noqa: FBT003 - keyed
    alarms = [json.loads(record.value or b"") for record in batch.records(0, encode)]
    assert [it["a"]["attributes"] for it in alarms] == [VALUES[i] for i in rows_a]
    assert [it["b"]["attributes"] for it in alarms] == [VALUES[::-1][i] for i in rows_b]


@ENCODERS
def test_unmatched_events_have_their_attributes(encode: Encode) -> None:
    names = AttributeNames(a=("rule", "room"))
    batch = UnmatchedBatch(condition(), True, segment("x", VALUES), np.array([2, 0]), names)  # noqa: FBT003 - keyed
    alarms = [json.loads(record.value or b"") for record in batch.records(0, encode)]
    # No event has an attribute that the stream declares only now.
    expected = [{"rule": None, "room": None}, {"rule": VALUES[0]["rule"], "room": None}]
    assert [it["a"]["attributes"] for it in alarms] == expected


def test_a_stream_without_attributes_has_none_in_alarms() -> None:
    a, b = segment("x", VALUES), segment("y", VALUES)
    one = np.array([0])
    ways = np.zeros(1, np.uint8)
    batch = PairBatch(condition(), True, a, b, one, one, ways, AttributeNames(b=("rule",)))  # noqa: FBT003 - keyed
    (alarm,) = (json.loads(record.value or b"") for record in batch.records(0))
    assert "attributes" not in alarm["a"]
    assert alarm["b"]["attributes"] == {"rule": VALUES[0]["rule"]}


@pytest.mark.parametrize("base_is_a", [True, False])
@ENCODERS
def test_factored_records_expand_to_alarms_with_attributes(
    encode: Encode, *, base_is_a: bool
) -> None:
    names = AttributeNames(NAMES, ("severity", "rule"))
    batch = factored(segment("x", VALUES), segment("y", VALUES), names, base_is_a=base_is_a)
    alarms = list(expand((record.value or b"") for record in batch.records(0, encode)))
    assert len(alarms) == 9
    for alarm in alarms:
        a, b = (VALUES[int(alarm[role]["id"][1:])] for role in "ab")
        assert alarm["a"]["attributes"] == a
        assert alarm["b"]["attributes"] == {name: b[name] for name in ("severity", "rule")}


def test_tables_with_other_attributes_have_other_ids() -> None:
    other = [VALUES[0] | {"rule": "other"}, *VALUES[1:]]
    tables = [
        json.loads(
            next(
                factored(
                    segment("x", VALUES), segment("y", it), AttributeNames(b=NAMES), base_is_a=True
                ).records(0)
            ).value
            or b""
        )["table"]
        for it in (VALUES, other, VALUES)
    ]
    assert tables[0] == tables[2] != tables[1]


def test_tables_are_cut_by_the_size_of_the_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    limit = 5_000
    monkeypatch.setattr("correlation.timing.factored.layout.TARGETS_BYTES", limit)
    many = [VALUES[0] | {"rule": "\u00e9" * 400 + str(i)} for i in range(100)]
    a, b = segment("x", VALUES[:1]), segment("y", many)
    records = {
        names: [record.value or b"" for record in factored(a, b, names, base_is_a=True).records(0)]
        for names in (AttributeNames(), AttributeNames(b=NAMES))
    }
    assert [len(it) for it in records.values()] == [3, 21]
    assert max(len(value) for it in records.values() for value in it) < limit + 500
    alarms = list(expand(records[AttributeNames(b=NAMES)]))
    assert [it["b"]["attributes"] for it in alarms] == many


def test_a_table_with_damaged_attributes_is_refused() -> None:
    batch = factored(
        segment("x", VALUES), segment("y", VALUES), AttributeNames(b=NAMES), base_is_a=True
    )
    table, base, *_ = (json.loads(record.value or b"") for record in batch.records(0))
    for damaged, field in (([1], ""), ({"rule": ["A"]}, ".rule"), ({"rule": 3}, ".rule")):
        expander = Expander()
        with pytest.raises(InvalidRecordError, match=rf"^attributes{field}: must"):
            list(expander.take({**table, "attributes": damaged}))
        with pytest.raises(MissingTableError):
            list(expander.take(base))


def test_sizes_bound_the_json_of_the_values() -> None:
    columns = segment("x", VALUES).columns
    rows = np.arange(len(VALUES))
    names = (*NAMES, "room")
    sizes = attribute_bytes(columns, len(VALUES), names).tolist()
    labels = sum(len(json.dumps(name)) + len(":") for name in names)
    written = [len(it) - labels - len("{}") for it in encode_attributes(columns, rows, names)]
    # Each value has a comma; an object has one less.
    assert sizes == [size + 1 for size in written]
