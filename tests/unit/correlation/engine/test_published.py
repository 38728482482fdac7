"""The published state of slots, distributed to another number of slots."""

from __future__ import annotations

from typing import Any

import pytest

from correlation.buffers.sources import Source, unite_sources
from correlation.engine.program import Program
from correlation.engine.published import Published, redistribute
from correlation.resources.streams import Stream

STREAM = Stream("s", "topic", 10, 10)
Ranges = list[list[int]] | None


def slot(sources: Ranges, forgotten: list[int]) -> Published:
    found = Program({"s": STREAM}, {"s": 2}).publish()
    facts: dict[str, Any] = {"sources": {"s": sources}, "forgotten": {"s": forgotten}}
    return Published({**found.position, **facts}, found.totals)


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        # A slot without events, and one whose ranges end with its own events.
        ([[], [[0, 3, 9, 0]]], [[0, 3, 9, 0]]),
        ([[[0, 2, 9, 0]], [[0, 0, 7, 0], [1, 4, 5, 0]]], [[0, 0, 9, 0], [1, 4, 5, 0]]),
        ([[[0, 0, 4, 0]], [[0, 4, 6, 0], [0, 8, 9, 0]]], [[0, 0, 6, 0], [0, 8, 9, 0]]),
        # Events are dropped when segments are merged, in each slot at its own time.
        ([[[0, 0, 9, 3]], [[0, 0, 9, 5]]], [[0, 0, 9, 3], [0, 0, 9, 5]]),
        ([[[0, 0, 9, 3]], None], None),
    ],
)
def test_new_slots_have_the_sources_of_all_former_slots(
    sources: list[Ranges], expected: Ranges
) -> None:
    former = [slot(it, [number, 10 - number]) for number, it in enumerate(sources)]
    found = redistribute(former, 3)
    assert [it.position["sources"] for it in found] == [{"s": expected}] * 3
    assert [it.position["forgotten"] for it in found] == [{"s": [1, 10]}] * 3


def test_united_sources_are_few() -> None:
    ranges = [(Source(0, begin, begin + 10, 7),) for begin in range(0, 100, 5)]
    assert unite_sources([*ranges, *ranges]) == (Source(0, 0, 105, 7),)
