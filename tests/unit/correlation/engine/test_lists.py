"""Lists of conditions are published, survive restarts, and are withdrawn exactly once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from correlation.engine.blocks import Block, Control
from correlation.engine.origin import Origin
from correlation.resources.partitioning import Partitioning
from correlation.resources.records import resource_key
from tests.support.longest import Written, read_written, register_longest_kind
from tests.support.query_slots import LASTING
from tests.support.slots import Arrival, Slot, beat, control_record, make_block

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from correlation.engine.heartbeats import Heartbeat

DOCUMENT: dict[str, object] = {"kind": "longest_events", "stream": "x", "places": 2}
DOCUMENT |= {"window_us": 20, "min_seconds": "0", "skip": 0, "per_key": True}
NOTHING = Written([], [])


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    register_longest_kind(monkeypatch)


def event(name: str, latest: int, length: int, offset: int, key: str = "k") -> Arrival:
    return Arrival("x", 0, key, name, latest - length, latest, offset)


EVENTS = [event("a", 10, 3, 0), event("b", 12, 5, 1), event("q", 13, 4, 2, "other")]
PUBLISHED = Written(
    [("entered", "b", "progress"), ("entered", "a", "progress"), ("entered", "q", "progress")],
    [("c/k", ["b", "a"]), ("c/other", ["q"])],
)
LEFT = [("left", "b", "condition"), ("left", "a", "condition"), ("left", "q", "condition")]
WITHDRAWN = Written(LEFT, [("c/k", None), ("c/other", None)])


def advance(
    slot: Slot,
    arrivals: Sequence[Arrival] = (),
    controls: Sequence[Control] = (),
    beats: Sequence[Heartbeat] = (),
) -> Written:
    block = replace(make_block(list(arrivals), list(controls)), heartbeats=beats)
    return read_written(slot.advance(block))


def started(document: dict[str, object] = DOCUMENT) -> Slot:
    """Return a slot whose condition has two published lists."""
    slot = Slot()
    slot.partitions = dict.fromkeys(slot.streams, 1)
    slot.restart()
    assert advance(slot, EVENTS, [control_record(0, "c", document)]) == NOTHING
    slot.restart()
    assert advance(slot, beats=[beat("x", 15)]) == PUBLISHED
    return slot


@pytest.mark.parametrize("restarted", [False, True])
def test_lists_change_with_events_and_time(*, restarted: bool) -> None:
    slot = started()

    def written(*arrivals: Arrival, mark: int | None = None) -> Written:
        if restarted:
            slot.restart()
        return advance(slot, arrivals, beats=[] if mark is None else [beat("x", mark)])

    assert written(event("d", 16, 9, 3)) == NOTHING
    entered = [("left", "a"), ("entered", "d"), ("moved", "b")]
    assert written(mark=17) == Written(_progress(entered), [("c/k", ["d", "b"])])
    assert written() == NOTHING
    # A late event that is in the window takes effect at once.
    assert written(event("e", 14, 7, 4)) == Written(
        _progress([("left", "b"), ("entered", "e")]), [("c/k", ["d", "e"])]
    )
    left = [("left", "e"), ("left", "q")]
    assert written(mark=36) == Written(_progress(left), [("c/k", ["d"]), ("c/other", None)])
    assert written(mark=99) == Written(_progress([("left", "d")]), [("c/k", None)])


def _progress(changes: Sequence[tuple[str, str]]) -> list[tuple[str, str, str]]:
    return [(change, name, "progress") for change, name in changes]


def test_blocks_of_a_restarted_slot_write_nothing_twice() -> None:
    slot = started()
    for _ in range(3):
        slot.restart()
        assert advance(slot) == NOTHING


# Config records that end the condition.
ENDINGS: dict[str, Control] = {
    "removed": Control(1, resource_key("condition", "c"), None),
    "paused": control_record(1, "c", DOCUMENT, paused=True),
    "unreadable": Control(1, resource_key("condition", "c"), "not JSON"),
    "of another stream": control_record(1, "c", DOCUMENT | {"stream": "y"}, 2),
    "of a missing stream": control_record(1, "c", DOCUMENT | {"stream": "z"}, 2),
    "not valid": control_record(1, "c", DOCUMENT | {"window_us": 0}, 2),
    "of another kind": control_record(
        1,
        "c",
        {"kind": "mutual_deadline", "a": "x", "b": "y", "window_us": 5, "threshold": "0.5"},
        2,
    ),
}


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_lists_are_withdrawn_when_the_condition_ends(ending: Control, *, restarted: bool) -> None:
    slot = started()
    if restarted:
        slot.restart()
    assert advance(slot, controls=[ending]) == WITHDRAWN
    for _ in range(2):
        slot.restart()
        assert advance(slot, beats=[beat("x", 18)]) == NOTHING


def test_new_version_withdraws_first_and_writes_its_lists_in_the_same_block() -> None:
    slot = started()
    control = control_record(1, "c", DOCUMENT | {"places": 1}, 2)
    written = advance(slot, controls=[control])
    assert written == Written(
        [*LEFT, ("entered", "b", "condition"), ("entered", "q", "condition")],
        [*WITHDRAWN.lists, ("c/k", ["b"]), ("c/other", ["q"])],
    )
    slot.restart()
    assert advance(slot) == NOTHING


def test_version_that_was_replaced_in_its_first_block_withdraws_nothing() -> None:
    slot = started()
    controls = [control_record(n, "c", DOCUMENT, n + 1) for n in (1, 2)]
    written = advance(slot, controls=[*controls, ENDINGS["removed"]._replace(offset=3)])
    assert written == WITHDRAWN


def test_resumed_condition_writes_its_lists_again() -> None:
    slot = started()
    assert advance(slot, controls=[ENDINGS["paused"]]) == WITHDRAWN
    slot.restart()
    # The paused condition kept no events.
    assert advance(slot, controls=[control_record(2, "c", DOCUMENT)]) == NOTHING
    entered = advance(slot, [event("e", 20, 2, 3)], beats=[beat("x", 21)])
    assert entered == Written([("entered", "e", "progress")], [("c/k", ["e"])])


def _remove_stream(slot: Slot) -> None:
    del slot.streams["x"]


def _drop_events(slot: Slot) -> None:
    """Declare that the events last: the buffered instants are dropped, as by other partitioning."""
    slot.streams["x"] = replace(slot.streams["x"], max_uncertainty_us=0, mapping=LASTING)


def _break_check(slot: Slot) -> None:
    slot.streams["x"] = replace(slot.streams["x"], partitioning=Partitioning("grid"))


CHANGES: dict[str, Callable[[Slot], None]] = {
    "its stream is removed": _remove_stream,
    "the buffered events of its stream are dropped": _drop_events,
    "it cannot use its stream": _break_check,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_lists_are_withdrawn_after_a_restart_when(change: Callable[[Slot], None]) -> None:
    slot = started()
    change(slot)
    slot.restart()
    assert advance(slot) == WITHDRAWN
    slot.restart()
    assert advance(slot) == NOTHING


def test_withdrawal_is_repeated_when_the_first_batch_after_a_restart_is_repeated() -> None:
    slot = started()
    _remove_stream(slot)
    slot.restart()
    first = advance(slot)
    # The batch failed: its state was not stored.
    slot.program = slot.program.restore(
        slot.manifest, slot.blobs.__getitem__, slot.streams, slot.partitions
    )
    assert advance(slot) == first == WITHDRAWN


@pytest.mark.parametrize("registered_again", [False, True])
def test_lists_are_withdrawn_when_the_config_topic_is_replaced(*, registered_again: bool) -> None:
    slot = started()
    slot.origin = Origin(config_epoch=1)
    slot.restart()
    controls = [control_record(0, "c", DOCUMENT)] if registered_again else []
    written = advance(slot, controls=controls)
    assert written.lists[:2] == WITHDRAWN.lists
    assert written.lists[2:] == (PUBLISHED.lists if registered_again else [])


def test_gauges_are_in_the_record_of_the_slot() -> None:
    slot = started()
    gauges = slot.advance(Block()).metrics["gauges"]
    labels = {"condition": "c"}
    assert ["longest_listed_events", labels, 3] in gauges
    assert ["longest_length_seconds", labels, 5e-6] in gauges
