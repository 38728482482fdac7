"""Alarms that are written as columns or as lists equal alarms that are written one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.buffers.columns import DictionaryColumn
from correlation.buffers.events import Events
from correlation.buffers.segment import Segment
from correlation.kinds import condition_from_document
from correlation.operators import Encode, Heading, OutputRecord, encode_json
from correlation.record_columns import columns_of
from correlation.result_format import as_text
from correlation.timing import alarm_writing, alarms
from correlation.timing.alarm_format import alarm_id
from correlation.timing.alarms import AttributeNames, PairBatch, UnmatchedBatch
from correlation.timing.conditions import TimingCondition
from correlation.timing.histograms.rows import probability_rows
from spark_jobs.worker.envelope import pack_result, unpack_records

# Plain, escaped, non-ASCII and invalid UTF-8.
NAMES = st.sampled_from([b"a1", b'"', b"\\", b"\x00\x1f", b"\x7f", "é🔥".encode(), b"\xff", b""])
NAMES |= st.binary(max_size=9)
TIMES = st.integers(-(10**17), 10**17)
VALUES = st.none() | st.text(st.characters(codec="utf-8"), max_size=5) | st.booleans()
DETECTED = st.integers(0, 10**16)


class Row(NamedTuple):
    """An event as it is drawn."""

    key: bytes
    id: bytes
    latest: int
    length: int
    late: bool
    values: tuple[object, ...]


ROWS = st.lists(
    st.builds(
        Row,
        st.sampled_from([b"k", b"\xff\n", "ü".encode()]),
        NAMES,
        TIMES,
        st.integers(0, 100),
        st.booleans(),
        st.tuples(VALUES, VALUES),
    ),
    min_size=1,
    max_size=5,
)
ATTRIBUTES = ("rule", 'é"')


class Case(NamedTuple):
    """Pairs of events, and when they were detected: all together, or each."""

    batch: PairBatch
    detected_at_us: int | list[int]

    def moments(self) -> int | np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Return the argument of `records`."""
        it = self.detected_at_us
        return it if isinstance(it, int) else np.array(it, np.int64)

    def moment(self, place: int) -> int:
        """Return when a pair was detected."""
        it = self.detected_at_us
        return it if isinstance(it, int) else it[place]


def segment(stream: str, rows: list[Row]) -> Segment:
    events = Events.from_rows(
        stream,
        [(it.key, it.id, it.latest - it.length, it.latest, 0, i, 0) for i, it in enumerate(rows)],
    )
    columns = {
        f"attribute.{name}": DictionaryColumn.from_list(
            [None if it.values[i] is None else orjson.dumps(it.values[i]) for it in rows]
        )
        for i, name in enumerate(ATTRIBUTES)
    }
    late = np.array([it.late for it in rows])
    return Segment.from_events(replace(events, columns=columns), late)[0]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    document = {
        "kind": "mutual_deadline",
        "a": "x.y",
        "b": "y",
        "window_us": 20,
        "threshold": draw(st.sampled_from(["0.7", "1"])),
        "report_probability": draw(st.booleans()),
    }
    condition = condition_from_document(draw(st.sampled_from(["near", "n" * 63])), 3, document)
    assert isinstance(condition, TimingCondition)
    a, b = segment("x", draw(ROWS)), segment("y", draw(ROWS))
    pair = st.tuples(
        st.integers(0, len(a) - 1), st.integers(0, len(b) - 1), st.sampled_from([0, 1, 2])
    )
    pairs = np.array(draw(st.lists(pair, min_size=1, max_size=9)))
    names = st.sampled_from([(), ATTRIBUTES[:1], ATTRIBUTES, ("unknown",)])
    batch = PairBatch(
        condition,
        draw(st.booleans()),
        a,
        b,
        pairs[:, 0],
        pairs[:, 1],
        pairs[:, 2].astype(np.uint8),
        AttributeNames(draw(names), draw(names)),
    )
    each = st.lists(DETECTED, min_size=len(pairs), max_size=len(pairs))
    return Case(batch, draw(DETECTED | each))


