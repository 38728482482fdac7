"""The symmetric grid: groups, cells, keys, slots, copies."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from correlation.buffers.events import Events
from correlation.buffers.grid import assign_groups, crossed_key, home_copies, slots_of_cells
from correlation.buffers.partitioner import Partitioner
from correlation.errors import InvalidFieldError
from correlation.limits import GROUPS_LIMIT, SLOTS_LIMIT
from correlation.resources.partitioning import Partitioning
from correlation.resources.streams import Stream
from correlation.resources.tokens import Tokens


def _events(count: int) -> Events:
    rows = [(b"k", b"%d" % n, n, n + 1, n % 3, n // 3, n + 2) for n in range(count)]
    return Events.from_rows("s", rows)


def _copies(events: Events, groups: int, slots: int) -> list[tuple[int, bytes, bytes]]:
    """List (slot, key, id) of all copies."""
    found = []
    for slot, mine in Partitioner(Partitioning("grid", groups), slots).spread(events):
        columns = zip(mine.key.to_list(), mine.id.to_list(), strict=True)
        found += [(slot, *copy) for copy in columns]
    return found


@pytest.mark.parametrize("groups", [1, 2, 3, 5, GROUPS_LIMIT])
@pytest.mark.parametrize("slots", [1, 2, 7])
def test_p_grid_any_two_copies_meet_exactly_once(groups: int, slots: int) -> None:
    copies = _copies(_events(4 * min(groups, 5)), groups, slots)
    places: dict[bytes, set[tuple[int, bytes]]] = {}
    for slot, key, ident in copies:
        places.setdefault(ident, set()).add((slot, key))
    assert all(len(found) == groups for found in places.values())
    for first, second in product(places, repeat=2):
        meetings = [
            (slot, key) for slot, key in places[first] if (slot, crossed_key(key)) in places[second]
        ]
        assert len(meetings) == 1


@pytest.mark.parametrize("groups", [1, 2, 5])
def test_home_copy_is_one_of_each_event(groups: int) -> None:
    events = _events(60)
    partitioning = Partitioning("grid", groups)
    homes = []
    for _, mine in Partitioner(partitioning, 3).spread(events):
        home = home_copies(mine.key, partitioning.groups)
        homes += mine.id.take(np.flatnonzero(home)).to_list()
    assert sorted(homes) == sorted(b"%d" % n for n in range(60))


def test_a_grid_of_one_group_is_as_it_always_was() -> None:
    ((slot, mine),) = Partitioner(Partitioning("grid"), 4).spread(_events(3))
    assert slot == 0
    assert mine.key.to_list() == [b"0"] * 3


@pytest.mark.parametrize("step", [1, 2, 1024])
def test_groups_are_even_whatever_offsets_a_topic_leaves_out(step: int) -> None:
    offset = np.arange(30_000, dtype=np.int64) * step
    for partition in (0, 1):
        group = assign_groups(np.full(len(offset), partition, np.int32), offset, 5)
        # Five times the standard deviation of a fair die.
        assert np.abs(np.bincount(group, minlength=5) - 6_000).max() < 5 * 69
    assert (assign_groups(np.zeros(30_000, np.int32), offset, 5) != group).any()


def test_group_of_an_event_is_its_place_in_kafka() -> None:
    """Whenever and with what it is read: state in Kafka and Spark depends on it."""
    partition = np.array([0, 0, 0, 1, 7], np.int32)
    offset = np.array([0, 1, 2, 0, 2**40], np.int64)
    together = assign_groups(partition, offset, 44)
    # splitmix64 begins, seeded with 0, with 0xE220A8397B1DCDAF.
    assert together.tolist() == [0xE220A8397B1DCDAF % 44, 9, 6, 32, 26]
    for row in range(len(offset)):
        alone = assign_groups(partition[row : row + 1], offset[row : row + 1], 44)
        assert alone.tolist() == together[row : row + 1].tolist()


def _own_groups(events: Events, groups: int) -> list[int]:
    """Return the group of each event of a stream with tokens."""
    stream = Stream(
        "s", "s", 0, 0, partitioning=Partitioning("grid", groups), tokens=Tokens(("t",))
    )
    assigned = Partitioner.of_stream(stream, 3).assign(events)
    keys = assigned.join_key.to_list()[::groups]
    return [key[0] for key in keys]


def test_group_of_an_event_with_tokens_is_its_id_and_time() -> None:
    """Wherever it is sent again: state in Kafka and Spark depends on it."""
    names = [(b"", 5), (b"a", 5), (b"a", 6), (b"b", -5), (b"b", 2**50)]
    first = [(b"k", name, time, time, 0, at, 0) for at, (name, time) in enumerate(names)]
    again = [(b"l", name, time, time, 1, 9 - at, 7) for at, (name, time) in enumerate(names)]
    found = _own_groups(Events.from_rows("s", [*first, *again]), 44)
    assert found[:5] == found[5:] == [22, 41, 22, 9, 21]


@pytest.mark.parametrize("step", [1, 1_000_000])
def test_groups_of_events_with_tokens_are_even(step: int) -> None:
    rows = [(b"k", b"%d" % (at // 2), at % 2 * step, at * step, 0, at, 0) for at in range(30_000)]
    group = _own_groups(Events.from_rows("s", rows), 5)
    # Five times the standard deviation of a fair die.
    assert np.abs(np.bincount(group, minlength=5) - 6_000).max() < 5 * 69


def test_no_events_go_nowhere() -> None:
    for partitioning in (Partitioning(), Partitioning("grid", 3)):
        assert list(Partitioner(partitioning, 4).spread(_events(0))) == []


def _loads(groups: int, slots: int) -> list[int]:
    slot_of = slots_of_cells(groups, slots)
    assert (slot_of == slot_of.T).all()
    # A cell of two groups is listed twice, because it has twice the work.
    found: list[int] = np.bincount(slot_of.ravel(), minlength=slots).tolist()
    return found


@pytest.mark.parametrize("slots", [1, 2, 3, 4, 5, 8, 13, 32, GROUPS_LIMIT])
def test_p_grid_work_is_even_with_as_many_groups_as_slots(slots: int) -> None:
    assert _loads(slots, slots) == [slots] * slots


@pytest.mark.parametrize("groups", [2, 3, 4, 6, 9, 20])
@pytest.mark.parametrize("slots", [2, 3, 4, 8, 16, 100])
def test_work_of_slots_differs_by_that_of_one_cell(groups: int, slots: int) -> None:
    loads = _loads(groups, slots)
    assert sum(loads) == groups**2
    assert max(loads) <= max(groups**2 / slots + 1, 2)


@pytest.mark.parametrize(("slots", "groups"), [(2, 2), (3, 3), (4, 4), (8, 4), (16, 8), (32, 8)])
def test_documented_groups_are_the_min_that_are_even(slots: int, groups: int) -> None:
    even = [it for it in range(1, groups + 1) if max(_loads(it, slots)) * slots == it**2]
    assert even == [groups]


def test_max_grid_has_a_cell_for_every_slot_of_the_max_job() -> None:
    assert Partitioning("grid", GROUPS_LIMIT).cells <= SLOTS_LIMIT
    assert GROUPS_LIMIT * (GROUPS_LIMIT + 1) // 2 + GROUPS_LIMIT + 1 > SLOTS_LIMIT


@pytest.mark.parametrize(
    ("by", "groups", "field"),
    [
        ("grid", 0, "partitioning.groups"),
        ("grid", GROUPS_LIMIT + 1, "partitioning.groups"),
        ("key", 2, "partitioning.groups"),
        ("row", 1, "partitioning.by"),
    ],
)
def test_partitioning_refuses(by: str, groups: int, field: str) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        Partitioning(by, groups)  # type: ignore[arg-type]
    assert caught.value.field == field
