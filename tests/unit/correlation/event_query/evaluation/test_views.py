"""Views of segments: groups of equal values, and candidates by time."""

from __future__ import annotations

import gc

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from correlation.buffers.columns import BytesColumn, DictionaryColumn
from correlation.buffers.events import Events
from correlation.buffers.segment import Segment
from correlation.event_query.evaluation import interning
from correlation.event_query.evaluation.candidates import Candidates
from correlation.event_query.evaluation.interning import Interner
from correlation.event_query.evaluation.views import ViewKey, Views

Row = tuple[bytes, int, bytes | None, bytes | None]
rows = st.lists(
    st.tuples(
        st.sampled_from([b"a", b"b", b"long key"]),
        st.integers(0, 9),
        st.sampled_from([b"1", b"2", None]),
        st.sampled_from([b'"x"', b'"longer"', None]),
    ),
    min_size=1,
    max_size=12,
)


def segment_of(found: list[Row]) -> Segment:
    """Build a segment; the ids are the positions of the rows."""
    events = Events.from_rows(
        "s", [(key, b"%d" % n, end - 1, end, 0, n, 0) for n, (key, end, _, _) in enumerate(found)]
    )
    columns = {
        "attribute.k": DictionaryColumn.from_list([it[2] for it in found]),
        "attribute.m": DictionaryColumn.from_list([it[3] for it in found]),
    }
    whole = Events(
        events.stream,
        events.key,
        events.id,
        events.earliest,
        events.latest,
        events.partition,
        events.offset,
        events.record_timestamp_us,
        columns=columns,
    )
    return Segment.from_events(whole, np.zeros(len(found), np.bool_))[0]


@given(
    first=rows,
    second=rows,
    attributes=st.sampled_from([(), ("k",), ("k", "m")]),
    keyed=st.booleans(),
)
def test_groups_of_segments_have_equal_numbers_iff_their_values_are_equal(
    first: list[Row], second: list[Row], attributes: tuple[str, ...], *, keyed: bool
) -> None:
    views = Views()
    key = ViewKey(Candidates((), tuple((it,) for it in attributes)), keyed, attributes)
    found: dict[int, set[tuple[bytes | None, ...]]] = {}
    for source in (first, second):
        values = {
            n: (own if keyed else None, *(k, m)[: len(attributes)])
            for n, (own, _, k, m) in enumerate(source)
        }
        segment = segment_of(source)
        view = views.view(segment, key)
        present = {n: it for n, it in values.items() if None not in it[1:]}
        if view is None:
            assert not present
            continue
        groups = view.groups
        assert np.all(np.diff(groups.numbers) > 0)
        ids = [int(it) for it in segment.id.take(view.rows).to_list()]
        assert sorted(ids) == sorted(present)
        assert groups.end.tolist() == [source[it][1] for it in ids]
        assert groups.begin.tolist() == [source[it][1] - 1 for it in ids]
        for number, start, stop in zip(*map(np.ndarray.tolist, groups[:3]), strict=True):
            assert stop > start
            assert np.all(np.diff(groups.end[start:stop]) >= 0)
            found.setdefault(number, set()).update(present[it] for it in ids[start:stop])
    assert all(len(it) == 1 for it in found.values())
    assert len({next(iter(it)) for it in found.values()}) == len(found)


@given(found=rows, low=st.integers(-2, 11), length=st.integers(0, 12), again=st.booleans())
def test_between_returns_the_positions_of_a_range_of_times(
    found: list[Row], low: int, length: int, *, again: bool
) -> None:
    view = Views().view(segment_of(found), ViewKey(Candidates(), keyed=True, attributes=()))
    assert view is not None
    for _ in range(2):
        positions = view.between(low, low + length, again=again).tolist()
        ends = view.groups.end.tolist()
        assert positions == [n for n, end in enumerate(ends) if low <= end <= low + length]


def test_views_are_shared_and_do_not_keep_their_segment() -> None:
    views = Views()
    segment, key = (
        segment_of([(b"a", 1, b"1", None)]),
        ViewKey(Candidates(), keyed=True, attributes=()),
    )
    assert views.view(segment, key) is views.view(segment, key)
    assert len(views._entries) == 1  # noqa: SLF001 - the claim
    del segment
    gc.collect()
    assert len(views._entries) == 0  # noqa: SLF001


def test_numbers_that_are_not_in_use_are_forgotten() -> None:
    views = Views()
    key = ViewKey(Candidates(), keyed=False, attributes=("k",))
    kept = segment_of([(b"a", 1, b"1", None)])
    for n in range(3 * interning._MIN_SIZE // 1000):  # noqa: SLF001 - the limit under test
        segment = segment_of([(b"a", 1, b"%d" % (1000 * n + it), None) for it in range(1000)])
        views.view(segment, key)
        views.view(kept, key)
        views.tidy()
    assert len(views.interner) <= interning._MIN_SIZE + 1000  # noqa: SLF001
    assert views.interner.epoch > 0


@given(
    st.lists(
        st.tuples(*[st.integers(0, 2**31 - 1) | st.integers(0, 2) for _ in range(4)]), max_size=8
    ),
    st.integers(0, 4),
)
def test_packed_rows_are_equal_iff_their_columns_are(
    found: list[tuple[int, int, int, int]], count: int
) -> None:
    columns = [np.array([it[place] for it in found], np.int64) for place in range(count)]
    packed = Interner().pack(columns, len(found)).tolist()
    for i, first in enumerate(found):
        for j, second in enumerate(found):
            assert (packed[i] == packed[j]) == (first[:count] == second[:count])


def test_column_of_keys_of_one_length_is_read_as_slices_are() -> None:
    values = [b"ab\0", b"\0\0\0", b"xyz"]
    column = BytesColumn.from_list(values)
    assert column.to_list() == values
    assert BytesColumn.from_list([b"", b""]).to_list() == [b"", b""]
    assert column.take(np.array([2, 0])).to_list() == [b"xyz", b"ab\0"]