def written(case: Case, encode: Encode, *, has_b: bool = True) -> Iterator[OutputRecord]:
    """Write alarms one by one, as docs/alarms.md describes them."""
    batch, condition = case.batch, case.batch.condition
    ways = ("satisfaction_region", "probe", "lookup")
    chances = probability_rows(batch.a, batch.a_rows, batch.b, batch.b_rows, condition.window)
    for place, (row_a, row_b) in enumerate(zip(batch.a_rows, batch.b_rows, strict=True)):
        ident = alarm_id(condition.name, 3, batch.a.id[row_a], batch.b.id[row_b] if has_b else None)
        late = bool(batch.a.late[row_a]) or (has_b and bool(batch.b.late[row_b]))
        fields = {
            "v": 1,
            "condition": condition.name,
            "version": 3,
            "kind": "mutual_deadline",
            "threshold": float(condition.threshold),
            "detected_at": case.moment(place),
            "alarm_id": ident,
            "decided_by": ways[batch.decided_by[place]] if has_b else "watermark",
            "late": late,
        }
        if has_b and condition.report_probability:
            fields["probability"] = float(chances[place])
        a = event(condition.a, batch.a, row_a, batch.attributes.a, encode, keyed=batch.keyed)
        b = event(condition.b, batch.b, row_b, batch.attributes.b, encode, keyed=batch.keyed)
        value = b'%b,"a":%b,"b":%b}' % (encode(fields)[:-1], a, b if has_b else b"null")
        key = key_of(batch.a, row_a) if batch.keyed else condition.name.encode()
        yield OutputRecord(key, value, ident)


def event(
    stream: str, part: Segment, row: int, names: tuple[str, ...], encode: Encode, *, keyed: bool
) -> bytes:
    found = encode(
        {
            "id": as_text(part.id[row]),
            "stream": stream,
            "key": as_text(key_of(part, row)) if keyed else None,
            "earliest": int(part.earliest[row]),
            "latest": int(part.latest[row]),
        }
    )
    if not names:
        return found
    values = []
    for name in names:
        column = part.columns.get(f"attribute.{name}")
        value = column.to_list()[row] if isinstance(column, DictionaryColumn) else None
        values.append(encode_json(name) + b":" + (value or b"null"))
    return b'%b,"attributes":{%b}}' % (found[:-1], b",".join(values))


def key_of(part: Segment, row: int) -> bytes:
    return part.key_of_rows(np.array([row]))[0]


@pytest.mark.parametrize("encode", [encode_json, orjson.dumps])
@given(cases(), st.sampled_from([2, 100]), st.sampled_from([0, 3, 100]))
def test_pairs_are_written_as_one_by_one(
    encode: Encode, case: Case, part_alarms: int, few_alarms: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alarms, "_PART_ALARMS", part_alarms)
        patch.setattr(alarm_writing, "FEW_ALARMS", few_alarms)
        assert list(case.batch.records(case.moments(), encode)) == list(written(case, encode))


@pytest.mark.parametrize("encode", [encode_json, orjson.dumps])
@given(cases(), st.sampled_from([2, 100]), st.sampled_from([0, 3, 100]))
def test_events_without_a_b_are_written_as_one_by_one(
    encode: Encode, case: Case, part_alarms: int, few_alarms: int
) -> None:
    it = case.batch
    batch = UnmatchedBatch(it.condition, it.keyed, it.a, it.a_rows, it.attributes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alarms, "_PART_ALARMS", part_alarms)
        patch.setattr(alarm_writing, "FEW_ALARMS", few_alarms)
        found = list(batch.records(case.moments(), encode))
    assert found == list(written(case, encode, has_b=False))


@given(cases(), st.sampled_from([0, 100]))
def test_kafka_records_are_the_same_after_packing(case: Case, few_alarms: int) -> None:
    heading = Heading("alarms", None, {"ce_type": "type", "ce_source": "é"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alarm_writing, "FEW_ALARMS", few_alarms)
        columns = columns_of(case.batch, case.moments(), orjson.dumps)
        packed = list(pack_result("topic", heading, columns))
    found = [record for blob in packed for record in unpack_records(blob)]
    common = [("ce_type", b"type"), ("ce_source", "é".encode())]
    assert [(it.topic, it.key, it.value, it.headers) for it in found] == [
        ("topic", it.key, it.value, [*common, ("ce_id", it.ident.encode())])
        for it in written(case, orjson.dumps)
    ]
