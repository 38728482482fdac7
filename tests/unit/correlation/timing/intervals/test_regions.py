"""P-REGIONS: the position of a target decides its verdict."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from correlation.timing.intervals.regions import Regions, describe_regions, locate_regions
from correlation.timing.intervals.satisfaction import satisfied
from correlation.timing.intervals.window import TimingWindow
from tests.support.messages import assert_names
from tests.unit.correlation.timing.strategies import windows

SEVEN_TENTHS = Fraction(7, 10)


def region_of(s: int, regions: Regions) -> str:
    if not regions.lh <= s <= regions.rh:
        return "violated"
    if regions.ll <= s <= regions.rl:
        return "satisfied"
    return "probe"


@given(
    window=windows(limit=30),
    a=st.integers(0, 12),
    targets=st.tuples(st.integers(0, 12), st.integers(0, 12)).map(sorted),
)
def test_p_regions_decide_by_position(window: TimingWindow, a: int, targets: list[int]) -> None:
    regions = locate_regions(window, a, *targets)
    cases = itertools.product(range(targets[0], targets[1] + 1), range(-60, 61))
    lengths, differences = np.array(list(cases)).T
    truth = satisfied(a, lengths, differences, window)
    for s, is_satisfied in zip(differences.tolist(), truth.tolist(), strict=True):
        region = region_of(s, regions)
        assert region == "probe" or is_satisfied is (region == "satisfied"), (s, regions)


@given(window=windows(), a=st.integers(0, 2**45), b=st.integers(0, 2**45))
def test_p_regions_meet_when_all_targets_are_equally_long(
    window: TimingWindow, a: int, b: int
) -> None:
    if window.is_wide(a, b):
        regions = locate_regions(window, a, b, b)
        assert regions.ll <= regions.lh
        assert regions.rl >= regions.rh


def test_regions_of_streams_20_to_200_when_wide() -> None:
    window = TimingWindow(-1000, 1000, None, None, SEVEN_TENTHS)
    # W(20, 20) = 15, W(20, 200) = 70: sqrt(0.6) 20 and 0.3 · 200 + 10.
    assert locate_regions(window, 20, 20, 200) == Regions(-995, -870, 995, 1050)


def test_regions_are_all_probe_when_narrow() -> None:
    window = TimingWindow(-100, 100, None, None, SEVEN_TENTHS)
    assert locate_regions(window, 150, 20, 200) == Regions(-135, -49, -50, 84)


def test_describe_regions_names_directions_lengths_and_horizon() -> None:
    window = TimingWindow(None, 1_000_000, -5_000_000, None, SEVEN_TENTHS)
    described: dict[str, Any] = describe_regions(window, 20_000, 20_000, 0, 0)
    base_a = {"length": "20ms", "LH": "-5s", "LL": "-5s", "RL": "986ms", "RH": "986ms"}
    base_b = {"length": "0s", "LH": "-986ms", "LL": "-986ms", "RL": "5s", "RH": "5s"}
    for base, expected in (("base_a", base_a), ("base_b", base_b)):
        for bound in ("min_uncertainty", "max_uncertainty"):
            found = described[base][bound]
            meaning = found.pop("meaning")
            assert found == expected
            low, high = expected["LH"], expected["RH"]
            assert_names(meaning, f"from {low} to {high} are satisfied", "others", "probed")
            assert_names(meaning, f"below {low} or above {high} are violated")
    assert described["window"] == "wide"


def test_describe_regions_says_so_when_nothing_can_be_satisfied() -> None:
    described = describe_regions(TimingWindow(0, 0, 5, 9, SEVEN_TENTHS), 0, 0, 0, 0)
    assert "'meaning': 'no target satisfies" in str(described["base_a"])


def test_describe_regions_says_probe_when_narrow() -> None:
    described = describe_regions(
        TimingWindow(-100_000, 100_000, None, None, SEVEN_TENTHS), 150_000, 150_000, 20_000, 200_000
    )
    assert described["window"] == "narrow"
    assert_names(described["base_a"], "are probed", "all others are violated")
