"""Meetings: the event ranges near enough to be searched, compared with a plain double loop."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from correlation.buffers.events import Events
from correlation.buffers.segment import Segment
from correlation.timing.intervals.meetings import find_meetings, matched_groups, widen

Rows = list[tuple[bytes, int]]
ROWS: st.SearchStrategy[Rows] = st.lists(
    st.tuples(st.sampled_from([b"a", b"b"]), st.integers(-60, 60)), min_size=1, max_size=25
)


def _segment(rows: Rows) -> Segment:
    events = Events.from_rows(
        "s", [(key, b"", at, at, 0, i, 0) for i, (key, at) in enumerate(rows)]
    )
    return Segment.from_events(events, np.zeros(len(rows), np.bool_))[0]


@given(base=ROWS, target=ROWS, ends=st.tuples(st.integers(-40, 40), st.integers(0, 30)))
def test_meetings_hold_all_that_is_in_reach_and_share_nothing(
    base: Rows, target: Rows, ends: tuple[int, int]
) -> None:
    reach = (ends[0], ends[0] + ends[1])
    sides = _segment(base), _segment(target)
    found = find_meetings({}, *sides, reach, crossed=False)
    least, greatest = widen(*reach)
    groups = matched_groups({}, *sides, crossed=False)
    met = {
        (i, j)
        for b, b_end, t, t_end in found.tolist()
        for i in range(b, b_end)
        for j in range(t, t_end)
    }
    near = {
        (i, j)
        for b, b_end, t, t_end in groups.tolist()
        for i in range(b, b_end)
        for j in range(t, t_end)
        if least <= sides[1].latest[j] - sides[0].latest[i] <= greatest
    }
    assert near <= met
    # Every base event has a target in reach, every target a base event.
    for place in (0, 1):
        assert {pair[place] for pair in met} == {pair[place] for pair in near}
    # As the algorithms need it: ranges of one side do not overlap, nor do they leave their group.
    for low, high in ((found[:, 0], found[:, 1]), (found[:, 2], found[:, 3])):
        order = np.argsort(low, kind="stable")
        assert (high[order][:-1] <= low[order][1:]).all()
    keys = [segment.groups_of_rows(np.arange(len(segment))) for segment in sides]
    assert all(len(set(keys[0][b:e])) == len(set(keys[1][t:u])) == 1 for b, e, t, u in found)


@given(least=st.integers(-(2**50), 2**50), width=st.integers(0, 2**50))
def test_widened_reach_is_at_most_three_times_as_wide(least: int, width: int) -> None:
    low, high = widen(least, least + width)
    assert low <= least
    assert least + width <= high
    assert high - low <= max(3 * width, 1)


def test_conditions_with_similar_windows_share_what_was_found() -> None:
    shared: dict[object, object] = {}
    sides = _segment([(b"a", 0), (b"b", 9)]), _segment([(b"a", 1), (b"c", 9)])
    first = find_meetings(shared, *sides, (-9, 9), crossed=False)
    assert find_meetings(shared, *sides, (-10, 8), crossed=False) is first
    assert find_meetings(shared, *sides, (-90, 9), crossed=False) is not first
    assert find_meetings(shared, *sides[::-1], (-9, 9), crossed=False) is not first
