"""Searches with very many pairs: divided, and their pairs found again when they are written."""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from correlation.operators import encode_json
from correlation.record_columns import columns_of
from correlation.timing.alarms import PairBatch, PairsFoundAgain
from correlation.timing.conditions import ALGORITHM_CHOICES
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
    from correlation.engine.program import Outcome

SEEDS = st.integers(0, 2**32)
BURST = 4_000
# The algorithm may be chosen by the events of a part, and regions by their lengths.
COSTS = {
    "searches_total",
    "pairs_total",
    "pair_evaluations_total",
    "probe_region_events_total",
    "lookup_hits_total",
}


def compare(
    patch: pytest.MonkeyPatch,
    rng: random.Random,
    slots: tuple[Slot, Slot],
    arrivals: list[Arrival],
    document: dict[str, Any],
    part: int,
) -> None:
    """Advance two slots; the first keeps all pairs, the second divides its searches."""
    whole = 1_000_000, 4_000_000
    rest: list[Arrival] = list(arrivals)
    controls = [control_record(0, "c", document)]
    while rest:
        size = rng.randint(1, 40)
        taken, rest = rest[:size], rest[size:]
        block = make_block(taken, controls)
        found = []
        for slot, limits in zip(slots, (whole, (part, rng.randint(0, part))), strict=True):
            divide(patch, *limits)
            outcome = slot.advance(block)
            found.append((pairs(outcome), totals(outcome)))
        assert found[0][0] == found[1][0]
        assert found[0][1] == found[1][1]
        controls = []
        if rng.random() < 0.3:
            for slot in slots:
                slot.restore()


def pairs(outcome: Outcome) -> Counter[str]:
    alarms = ({**it, "decided_by": None} for it in read_alarms(outcome))
    return Counter(json.dumps(it, sort_keys=True) for it in alarms)


def totals(outcome: Outcome) -> tuple[object, object]:
    metrics = outcome.metrics
    return [it for it in metrics["counters"] if it[0] not in COSTS], metrics["histograms"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(SEEDS, st.sampled_from(ALGORITHM_CHOICES), st.integers(1, 60))
def test_divided_searches_have_the_same_pairs_and_times(
    monkeypatch: pytest.MonkeyPatch, seed: int, algorithm: str, part: int
) -> None:
    rng = random.Random(seed)  # noqa: S311 - no secret
    arrivals, document = draw_search(rng, algorithm)
    # Response times are observed of live streams.
    slots = (attributed_slot(clock="live"), attributed_slot(clock="live"))
    compare(monkeypatch, rng, slots, arrivals, document, part)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(SEEDS, st.integers(1, 60), st.sampled_from(["pairs", "factored"]))
def test_divided_searches_have_the_same_pairs_of_histograms(
    monkeypatch: pytest.MonkeyPatch, seed: int, part: int, output: str
) -> None:
    rng = random.Random(seed)  # noqa: S311 - no secret
    declared = rng.choice(["templates", "own", "mixed"])
    document = {**CONDITIONS[rng.choice(sorted(CONDITIONS))], "output": output}
    arrivals = give_shapes(rng, draw_arrivals(rng, 40), declared)
    slots = (histogram_slot(declared), histogram_slot(declared))
    compare(monkeypatch, rng, slots, arrivals, document, part)


@pytest.mark.parametrize("more", [{}, {"block_size": 50}])
def test_conditions_and_blocks_share_the_room_of_a_batch(
    monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]
) -> None:
    divide(monkeypatch, 100, 1_500)
    slot = Slot()
    documents = (CONDITIONS["near"] | more, CONDITIONS["near"] | more | {"threshold": 0.5})
    controls = [control_record(place, f"c{place}", it) for place, it in enumerate(documents)]
    slot.advance(make_block([], controls))
    # 900 pairs of each of two conditions: those of the second exceed the room.
    outcome, _ = advance_by_burst(slot, 30)
    kept = sum(len(it) for it in outcome.results if isinstance(it, PairBatch))
    found_again = [it for it in outcome.results if isinstance(it, PairsFoundAgain)]
    assert 900 <= kept <= 1_500
    assert kept + sum(len(it.find()) for it in found_again) == 1_800
    assert len(read_alarms(outcome)) == 1_800


def test_burst_without_a_limit_takes_bounded_memory() -> None:
    slot = Slot()
    slot.advance(make_block([], [control_record(0, "all", CONDITIONS["near"])]))
    written = 0

    def write_some(outcome: Outcome) -> None:
        nonlocal written
        columns = columns_of(outcome.results[-1], 100, encode_json)
        written = sum(map(len, islice(columns, 3)))

    # Sixteen million pairs, of which four are kept, and the parts of the others found again.
    outcome, peak = advance_by_burst(slot, BURST, write_some)
    (alarms,) = (value for name, _, value in outcome.metrics["counters"] if name == "alarms_total")
    assert alarms == BURST * BURST
    assert written > 1_000
    assert len(outcome.results) >= alarms // 1_000_000
    # All pairs with their times would take three times as much.
    assert peak < 400 * 2**20
