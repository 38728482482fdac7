"""Columns keep their values, in memory and over bytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.buffers.columns import (
    BytesColumn,
    Column,
    DictionaryColumn,
)
from correlation.buffers.events import Events
from correlation.buffers.packing import pack_columns, unpack_columns
from correlation.buffers.partitioner import Partitioner
from correlation.buffers.segment import Segment
from correlation.errors import UnknownRecordVersionError
from correlation.resources.partitioning import Partitioning

TEXTS = st.lists(st.binary(max_size=9), max_size=20)


@given(values=TEXTS, data=st.data())
def test_bytes_columns_take_and_concat_like_lists(values: list[bytes], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=9)) if values else []
    column = BytesColumn.from_list(values)
    taken = column.take(np.array(rows, np.int64))
    assert taken.to_list() == [values[row] for row in rows]
    assert BytesColumn.concat([column, taken, column]).to_list() == [
        *values,
        *taken.to_list(),
        *values,
    ]
    assert [column[i] for i in range(len(column))] == values


@given(values=TEXTS)
def test_packed_columns_come_back(values: list[bytes]) -> None:
    numbers = np.arange(len(values), dtype=np.int32)
    flags = numbers % 2 == 0
    # A column that begins in the middle of its data is packed without what it does not hold.
    column = BytesColumn.from_list([b"before", *values])
    part = BytesColumn(column.data, column.offsets[1:])
    blob = pack_columns({"n": numbers, "t": part, "f": flags}, {"stream": "s"})
    columns, meta = unpack_columns(blob)
    assert meta == {"stream": "s"}
    text = columns["t"]
    assert isinstance(text, BytesColumn)
    assert text.to_list() == values
    np.testing.assert_array_equal(columns["n"], numbers)
    np.testing.assert_array_equal(columns["f"], flags)
    assert b"before" not in blob


@given(values=st.lists(st.none() | st.sampled_from([b"", b"a", b"bc"]), max_size=9), data=st.data())
def test_dictionary_columns_take_and_concat_like_lists(
    values: list[bytes | None], data: st.DataObject
) -> None:
    rows = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=9)) if values else []
    column = DictionaryColumn.from_list(values)
    taken = column.take(np.array(rows, np.int64))
    assert column.to_list() == values
    assert taken.to_list() == [values[row] for row in rows]
    # Each value occurs once, and no other value.
    for it in (column, taken, DictionaryColumn.concat([column, taken, column])):
        assert sorted(it.values.to_list()) == sorted({v for v in it.to_list() if v is not None})
    joined = DictionaryColumn.concat([column, taken, column])
    assert joined.to_list() == [*values, *taken.to_list(), *values]


def test_foreign_bytes_are_refused() -> None:
    with pytest.raises(UnknownRecordVersionError, match="begins with"):
        unpack_columns(b"PK\x03\x04 something else")


def test_events_come_back_from_bytes() -> None:
    rows = [(b"k", b"i", 1, 2, 3, 4, 5), (b"", b"j", -1, -1, 0, 6, 7)]
    events = Events.from_rows("s", rows)
    back = Events.concat([Events.from_bytes(events.to_bytes())] * 2).take(np.array([1, 2]))
    assert back.stream == "s"
    assert back.id.to_list() == [b"j", b"i"]
    assert back.earliest.tolist() == [-1, 1]
    assert back.offset.tolist() == [6, 4]


def test_events_come_back_with_their_shapes() -> None:
    plain = Events.from_rows("s", [(b"k", b"i", 1, 2, 3, 4, 5)])
    assert Events.concat([plain, plain]).shape is None
    with_shape = replace(plain, shape=DictionaryColumn.from_list([b"shape"]))
    joined = Events.from_bytes(Events.concat([plain, with_shape, plain]).to_bytes())
    assert joined.shape is not None
    assert joined.shape.to_list() == [None, b"shape", None]
    taken = joined.take(np.array([2, 1]))
    assert taken.shape is not None
    assert taken.shape.to_list() == [None, b"shape"]


COLUMNS: dict[str, tuple[Column, Column, Column]] = {
    # Values of two events, and a missing one.
    "text": (
        DictionaryColumn.from_list([b"north", b"south"]),
        DictionaryColumn.from_list([None]),
        DictionaryColumn.from_list([b"south", None, b"north"]),
    ),
    "raw": (
        BytesColumn.from_list([b"a", b"bc"]),
        BytesColumn.from_list([b""]),
        BytesColumn.from_list([b"bc", b"", b"a"]),
    ),
    "count": (
        np.array([7, -7]),
        np.array([np.iinfo(np.int64).min]),
        np.array([-7, np.iinfo(np.int64).min, 7]),
    ),
    "level": (np.array([0.5, 1.5]), np.array([np.nan]), np.array([1.5, np.nan, 0.5])),
    "open": (np.array([True, True]), np.array([False]), np.array([True, False, True])),
}


def _values(column: Column) -> list[object]:
    return list(column.tolist() if isinstance(column, np.ndarray) else column.to_list())


@pytest.mark.parametrize("name", COLUMNS)
def test_declared_columns_stay_with_their_events(name: str) -> None:
    own, _, expected = COLUMNS[name]
    # By key and time the second event comes first and the one without the column in the middle.
    first = replace(
        Events.from_rows("s", [(b"k", b"c", 0, 9, 0, 0, 0), (b"k", b"a", 0, 3, 0, 1, 0)]),
        columns={name: own},
    )
    without = Events.from_rows("s", [(b"k", b"b", 0, 6, 0, 2, 0)])
    together = Events.from_bytes(Events.concat([first, without]).to_bytes())
    segment = Segment.from_events(together, np.zeros(3, np.bool_))[0]
    parts = [Segment.from_events(it, np.zeros(len(it), np.bool_))[0] for it in (first, without)]
    joined = Segment.from_bytes(Segment.join(parts)[0].to_bytes())
    for found in (segment, joined, joined.take(np.arange(3))):
        assert found.id.to_list() == [b"a", b"b", b"c"]
        np.testing.assert_equal(_values(found.columns[name]), _values(expected))
    merged = Segment.merge([joined], 6)
    assert merged is not None
    np.testing.assert_equal(_values(merged.columns[name]), _values(expected)[1:])
    assert segment.nbytes > replace_columns(segment).nbytes


def replace_columns(segment: Segment) -> Segment:
    return Segment(*(getattr(segment, name) for name in SEGMENT_FIELDS))


SEGMENT_FIELDS = ("group_keys", "group_starts", "earliest", "latest", "id", "late")


def test_events_without_declared_columns_are_packed_as_ever() -> None:
    events = Events.from_rows("s", [(b"k", b"i", 1, 2, 3, 4, 5)])
    columns, _ = unpack_columns(events.to_bytes())
    assert set(columns) == {
        *("key", "id", "earliest", "latest", "partition", "offset", "record_timestamp_us")
    }
    segment = Segment.from_events(events, np.zeros(1, np.bool_))[0]
    assert set(unpack_columns(segment.to_bytes())[0]) == set(SEGMENT_FIELDS)


def _keyed(keys: BytesColumn) -> Events:
    rows = [(key, b"", 0, 0, 0, offset, 0) for offset, key in enumerate(keys.to_list())]
    return replace(Events.from_rows("s", rows), key=keys)


def test_equal_keys_share_a_slot_and_all_slots_are_used() -> None:
    keys = BytesColumn.from_list([b"key-%d" % (i % 500) for i in range(1000)])
    assigned = Partitioner(Partitioning("key"), 4).assign(_keyed(keys))
    assert assigned.slot[:500].tolist() == assigned.slot[500:].tolist()
    assert np.bincount(assigned.slot, minlength=4).min() > 150
    assert assigned.join_key is keys


def test_a_grid_of_one_cell_lets_all_events_meet() -> None:
    keys = BytesColumn.from_list([b"a", b"", b"c"])
    assigned = Partitioner(Partitioning("grid"), 4).assign(_keyed(keys))
    assert assigned.slot.tolist() == [0, 0, 0]
    assert len(set(assigned.join_key.to_list())) == 1
