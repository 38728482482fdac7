"""P-INDEXED: with an index by length, positions decide all pairs without a probability."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.timing.intervals.algorithms import ALGORITHMS
from correlation.timing.intervals.classes import (
    RUN_CLASS,
    RUN_GROUP,
    _order_by_length,
    classify_in_reach,
)
from correlation.timing.intervals.satisfaction import s_window, satisfied
from correlation.timing.intervals.window import TimingWindow
from tests.unit.correlation.timing.sides import WINDOWS, correlate, decisions, random_side, side
from tests.unit.correlation.timing.strategies import any_lengths, windows

SEVEN_TENTHS = Fraction(7, 10)


@given(
    window=windows(),
    a=any_lengths,
    b=any_lengths,
    off=st.lists(st.integers(-4, 4), min_size=1, max_size=8),
)
def test_p_indexed_ranges_are_the_satisfied_targets(
    window: TimingWindow, a: int, b: int, off: list[int]
) -> None:
    """Targets of one length close to the ends of the s-window, one base event."""
    ends = [int(end[0]) for end in s_window(a, b, window)]
    latest = np.sort(np.array([end + step for end in ends for step in off], np.int64))
    base, target = side((-a, 0)), side(*((t - b, t) for t in latest.tolist()))
    pairs = correlate("indexed", base, target, window)
    found = pairs.target_index.tolist()
    assert sorted(found) == np.flatnonzero(satisfied(a, b, latest, window)).tolist()
    assert found == list(range(found[0], found[-1] + 1) if found else [])


@pytest.mark.parametrize("ct", ["0.1", "0.5", "0.7", "1"])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("lengths", [[110], [20, 75, 200], None])
def test_p_indexed_equals_deciding_every_pair(
    lengths: list[int] | None,
    window: tuple[int | None, int | None, int | None, int | None],
    ct: str,
) -> None:
    rng = np.random.default_rng(20060405)
    base, target = (random_side(rng, size, 1500, lengths) for size in (80, 110))
    made = TimingWindow(*window, Fraction(ct))
    pairs = correlate("indexed", base, target, made)
    assert decisions(pairs).keys() == decisions(correlate("simple", base, target, made)).keys()
    assert len(pairs.base_index) == len(decisions(pairs))
    assert pairs.counts == (0, 0, 0)
    assert not pairs.decided_by.any()


def test_indexed_computes_nothing_in_a_narrow_window() -> None:
    """Where regions decide nothing by position: the others compute or look up every pair."""
    rng = np.random.default_rng(12)
    base, target = (random_side(rng, 200, 2000, [150, 180]) for _ in range(2))
    window = TimingWindow(-100, 100, None, None, Fraction(1, 2))
    pairs = correlate("indexed", base, target, window)
    lazy = correlate("lazy_lookup", base, target, window)
    assert len(pairs.base_index) == len(lazy.base_index) > 0
    assert (pairs.counts.evaluations, pairs.counts.probe_region) == (0, 0)
    assert lazy.counts.probe_region >= len(lazy.base_index)


def test_indexed_leaves_out_lengths_whose_s_window_is_empty() -> None:
    """|T_A - T_B| ≤ 10 with P ≥ 0.9 holds for short events and can not for long ones."""
    events = [(95, 100), (0, 100), (96, 101), (1, 101)]
    pairs = correlate(
        "indexed", side((97, 99)), side(*events), TimingWindow(-10, 10, None, None, Fraction(9, 10))
    )
    assert sorted(decisions(pairs)) == [(0, 0), (0, 2)]


def test_indexed_takes_an_event_with_itself_out_of_its_range() -> None:
    events = side((0, 10), (1, 11), (1, 11), (2, 12), (9, 13))
    window = TimingWindow(-20, 20, None, None, SEVEN_TENTHS)
    pairs = correlate("indexed", events, events, window, exclude_same=True)
    assert sorted(decisions(pairs)) == [(i, j) for i in range(5) for j in range(5) if i != j]


def test_classes_hold_events_in_reach_by_length_and_group() -> None:
    base = side((0, 10), (15, 20), (995, 1000), (0, 10))
    target = side((5, 10), (12, 17), (300, 305), (2, 12))
    groups = np.array([[0, 3, 0, 3], [3, 4, 3, 4]], np.int64)
    bases, targets = classify_in_reach(base, target, groups, (-50, 50))
    # The base event at 1000 and the target at 305 have no counterpart.
    assert bases.rows.tolist() == [1, 0, 3]
    assert bases.lengths.tolist() == [5, 10]
    assert bases.runs[:, [RUN_GROUP, RUN_CLASS]].tolist() == [[0, 0], [0, 1], [1, 1]]
    assert targets.rows.tolist() == [0, 1, 3]
    assert targets.runs.tolist() == [[0, 2, 0, 0], [2, 3, 1, 1]]
    assert targets.latest.tolist() == [10, 17, 12]


@pytest.mark.parametrize(
    "lengths",
    [[], [7], [3, 1, 3, 2, 1], [2**45, 0, 2**45, 1], [2**62, 5, 0, 2**62, 5]],
)
def test_order_by_length_keeps_equal_ones_as_they_stand(lengths: list[int]) -> None:
    """In the last case length and place have no room in one number."""
    order = _order_by_length(np.array(lengths, np.int64))
    assert order.tolist() == sorted(range(len(lengths)), key=lambda place: lengths[place])


def test_indexed_finds_more_ranges_than_base_events() -> None:
    """Every base event meets every length: the list of ranges grows."""
    rng = np.random.default_rng(9)
    base, target = (random_side(rng, 40, 300, [20, 40, 60, 80]) for _ in range(2))
    window = TimingWindow(-250, 250, None, None, SEVEN_TENTHS)
    groups = np.array([[0, 20, 0, 20], [20, 40, 20, 40]], np.int64)
    found = [
        decisions(ALGORITHMS[name](base, target, groups, window, exclude_same=False)).keys()
        for name in ("indexed", "simple")
    ]
    assert found[0] == found[1]
    assert len(found[0]) > 200
