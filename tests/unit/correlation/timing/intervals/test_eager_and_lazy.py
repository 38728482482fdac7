"""Probe regions without a look-up table: counts of eager and lazy, and the walk of lazy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from correlation.timing.intervals.algorithms import Side
from correlation.timing.intervals.pairs import PROBE, SATISFACTION_REGION
from correlation.timing.intervals.regions import locate_regions
from correlation.timing.intervals.window import TimingWindow
from tests.unit.correlation.timing.sides import WINDOWS, correlate, decisions, random_side, side

SEVEN_TENTHS = Fraction(7, 10)
LENGTHS = (20, 200)


def regions_of(base: Side, target: Side, window: TimingWindow) -> list[list[int]]:
    """For each base event and each target: 1 in the satisfaction region, 0 in a probe region."""
    found = []
    for earliest, latest in zip(base.earliest.tolist(), base.latest.tolist(), strict=True):
        regions = locate_regions(window, latest - earliest, *LENGTHS)
        offsets = (target.latest - latest).tolist()
        found.append(
            [
                -1 if not regions.lh <= s <= regions.rh else int(regions.ll <= s <= regions.rl)
                for s in offsets
            ]
        )
    return found


@pytest.mark.parametrize("name", ["eager", "lazy"])
@pytest.mark.parametrize("ct", ["0.1", "0.7", "1"])
@pytest.mark.parametrize("window", WINDOWS)
def test_probes_are_computed_and_nothing_else(
    window: tuple[int | None, int | None, int | None, int | None], ct: str, name: str
) -> None:
    rng = np.random.default_rng(2010)
    base, target = random_side(rng, 60, 1500), random_side(rng, 90, 1500)
    made = TimingWindow(*window, Fraction(ct))
    pairs = correlate(name, base, target, made, LENGTHS)
    regions = regions_of(base, target, made)
    probed = sum(row.count(0) for row in regions)
    assert pairs.counts == (probed, 0, probed)
    found = decisions(pairs)
    assert {pair for pair, how in found.items() if how == SATISFACTION_REGION} == {
        (i, j) for i, row in enumerate(regions) for j, region in enumerate(row) if region == 1
    }
    assert all(regions[i][j] == 0 for (i, j), how in found.items() if how == PROBE)
    assert found.keys() == decisions(correlate("simple", base, target, made)).keys()


@pytest.mark.parametrize("name", ["eager", "lazy"])
def test_pair_of_an_event_with_itself_is_not_counted(name: str) -> None:
    window = TimingWindow(-5, 5, None, None, Fraction(1, 20))
    events = side((0, 100), (60, 160))
    pairs = correlate(name, events, events, window, exclude_same=True)
    assert pairs.counts == (2, 0, 2)


def test_lazy_walks_base_events_by_descending_latest() -> None:
    """LL10 Algorithm 5, line 4: from the last one of the block to the first."""
    rng = np.random.default_rng(4)
    base, target = random_side(rng, 50, 900), random_side(rng, 50, 900)
    pairs = correlate("lazy", base, target, TimingWindow(-300, 300, None, None, SEVEN_TENTHS))
    assert len(set(pairs.base_index.tolist())) > 40
    assert (np.diff(pairs.base_index) <= 0).all()


def test_eager_takes_base_events_as_they_come() -> None:
    """LL10 Algorithm 2: all pairs of an event before those of the next, in no order of time."""
    rng = np.random.default_rng(4)
    base, target = random_side(rng, 50, 900), random_side(rng, 50, 900)
    window = TimingWindow(-300, 300, None, None, SEVEN_TENTHS)
    arrival = rng.permutation(50)
    arrived = Side(base.earliest[arrival], base.latest[arrival])
    pairs = correlate("eager", arrived, target, window)
    assert (np.diff(pairs.base_index) >= 0).all()
    found = {(int(arrival[i]), j): how for (i, j), how in decisions(pairs).items()}
    assert found == decisions(correlate("eager", base, target, window))


@pytest.mark.parametrize("name", ["simple", "ssort", "eager"])
@pytest.mark.parametrize(("bases", "targets"), [(1, 40_000), (150, 150), (5000, 4)])
def test_pairs_are_all_there_when_columns_have_to_grow(name: str, bases: int, targets: int) -> None:
    rng = np.random.default_rng(6)
    base, target = random_side(rng, bases, 900), random_side(rng, targets, 900)
    window = TimingWindow(-800, 800, None, None, SEVEN_TENTHS)
    pairs = correlate(name, base, target, window)
    expected = decisions(correlate("lazy_lookup", base, target, window)).keys()
    assert len(pairs.base_index) == len(expected) > 2**12
    assert decisions(pairs).keys() == expected
    assert (
        pairs.counts.evaluations == pairs.counts.probe_region >= (pairs.decided_by == PROBE).sum()
    )
