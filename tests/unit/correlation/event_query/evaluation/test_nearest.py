"""The nearest event of a group on a side of a limit, against a plain search."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from correlation.event_query.evaluation.clauses import NO_BOUND
from correlation.event_query.evaluation.nearest import _first_event_kernel, _last_event_kernel
from correlation.event_query.evaluation.views import Groups

EVENTS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12)), min_size=1, max_size=12)
LIMITS = st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 13)), max_size=8)


def groups_of(events: list[tuple[int, int]]) -> Groups:
    """Return events, as (group, time), sorted."""
    numbers, times = np.array(sorted(events), np.int64).T.copy()
    found, starts = np.unique(numbers, return_index=True)
    stops = np.append(starts[1:], len(events))
    return Groups(found, starts.astype(np.int64), stops.astype(np.int64), times, times)


@given(EVENTS, EVENTS, LIMITS)
def test_nearest_events_are_found_in_all_segments(
    old: list[tuple[int, int]], new: list[tuple[int, int]], asked: list[tuple[int, int]]
) -> None:
    numbers, limits = np.array(asked, np.int64).reshape(-1, 2).T.copy()
    after = np.full(len(asked), NO_BOUND, np.int64)
    before = np.full(len(asked), -NO_BOUND, np.int64)
    for events in (old, new):
        times = [time for _, time in events]
        bounds = (min(times), max(times))
        _first_event_kernel(numbers, limits, groups_of(events), *bounds, after)
        _last_event_kernel(numbers, limits, groups_of(events), *bounds, before)
    mine = [[time for number, time in old + new if number == group] for group, _ in asked]
    assert after.tolist() == [
        min((time for time in times if time >= limit), default=NO_BOUND)
        for times, (_, limit) in zip(mine, asked, strict=True)
    ]
    assert before.tolist() == [
        max((time for time in times if time <= limit), default=-NO_BOUND)
        for times, (_, limit) in zip(mine, asked, strict=True)
    ]
