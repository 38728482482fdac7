"""Top-k conditions in the cells of a grid: merged, they write the records of a single cell."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from correlation.engine.blocks import Block, Control, Outcome
from correlation.engine.heartbeats import CLOSED, RESET, Heartbeat
from tests.conformance.test_topk import Case, cases, draw_arrivals
from tests.support.topk import STREAMS, GridSlots, Tagged, make_tag_block, topk_control

grids = st.tuples(st.sampled_from([2, 3, 4]), st.sampled_from([1, 2, 3]))
# What happens in a block beside its events.
EVENTS = ["none"] * 3 + ["version", "pause", "reset", "restart", "close"]


def read_records(outcome: Outcome) -> list[tuple[bytes, Any]]:
    """Return the records of a block; tombstones are left out, as a list may not exist."""
    return [
        (record.key, json.loads(record.value))
        for result in outcome.results
        for record in result.records(outcome.detected_at_us)
        if record.value is not None
    ]


def draw_blocks(rng: random.Random, case: Case) -> list[tuple[Block, bool]]:
    """Draw the blocks of a condition, and whether the slots restart before each."""
    rest: Sequence[Tagged] = draw_arrivals(rng, case)
    version = 1
    found = [(make_tag_block([], [topk_control(0, case.fields)]), False)]
    while rest:
        size = rng.choice([1, 2, 5, 20])
        taken, rest = rest[:size], rest[size:]
        controls, beats = list[Control](), list[Heartbeat]()
        event = rng.choice(EVENTS)
        if event in {"version", "pause"}:
            version += 1
            present = replace(case, k=rng.choice([1, 2, 5]), window=rng.choice([0, 4, 9]))
            controls = [topk_control(version, present.fields, version, paused=event == "pause")]
        elif event == "reset":
            beats = [Heartbeat(rng.choice(STREAMS), None, RESET, None)]
        elif event == "close":
            beats = [Heartbeat(name, None, CLOSED, None) for name in STREAMS]
        found.append((make_tag_block(taken, controls, beats), event == "restart"))
    found.append((make_tag_block([], [Control(1000, b"condition/t", None)]), False))
    return found


@settings(max_examples=200)
@given(case=cases, grid=grids)
def test_p_topk_merge_cells_write_the_records_of_one_cell(
    case: Case, grid: tuple[int, int]
) -> None:
    """Sets and expiries, late sets, versions, pauses, resets and closed streams, in any order."""
    rng = random.Random(case.seed)  # noqa: S311 - a reproducible choice, no secret
    case = replace(case, keyed=False)
    single, cells = GridSlots(1, 1), GridSlots(*grid)
    for block, restarted in draw_blocks(rng, case):
        if restarted:
            single.restart()
            cells.restart()
        assert read_records(cells.advance(block)) == read_records(single.advance(block))
        # A new version lists the sets from this time on, in every slot.
        for name in STREAMS:
            assert len({it.forgotten_below(name) for it in [*single.slots, *cells.slots]}) == 1
