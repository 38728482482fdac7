"""A limit of pairs: a block reports as many of its pairs as the limit allows, and says so."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from correlation.timing.conditions import ALGORITHM_CHOICES
from correlation.timing.intervals.meetings import split_groups
from tests.support.bursts import advance_by_burst, attributed_slot, divide, draw_search
from tests.support.histogram_slots import give_shapes, histogram_slot
from tests.support.slots import (
    CONDITIONS,
    Arrival,
    Slot,
    control_record,
    draw_arrivals,
    make_block,
    read_alarms,
)

if TYPE_CHECKING:
    from correlation.buffers.columns import Int64s
    from correlation.engine.program import Outcome

SEEDS = st.integers(0, 2**32)
BURST = 15_000


def pairs_of(outcome: Outcome, condition: str) -> list[tuple[str, str]]:
    alarms = [it for it in read_alarms(outcome) if it["condition"] == condition]
    return [(it["a"]["id"], it["b"]["id"]) for it in alarms]


def count_limited(outcome: Outcome) -> int:
    counters = outcome.metrics["counters"]
    found = [value for name, labels, value in counters if name == "limited_blocks_total"]
    assert len(found) <= 1, "only the condition with a limit has the counter"
    return int(sum(found))


def compare_blocks(
    slot: Slot, rng: random.Random, arrivals: list[Arrival], document: dict[str, Any], limit: int
) -> None:
    """Advance block by block and compare a condition with a limit with one without."""
    both = {"all": document, "few": {**document, "max_pairs": limit}}
    controls = [control_record(place, *it) for place, it in enumerate(both.items())]
    before = count_limited(slot.advance(make_block([], controls)))
    rest = list(arrivals)
    while rest:
        size = rng.randint(1, 40)
        taken, rest = rest[:size], rest[size:]
        outcome = slot.advance(make_block(taken, []))
        every, few = pairs_of(outcome, "all"), pairs_of(outcome, "few")
        limited = count_limited(outcome) - before
        before += limited
        assert set(few) <= set(every)
        assert len(set(few)) == len(few)
        if "block_size" not in document:
            assert len(few) == min(limit, len(every))
            assert limited == (len(every) > limit)
        elif not limited:
            assert sorted(few) == sorted(every)
        else:
            assert limit <= len(few) < len(every)
        if rng.random() < 0.3:
            slot.restart()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(SEEDS, st.sampled_from(ALGORITHM_CHOICES), st.integers(1, 60), st.integers(1, 30))
def test_limited_blocks_report_some_of_their_pairs_and_others_all(
    monkeypatch: pytest.MonkeyPatch, seed: int, algorithm: str, part: int, limit: int
) -> None:
    # Searches are divided as if they were large.
    divide(monkeypatch, part, part)
    rng = random.Random(seed)  # noqa: S311 - no secret
    arrivals, document = draw_search(rng, algorithm)
    compare_blocks(attributed_slot(), rng, arrivals, document, limit)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(SEEDS, st.integers(1, 60), st.integers(1, 30))
def test_limit_holds_for_histograms(
    monkeypatch: pytest.MonkeyPatch, seed: int, part: int, limit: int
) -> None:
    divide(monkeypatch, part, part)
    rng = random.Random(seed)  # noqa: S311 - no secret
    declared = rng.choice(["templates", "own", "mixed"])
    document = {**CONDITIONS[rng.choice(sorted(CONDITIONS))]}
    arrivals = give_shapes(rng, draw_arrivals(rng, 40), declared)
    compare_blocks(histogram_slot(declared), rng, arrivals, document, limit)


@given(SEEDS, st.integers(1, 20), st.tuples(st.integers(-9, 9), st.integers(0, 9)))
def test_parts_have_the_pairs_in_reach_once(
    seed: int, max_pairs: int, ends: tuple[int, int]
) -> None:
    rng = np.random.default_rng(seed)
    reach = (ends[0], ends[0] + ends[1])
    sizes = rng.integers(1, 7, (4, 2))
    bases, targets = (
        np.concatenate([np.sort(rng.integers(0, 20, size)) for size in column])
        for column in sizes.T
    )
    bounds = np.concatenate([np.zeros((1, 2), np.int64), np.cumsum(sizes, axis=0)])
    groups = np.column_stack([bounds[:-1, 0], bounds[1:, 0], bounds[:-1, 1], bounds[1:, 1]])

    def pairs(part: Int64s) -> list[tuple[int, int]]:
        return [
            (i, j)
            for begin, end, first, last in part.tolist()
            for i in range(begin, end)
            for j in range(first, last)
            if reach[0] <= targets[j] - bases[i] <= reach[1]
        ]

    parts = list(split_groups(bases, targets, groups, reach, max_pairs))
    assert sorted(pair for it in parts for pair in pairs(it)) == sorted(pairs(groups))
    for part in parts:
        found = pairs(part)
        assert len(found) <= max_pairs or len({i for i, _ in found}) == 1
    # As many pairs in a part as fit.
    total = len(pairs(groups))
    assert len(parts) <= 1 + 2 * total // max_pairs + len(groups)


def test_burst_of_millions_of_pairs_takes_bounded_memory() -> None:
    slot = Slot()
    document = {**CONDITIONS["near"], "max_pairs": 1_000}
    slot.advance(make_block([], [control_record(0, "few", document)]))
    outcome, peak = advance_by_burst(slot, BURST)
    assert len(pairs_of(outcome, "few")) == 1_000
    assert count_limited(outcome) == 1
    assert peak < 500 * 2**20
