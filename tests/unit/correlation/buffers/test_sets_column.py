"""Columns of sets keep their sets and forget the values that no set has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.buffers.buffer import FULL_SEGMENT_BYTES, StreamBuffer
from correlation.buffers.columns import (
    BytesColumn,
    Column,
    SetsColumn,
    concat_columns,
)
from correlation.buffers.events import Events
from correlation.buffers.packing import pack_columns, unpack_columns
from correlation.buffers.partitioner import Partitioner
from correlation.buffers.segment import Segment
from correlation.resources.partitioning import Partitioning

Sets = list[frozenset[bytes]]
TOKENS = st.sampled_from([b"", b"a", b"bc", b"\xc3\xa9", b"def"])
SETS = st.lists(st.frozensets(TOKENS), max_size=9)


def assert_holds(column: Column, sets: Sequence[frozenset[bytes]]) -> None:
    """Check the sets, and that the dictionary has their values and no others."""
    assert isinstance(column, SetsColumn)
    assert column.to_list() == list(sets)
    assert len(column) == len(sets)
    assert sorted(column.values.to_list()) == sorted(frozenset().union(*sets))
    assert (column.offsets.dtype.name, column.codes.dtype.name) == ("int64", "int32")


@given(sets=SETS, other=SETS, data=st.data())
def test_sets_columns_take_and_concat_like_lists(
    sets: Sets, other: Sets, data: st.DataObject
) -> None:
    rows = data.draw(st.lists(st.integers(0, len(sets) - 1), max_size=9)) if sets else []
    column = SetsColumn.from_list(sets)
    assert_holds(column, sets)
    taken = column.take(np.array(rows, np.int64))
    assert_holds(taken, [sets[row] for row in rows])
    joined = SetsColumn.concat([column, SetsColumn.from_list(other), taken])
    assert_holds(joined, [*sets, *other, *taken.to_list()])


@given(sets=SETS, other=SETS)
def test_packed_sets_come_back(sets: Sets, other: Sets) -> None:
    number = np.arange(3)
    columns: dict[str, Column] = {
        "s": SetsColumn.from_list(sets),
        "n": number,
        "t": SetsColumn.from_list(other),
    }
    found, _ = unpack_columns(pack_columns(columns, {}))
    assert_holds(found["s"], sets)
    assert_holds(found["t"], other)
    np.testing.assert_array_equal(found["n"], number)


def test_a_column_counts_all_of_its_arrays() -> None:
    column = SetsColumn.from_list([{b"abc", b"d"}, set(), {b"d"}])
    # 4 offsets, 3 codes, 2 values: their offsets and 4 bytes.
    assert column.nbytes == 4 * 8 + 3 * 4 + 3 * 8 + 4


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_parts_without_the_column_have_empty_sets(missing: int) -> None:
    sets: Sets = [frozenset({b"a", b"b"}), frozenset({b"b"})]
    parts: list[dict[str, Column]] = [{"s": SetsColumn.from_list(sets)} for _ in range(3)]
    parts[missing] = {}
    joined = concat_columns(parts, [2, 2, 2])["s"]
    expected = [list(sets), list(sets), list(sets)]
    expected[missing] = [frozenset(), frozenset()]
    assert_holds(joined, [it for part in expected for it in part])


def events(sets: Sets, first: int) -> Events:
    """Return an event for each set at the times first, first + 1, …, named by its time."""
    rows = [
        (b"kl"[it % 2 : it % 2 + 1], b"%d" % it, it, it, 0, it, it)
        for it in range(first, first + len(sets))
    ]
    return replace(Events.from_rows("s", rows), columns={"tokens": SetsColumn.from_list(sets)})


def sets_by_id(parts: Events | Segment) -> dict[bytes, frozenset[bytes]]:
    column = parts.columns["tokens"]
    assert isinstance(column, SetsColumn)
    return dict(zip(parts.id.to_list(), column.to_list(), strict=True))


@given(
    parts=st.lists(st.lists(st.frozensets(TOKENS), min_size=1, max_size=5), min_size=1, max_size=5),
    keep=st.integers(0, 25),
)
def test_sets_stay_with_their_events_in_segments(parts: list[Sets], keep: int) -> None:
    made: list[Events] = []
    expected: dict[bytes, frozenset[bytes]] = {}
    first = 0
    for sets in parts:
        made.append(events(sets, first))
        expected |= {b"%d" % (first + place): it for place, it in enumerate(sets)}
        first += len(sets)
    joined = Events.from_bytes(Events.concat(made).to_bytes())
    assert sets_by_id(joined) == expected
    spread = [it for _, it in Partitioner(Partitioning(), 3).spread(joined)]
    assert {name: it for part in spread for name, it in sets_by_id(part).items()} == expected
    for part in spread:
        assert_holds(part.columns["tokens"], [expected[name] for name in part.id.to_list()])
    segments = [Segment.from_events(it, np.zeros(len(it), np.bool_))[0] for it in made]
    merged = Segment.merge([Segment.from_bytes(it.to_bytes()) for it in segments], keep)
    kept = {name: it for name, it in expected.items() if int(name) >= keep}
    assert (sets_by_id(merged) if merged else {}) == kept
    if merged:
        assert_holds(merged.columns["tokens"], [kept[name] for name in merged.id.to_list()])


def test_a_buffer_forgets_the_tokens_of_dropped_events() -> None:
    buffer = StreamBuffer()
    # Each event has a token of its own and a common one.
    sets = [frozenset({b"common", b"own %d" % it}) for it in range(100)]
    number = 0
    for first in range(0, 100, 10):
        segment, _ = Segment.from_events(
            events(sets[first : first + 10], first), np.zeros(10, np.bool_)
        )
        number = buffer.age((number, segment), first - 10, number + 1)
    values = {it for _, segment in buffer.segments for it in dictionary(segment)}
    held = {int(name) for _, segment in buffer.segments for name in segment.id.to_list()}
    assert values == {b"common", *(b"own %d" % it for it in held)}
    # At least half of the events of a segment are needed.
    assert set(range(80, 100)) <= held
    assert len(held) <= 40


def test_segments_of_large_sets_are_not_merged_beyond_their_maximum_size() -> None:
    buffer, blocks, count, size = StreamBuffer(), 24, 100, 10_000
    tokens = BytesColumn.from_list([b"t%d" % it for it in range(size)])
    offsets = np.arange(count + 1, dtype=np.int64) * size
    codes = np.tile(np.arange(size, dtype=np.int32), count)
    column = SetsColumn(offsets, codes, tokens)
    for number in range(blocks):
        made = replace(events([frozenset()] * count, number * count), columns={"tokens": column})
        segment, _ = Segment.from_events(made, np.zeros(count, np.bool_))
        buffer.insert(number, segment, 0)
    sizes = [segment.nbytes for _, segment in buffer.segments]
    assert len(buffer) == blocks * count
    # 96 MB of codes: two or more segments, each at most full.
    assert max(sizes) <= FULL_SEGMENT_BYTES < sum(sizes)
    assert len(sizes) < 8


def dictionary(segment: Segment) -> list[bytes]:
    column = segment.columns["tokens"]
    assert isinstance(column, SetsColumn)
    return column.values.to_list()
