"""Searches with many pairs: small ones that are divided as if they were large, and real bursts."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from correlation import room
from correlation.engine.program import Program
from correlation.timing import operator
from tests.support.filters import DECLARED, draw_attributes, draw_where
from tests.support.slots import CONDITIONS, Arrival, Slot, draw_arrivals, make_block

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    import pytest

    from correlation.engine.program import Outcome


def divide(patch: pytest.MonkeyPatch, part: int, kept: int) -> None:
    """Divide searches into parts of some pairs in reach, and keep at most some pairs of a block."""
    patch.setattr(operator, "_PART_PAIRS", part)
    patch.setattr(room, "_KEPT_PAIRS", kept)


def attributed_slot(**more: Any) -> Slot:  # noqa: ANN401 - fields of streams
    """Return a slot whose streams have attributes, and further fields."""
    slot = Slot()
    slot.streams = {
        name: replace(it, attributes=DECLARED, **more) for name, it in slot.streams.items()
    }
    slot.program = Program(slot.streams, slot.partitions)
    return slot


def draw_search(rng: random.Random, algorithm: str) -> tuple[list[Arrival], dict[str, Any]]:
    """Draw events with attributes, and a condition with an algorithm and perhaps filters."""
    arrivals = [replace(it, attributes=draw_attributes(rng)) for it in draw_arrivals(rng, 80)]
    document = {**CONDITIONS[rng.choice(sorted(CONDITIONS))], "algorithm": algorithm}
    where = draw_where(rng)
    if where is not None:
        document["where"] = where
    if rng.random() < 0.3:
        document["block_size"] = rng.randint(1, 30)
    return arrivals, document


def advance_by_burst(
    slot: Slot, count: int, look: Callable[[Outcome], None] = lambda _: None
) -> tuple[Outcome, int]:
    """Advance by events of each stream at one moment; return the outcome and the max of memory.

    Parameters
    ----------
    slot : Slot
        A slot of the streams x and y.
    count : int
        Number of events of each stream.
    look : callable
        Called with the outcome while memory is measured.
    """
    arrivals = [
        Arrival(stream, 0, "k", f"{stream}{number}", 40, 40, number)
        for stream in ("x", "y")
        for number in range(count)
    ]
    block = make_block(arrivals, [])
    tracemalloc.start()
    try:
        outcome = slot.advance(block)
        look(outcome)
        return outcome, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
