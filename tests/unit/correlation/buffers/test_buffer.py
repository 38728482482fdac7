"""Segments and their buffer, compared with plain lists."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.buffers import buffer as buffer_module
from correlation.buffers.buffer import StreamBuffer
from correlation.buffers.columns import DictionaryColumn
from correlation.buffers.events import Events
from correlation.buffers.segment import Segment, match_groups
from correlation.limits import KEEP_NOTHING, UNKNOWN_WATERMARK

# Key, latest, length, and whether it is late.
Row = tuple[bytes, int, int, bool]
ROWS = st.lists(
    st.tuples(
        st.sampled_from([b"a", b"b", b"", b"ab"]),
        st.integers(-50, 50),
        st.integers(0, 9),
        st.booleans(),
    ),
    min_size=1,
    max_size=30,
)


def _shape(number: int) -> bytes | None:
    """Shape of an event: of every second one none, so that some segments have none at all."""
    return None if number % 2 else b"%d" % (number % 3)


def _segment(rows: list[Row], first: int = 0) -> Segment:
    events = Events.from_rows(
        "s",
        [
            (key, b"%d" % number, latest - length, latest, 0, number, 0)
            for number, (key, latest, length, _) in enumerate(rows, first)
        ],
    )
    shapes = [_shape(number) for number in range(first, first + len(rows))]
    if any(shapes):
        events = replace(events, shape=DictionaryColumn.from_list(shapes))
    segment, order = Segment.from_events(events, np.array([late for *_, late in rows]))
    assert events.id.take(order).to_list() == segment.id.to_list()
    return segment


def _rows(segment: Segment) -> list[tuple[bytes, int, int, bytes, bool]]:
    keys = segment.key_of_rows(np.arange(len(segment)))
    ids = [int(event_id) for event_id in segment.id.to_list()]
    shapes = [None] * len(ids) if segment.shape is None else segment.shape.to_list()
    assert shapes == [_shape(number) for number in ids]
    return [
        (keys[i], int(segment.latest[i]), int(segment.earliest[i]), segment.id[i], late)
        for i, late in enumerate(segment.late.tolist())
    ]


def _plain(rows: list[Row], first: int = 0) -> list[tuple[bytes, int, int, bytes, bool]]:
    return [
        (key, latest, latest - length, b"%d" % number, late)
        for number, (key, latest, length, late) in enumerate(rows, first)
    ]


def _check_order(segment: Segment) -> None:
    assert segment.group_starts[0] == 0
    assert segment.group_starts[-1] == len(segment)
    for key, group in segment.groups().items():
        low, high = segment.group_starts[group : group + 2]
        assert low < high
        assert (np.diff(segment.latest[low:high]) >= 0).all()
        assert set(segment.key_of_rows(np.arange(low, high)).to_list()) == {key}
    lengths = segment.latest - segment.earliest
    assert (segment.min_uncertainty, segment.max_uncertainty) == (lengths.min(), lengths.max())
    assert segment.min_latest == segment.latest.min()
    assert segment.max_latest == segment.latest.max()


@given(rows=ROWS)
def test_a_segment_holds_its_events_in_order(rows: list[Row]) -> None:
    segment = _segment(rows)
    _check_order(segment)
    assert sorted(_rows(segment)) == sorted(_plain(rows))
    again = Segment.from_bytes(segment.to_bytes())
    assert _rows(again) == _rows(segment)


@given(rows=ROWS, data=st.data())
def test_a_segment_of_some_rows_holds_them_in_order(rows: list[Row], data: st.DataObject) -> None:
    segment = _segment(rows)
    chosen = data.draw(st.sets(st.integers(0, len(segment) - 1), min_size=1))
    taken = segment.take(np.array(sorted(chosen)))
    _check_order(taken)
    assert _rows(taken) == [_rows(segment)[row] for row in sorted(chosen)]
    assert len(chosen) < len(segment) or taken is segment


@given(parts=st.lists(ROWS, min_size=1, max_size=4))
def test_segments_are_joined_and_tell_where_rows_came_from(parts: list[list[Row]]) -> None:
    firsts = np.cumsum([0, *map(len, parts)]).tolist()
    segments = [_segment(rows, first) for rows, first in zip(parts, firsts, strict=False)]
    joined, order = Segment.join(segments)
    _check_order(joined)
    rows = [row for segment in segments for row in _rows(segment)]
    assert _rows(joined) == [rows[place] for place in order]
    assert sorted(order.tolist()) == list(range(firsts[-1]))


@given(first=ROWS, second=ROWS)
def test_groups_match_where_keys_are_equal(first: list[Row], second: list[Row]) -> None:
    base, target = _segment(first), _segment(second)
    keys = {
        (base.key_of_rows(np.array([b]))[0], int(b_end - b), int(t_end - t))
        for b, b_end, t, t_end in match_groups(base, target)
        if base.key_of_rows(np.array([b]))[0] == target.key_of_rows(np.array([t]))[0]
    }
    expected = {
        (key, sum(row[0] == key for row in first), sum(row[0] == key for row in second))
        for key in {row[0] for row in first} & {row[0] for row in second}
    }
    assert keys == expected
    assert len(match_groups(base, target)) == len(expected)


@given(blocks=st.lists(st.tuples(ROWS, st.integers(-60, 60)), max_size=12))
def test_a_buffer_keeps_all_that_is_needed_and_little_more(
    blocks: list[tuple[list[Row], int]],
) -> None:
    buffer, number, count, keep = StreamBuffer(), 0, 0, -60
    plain: list[tuple[bytes, int, int, bytes, bool]] = []
    seen: dict[int, Segment] = {}
    for rows, step in blocks:
        keep = max(keep, step)
        number = buffer.age((number, _segment(rows, count)), keep, number + 1)
        plain += _plain(rows, count)
        count += len(rows)
        held = [row for _, segment in buffer.segments for row in _rows(segment)]
        needed = [row for row in plain if row[1] >= keep]
        assert set(needed) <= set(held)
        assert len(set(held)) == len(held) == len(buffer)
        assert len(held) <= 2 * len(needed)
        for name, segment in buffer.segments:
            _check_order(segment)
            assert seen.setdefault(name, segment) is segment
            assert name < number


@given(
    blocks=st.lists(st.tuples(ROWS, st.integers(-60, 60)), max_size=8),
    times=st.sets(st.integers(-60, 60) | st.sampled_from([UNKNOWN_WATERMARK, KEEP_NOTHING])),
)
def test_a_buffer_counts_the_events_that_each_keep_value_needs(
    blocks: list[tuple[list[Row], int]], times: set[int]
) -> None:
    buffer, number = StreamBuffer(), 0
    assert buffer.count_needed(times) == dict.fromkeys(times, 0)
    for rows, keep in blocks:
        number = buffer.age((number, _segment(rows)), keep, number + 1)
        held = [int(it) for _, segment in buffer.segments for it in segment.latest]
        expected = {time: sum(it >= time for it in held) for time in times}
        assert buffer.count_needed(times) == expected


@given(blocks=st.lists(st.tuples(st.none() | ROWS, st.integers(-60, 99)), max_size=12))
def test_a_buffer_knows_from_when_on_it_holds_all(
    blocks: list[tuple[list[Row] | None, int]],
) -> None:
    """The keep value moves either way, as conditions come and go."""
    buffer, number, count = StreamBuffer(), 0, 0
    plain: list[tuple[bytes, int, int, bytes, bool]] = []
    for rows, keep in blocks:
        fresh = None if rows is None else (number, _segment(rows, count))
        number = buffer.age(fresh, keep, number + 1)
        plain += _plain(rows or [], count)
        count += len(rows or [])
        held = {row for _, segment in buffer.segments for row in _rows(segment)}
        assert {row for row in plain if row[1] >= buffer.forgotten_below} <= held
        # No more is said to be gone than a keep value let go, and than had come by then.
        assert buffer.forgotten_below <= max(keep for _, keep in blocks)
        assert not plain or buffer.forgotten_below <= max(row[1] for row in plain) + 1


def test_small_segments_are_merged_and_full_ones_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(buffer_module, "FULL_SEGMENT_EVENTS", 64)
    buffer = StreamBuffer()
    sizes = []
    for block in range(40):
        rows: list[Row] = [(b"k", 8 * block + i, 0, False) for i in range(8)]
        buffer.insert(block, _segment(rows), -100)
        sizes.append(len(buffer.segments))
    assert len(buffer) == 320
    assert max(len(segment) for _, segment in buffer.segments) <= 64
    assert max(sizes) <= 10


def test_held_segments_stay_as_they_are_until_they_are_let_go() -> None:
    buffer = StreamBuffer()
    for number in range(4):
        held = {1, 2} if number < 3 else {1, 2, 3}
        rows: list[Row] = [(b"k", number, 0, False)]
        assert buffer.age((number, _segment(rows)), -9, 100, held) == 100
    assert [number for number, _ in buffer.segments] == [0, 1, 2, 3]
    # Merged by the next block, when they are not needed apart any more.
    buffer.age((4, _segment([(b"k", 4, 0, False)])), -9, 100)
    assert [number for number, _ in buffer.segments] == [4]
    assert len(buffer) == 5
