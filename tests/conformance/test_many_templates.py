"""Program against the oracle with too many templates to compute all s-windows at once."""

from __future__ import annotations

import random
from collections import OrderedDict
from functools import cache
from typing import TYPE_CHECKING
from weakref import WeakSet

import numpy as np
import pytest

from correlation.engine.program import Program
from correlation.resources.streams import Stream
from correlation.resources.template import Template
from correlation.timing.conditions import ALGORITHM_CHOICES
from correlation.timing.histograms import windows
from correlation.timing.histograms.windows import WindowBook, share_book
from correlation.timing.intervals.window import TimingWindow
from tests.support.histogram_slots import expected_pairs
from tests.support.histograms import Kept, draw_histogram
from tests.support.slots import (
    PARTITIONS,
    Arrival,
    Slot,
    control_record,
    judged_window,
    make_block,
    read_alarms,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from correlation.resources.histogram import Histogram

TEMPLATES, EVENTS, BLOCKS = 64, 90, 6
LONGEST = 60
NAMES = ("x", "y")
# Wide, narrow with gaps, and with one end.
DOCUMENTS = {
    "wide": {"kind": "mutual_deadline", "window_us": 130, "threshold": "0.7"},
    "narrow": {"kind": "mutual_deadline", "window_us": 6, "threshold": "0.2"},
    "by": {"kind": "deadline", "deadline_us": 10, "horizon_us": 150, "threshold": "0.5"},
}


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test find the s-windows of another."""
    _forget(monkeypatch)


def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin as a new process does."""
    monkeypatch.setattr(windows, "_KEPT", OrderedDict())
    monkeypatch.setattr(windows, "_LIVE", WeakSet())


def _draw_templates() -> dict[str, list[Histogram]]:
    """Draw shapes that are all different, many of them with gaps."""
    rng = np.random.default_rng(5)
    found: dict[str, list[Histogram]] = {}
    for name in NAMES:
        shapes: dict[Histogram, None] = {}
        while len(shapes) < TEMPLATES:
            shapes[draw_histogram(rng, range(20, LONGEST), parts=4)] = None
        found[name] = list(shapes)
    return found


SHAPES = _draw_templates()


def make_slot(cache: Kept | None) -> Slot:
    slot = Slot()
    slot.streams = {
        name: Stream(
            *(name, name, LONGEST, 9),
            clock="replay",
            templates=tuple(Template(f"t{k}", it) for k, it in enumerate(SHAPES[name])),
        )
        for name in NAMES
    }
    slot.program = Program(slot.streams, slot.partitions, cache=cache)
    return slot


def book_of(slot: Slot, document: dict[str, object]) -> WindowBook:
    """Return the s-windows that the slot's operator has."""
    window = TimingWindow(*judged_window(document))
    return share_book(window, slot.streams["x"], slot.streams["y"])


def draw_arrivals(*, with_intervals: bool = False) -> list[Arrival]:
    """Draw events of all templates, and some intervals, each of a length of its own."""
    rng = random.Random(7)  # noqa: S311 - a reproducible draw, no secret
    arrivals = []
    offsets = dict.fromkeys(((name, it) for name in NAMES for it in range(PARTITIONS)), 0)
    for k in range(EVENTS):
        for name in NAMES:
            latest, partition = k * 4 + rng.randint(0, 5), rng.randrange(PARTITIONS)
            shape: Histogram | None = rng.choice(SHAPES[name])
            earliest = latest - (shape.length_us if shape else 0)
            if with_intervals and rng.random() < 1 / 2:
                shape, earliest = None, latest - k % LONGEST
            offset = offsets[name, partition]
            offsets[name, partition] += 1
            arrivals.append(
                Arrival(name, partition, "k", f"{name}{k}", earliest, latest, offset, shape)
            )
    return arrivals


def cut(arrivals: list[Arrival]) -> Iterator[list[Arrival]]:
    size = -(-len(arrivals) // BLOCKS)
    for begin in range(0, len(arrivals), size):
        yield arrivals[begin : begin + size]


def feed(slot: Slot, arrivals: list[Arrival], document: dict[str, object]) -> list[tuple[str, str]]:
    """Register a condition and advance by blocks; returns the pairs."""
    found = read_alarms(slot.advance(make_block([], [control_record(0, "c", document)])))
    for block in cut(arrivals):
        found += read_alarms(slot.advance(make_block(block, [])))
    return sorted((it["a"]["id"], it["b"]["id"]) for it in found)


@cache
def judge(name: str, *, with_intervals: bool = False) -> list[tuple[str, str]]:
    """Return the pairs that the judge finds."""
    document: dict[str, object] = {**DOCUMENTS[name], "a": "x", "b": "y"}
    return sorted(expected_pairs(draw_arrivals(with_intervals=with_intervals), document))


@pytest.mark.parametrize("algorithm", ALGORITHM_CHOICES)
@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("with_intervals", [False, True])
# Never; little by little; from the first block on; and known halfway.
@pytest.mark.parametrize("work", [0, 3_000, 10**9, 100_000])
def test_pairs_are_the_judges_before_while_and_after_s_windows_are_known(
    monkeypatch: pytest.MonkeyPatch, algorithm: str, name: str, work: int, *, with_intervals: bool
) -> None:
    monkeypatch.setattr(windows, "SLICE", work)
    document = {**DOCUMENTS[name], "a": "x", "b": "y", "algorithm": algorithm}
    arrivals = draw_arrivals(with_intervals=with_intervals)
    slot = make_slot(None)
    assert feed(slot, arrivals, document) == judge(name, with_intervals=with_intervals)
    book = book_of(slot, document)
    assert book.table.is_settled == (work in {10**9, 100_000})
    if book.table.is_settled and not with_intervals and work == 10**9:
        # Nothing is decided by a probability any more.
        assert book.missed == 0 or algorithm in {"simple", "ssort"}


@pytest.mark.parametrize("emit", ["best", "unmatched"])
def test_verdicts_do_not_depend_on_s_windows(monkeypatch: pytest.MonkeyPatch, emit: str) -> None:
    document = {**DOCUMENTS["narrow"], "a": "x", "b": "y", "emit": emit, "threshold": "0.45"}
    arrivals, found = draw_arrivals(), []
    for work in (0, 1_000, 10**9):
        _forget(monkeypatch)
        monkeypatch.setattr(windows, "SLICE", work)
        slot = make_slot(None)
        alarms = []
        for number, block in enumerate([[], *cut(arrivals)]):
            controls = [] if number else [control_record(0, "c", document)]
            alarms += read_alarms(slot.advance(make_block(block, controls)))
        found.append(sorted((it["a"]["id"], str(it["b"] and it["b"]["id"])) for it in alarms))
        assert book_of(slot, document).table.is_settled == (work == 10**9)
    assert found[0] == found[1] == found[2]
    assert found[0]


@pytest.mark.parametrize("damage", [None, 40, -1])
def test_a_restart_computes_nothing_again(
    monkeypatch: pytest.MonkeyPatch, damage: int | None
) -> None:
    monkeypatch.setattr(windows, "SLICE", 60_000)
    document = {**DOCUMENTS["narrow"], "a": "x", "b": "y", "algorithm": "auto"}
    arrivals, kept = draw_arrivals(), Kept()
    slot = make_slot(kept)
    assert feed(slot, arrivals, document) == judge("narrow")
    first = book_of(slot, document).work
    assert first > 0
    (name,) = kept.blobs
    if damage is not None:
        kept.blobs[name] = kept.blobs[name][:damage]
    _forget(monkeypatch)
    slot = make_slot(kept)
    assert feed(slot, arrivals, document) == judge("narrow")
    book = book_of(slot, document)
    # A damaged table is computed as if it were missing.
    assert (book.work, book.table.is_settled) == (0 if damage is None else first, True)
    assert (book.missed == 0) == (damage is None)
