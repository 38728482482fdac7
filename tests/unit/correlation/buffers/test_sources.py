"""Sources of segments: the records that a buffer holds, whatever was merged and dropped."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.buffers.buffer import StreamBuffer
from correlation.buffers.events import Events
from correlation.buffers.segment import Segment
from correlation.buffers.sources import (
    Source,
    Sources,
    cut_sources,
    find_sources,
    join_sources,
    narrow_sources,
    select_events,
)
from correlation.limits import UNKNOWN_WATERMARK

PARTITIONS = 2


def make_events(rng: random.Random, offsets: list[int], count: int, now: int) -> Events:
    """Return events of the next offsets; some offsets belong to other slots."""
    rows = []
    for _ in range(count):
        partition = rng.randrange(PARTITIONS)
        offsets[partition] += rng.randint(1, 3)
        offset = offsets[partition]
        latest = now + rng.randint(-30, 10)
        name = f"{partition}-{offset}".encode()
        rows.append((b"k", name, latest, latest, partition, offset, latest))
    rows.sort(key=lambda row: (row[4], row[5]))
    return Events.from_rows("s", rows)


def known_sources(buffer: StreamBuffer) -> Sources:
    found = join_sources(segment.sources for _, segment in buffer.segments)
    assert found is not None
    return found


@given(seed=st.integers(0, 2**32), falls=st.booleans())
def test_p_rebuild_sources_name_exactly_the_buffered_events(seed: int, *, falls: bool) -> None:
    rng = random.Random(seed)  # noqa: S311 - a reproducible test
    buffer, offsets, every = StreamBuffer(), [0] * PARTITIONS, []
    number, keep, held = 0, -30, set[int]()
    for block in range(rng.randint(1, 40)):
        begins = list(offsets)
        keep = rng.randint(block - 40, block) if falls and rng.random() < 0.2 else keep + 1
        fresh = None
        if count := rng.choice([0, 1, 1, 2, 8]):
            events = make_events(rng, offsets, count, block)
            every.append(events)
            ends = [it + 1 + rng.randint(0, 2) for it in offsets]
            offsets = [it - 1 for it in ends]
            ranges = {it: (begins[it] + 1, ends[it]) for it in range(PARTITIONS)}
            late = np.zeros(count, np.bool_)
            segment, _ = Segment.from_events(events, late, find_sources(events, ranges))
            fresh = (number, Segment.from_bytes(segment.to_bytes()))
            number += 1
        if rng.random() < 0.2:
            held = {it for it, _ in buffer.segments if rng.random() < 0.5}
        number = buffer.age(fresh, keep, number, held)
        buffered = {it for _, found in buffer.segments for it in found.id.to_list()}
        sources = known_sources(buffer)
        named = {
            it
            for events in every
            for it in events.id.take(np.flatnonzero(select_events(events, sources))).to_list()
        }
        assert named == buffered
        if not falls and not held:
            # One range of a partition in each segment.
            assert len(sources) <= PARTITIONS * len(buffer.segments)


@pytest.mark.parametrize(
    ("sources", "keep", "forgotten_below", "expected"),
    [
        ([(0, 1, 5), (0, 5, 9)], 10, 50, [(0, 1, 9, 10)]),
        # Offsets between the ranges: events there were dropped with a keep value up to 50.
        ([(0, 1, 5), (0, 7, 9)], 10, 50, [(0, 1, 5, 10), (0, 7, 9, 10)]),
        ([(0, 1, 5), (0, 7, 9)], 50, 50, [(0, 1, 9, 50)]),
        # The first range was cut with a larger keep value before.
        ([(0, 1, 5, 20), (0, 5, 9)], 10, 50, [(0, 1, 5, 20), (0, 5, 9, 10)]),
        ([(1, 5, 9), (0, 1, 5)], 50, 50, [(0, 1, 5, 50), (1, 5, 9, 50)]),
    ],
)
def test_ranges_are_joined_if_no_dropped_event_is_between_them(
    sources: list[tuple[int, ...]],
    keep: int,
    forgotten_below: int,
    expected: list[tuple[int, ...]],
) -> None:
    given_sources = tuple(Source(*it) for it in sources)
    assert [*cut_sources(given_sources, keep, forgotten_below)] == expected


def test_sources_of_an_earlier_version_are_unknown() -> None:
    assert join_sources([(Source(0, 1, 2),), None]) is None
    assert join_sources([]) == ()


def test_a_range_of_offsets_is_extended_to_the_events_of_a_recreated_topic() -> None:
    events = Events.from_rows("s", [(b"k", b"e", 0, 0, 0, 3, 0)])
    assert find_sources(events, {0: (100, 104)}) == (Source(0, 3, 104),)
    assert find_sources(events, {}) == (Source(0, 3, 4, UNKNOWN_WATERMARK),)


def test_narrow_sources_have_the_bounds_of_their_events() -> None:
    rows = [(b"k", b"e", time, time, 0, offset, 0) for offset, time in [(3, 5), (4, 9), (6, 7)]]
    events = Events.from_rows("s", rows)
    sources = (Source(0, 0, 10, 6), Source(1, 0, 10))
    assert narrow_sources(sources, events) == (Source(0, 4, 7, 6),)
