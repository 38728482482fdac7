"""P-SWINDOW, P-DEPTH, P-MONOTONE, P-KEEP: the range of s where a pair is satisfied."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from correlation.limits import DURATION_LIMIT_US
from correlation.timing.intervals.satisfaction import (
    _correct_depth_kernel,
    _find_depth_kernel,
    bounds,
    s_window,
    satisfied,
)
from correlation.timing.intervals.window import TimingWindow
from tests.oracle.intervals import is_satisfied
from tests.unit.correlation.timing.strategies import any_lengths, judged, thresholds, windows

CTS = ["0.0000000001", "0.1", "0.5", "0.7", "0.995", "1"]


def satisfied_range(a: int, b: int, window: TimingWindow) -> list[int]:
    span = range(-40, 41)
    return [s for s in span if is_satisfied((-a, 0), (s - b, s), judged(window))]


@pytest.mark.parametrize("ct", CTS)
@pytest.mark.parametrize(
    ("lower", "upper", "floor", "ceiling"),
    [
        (-12, 12, None, None),
        (-3, 3, None, None),
        (1, 2, None, None),
        (0, 0, None, None),
        (-12, 12, -4, 9),
        (None, 5, -15, None),
        (5, None, None, 15),
    ],
)
def test_p_swindow_is_one_interval_when_lengths_are_small(
    lower: int | None, upper: int | None, floor: int | None, ceiling: int | None, ct: str
) -> None:
    window = TimingWindow(lower, upper, floor, ceiling, Fraction(ct))
    for a, b in itertools.product(range(7), range(7)):
        low, high = (int(end[0]) for end in s_window(a, b, window))
        assert satisfied_range(a, b, window) == list(range(low, high + 1)), (a, b)


@given(a=any_lengths, b=any_lengths, window=windows(), inside=st.fractions(0, 1))
def test_p_swindow_ends_are_exact(a: int, b: int, window: TimingWindow, inside: Fraction) -> None:
    low, high = (int(end[0]) for end in s_window(a, b, window))
    assume(low <= high)
    middle = low + int(inside * (high - low))
    got = satisfied(a, b, [low - 1, low, middle, high, high + 1], window)
    assert got.tolist() == [False, True, True, True, False]


@given(a=any_lengths, b=any_lengths, window=windows())
def test_p_swindow_empty_means_unsatisfiable(a: int, b: int, window: TimingWindow) -> None:
    low, high = (int(end[0]) for end in s_window(a, b, window))
    if low > high:
        centre = (window.scalars().lower + window.scalars().upper - a + b) // 2
        tries = [centre, centre + 1, low, high, window.floor_us or 0, window.ceiling_us or 0]
        in_range = [s for s in tries if abs(s) < 2**61]
        assert not satisfied(a, b, in_range, window).any()


@given(a=any_lengths, b=any_lengths, window=windows())
def test_p_swindow_is_symmetric(a: int, b: int, window: TimingWindow) -> None:
    lower = window.lower_us if window.lower_us is not None else -DURATION_LIMIT_US
    upper = window.upper_us if window.upper_us is not None else DURATION_LIMIT_US
    low, high = s_window(a, b, TimingWindow(lower, upper, None, None, window.threshold))
    # An empty one says nothing.
    assert low[0] > high[0] or int(low[0] + high[0]) == lower + upper - a + b


@given(a=any_lengths, b=any_lengths, ct=thresholds, part=st.fractions(0, 1))
def test_p_depth_is_found_from_any_guess(a: int, b: int, ct: Fraction, part: Fraction) -> None:
    scalars = TimingWindow(0, 1, None, None, ct).scalars()
    guess = int(part * (a + b))
    assert int(_correct_depth_kernel(guess, a, b, scalars)) == _find_depth_kernel(a, b, scalars)


@given(a=any_lengths, b=any_lengths, more=st.integers(0, 2**40), window=windows())
def test_p_monotone_ends_fall_with_a_and_rise_with_b(
    a: int, b: int, more: int, window: TimingWindow
) -> None:
    a, b = min(a, 2**44), min(b, 2**44)
    assume(window.is_wide(a + more, b + more))
    lows, highs = s_window([a, a + more, a], [b, b, b + more], window)
    for ends in (lows, highs):
        assert ends[1] <= ends[0] <= ends[2]


def test_p_monotone_for_all_small_lengths() -> None:
    window = TimingWindow(-40, 40, None, None, Fraction(7, 10))
    a, b = np.mgrid[0:21, 0:21]
    low, high = (end.reshape(a.shape) for end in s_window(a.ravel(), b.ravel(), window))
    for ends in (low, high):
        assert (np.diff(ends, axis=0) <= 0).all()
        assert (np.diff(ends, axis=1) >= 0).all()


@given(
    window=windows(limit=40),
    a=st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted),
    b=st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted),
)
def test_p_keep_no_pair_is_satisfied_outside_the_bounds(
    window: TimingWindow, a: list[int], b: list[int]
) -> None:
    least, greatest = bounds(window, *a, *b)
    pairs = itertools.product(range(a[0], a[1] + 1), range(b[0], b[1] + 1))
    lengths_a, lengths_b = np.array(list(pairs)).T
    low, high = s_window(lengths_a, lengths_b, window)
    possible = low <= high
    if possible.any():
        assert least <= low[possible].min()
        assert greatest >= high[possible].max()
        if window.is_wide(a[1], b[1]):
            assert least == low.min()
            assert greatest == high.max()


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        # A mutual deadline of 1 s, certain: the whole interval has to fit (PTJ Theorem 4).
        ((-1000, 1000, None, None, "1"), (-980, 980)),
        # ct near 0: the support, max_B - max_A from lower - π_A + 1 to upper + π_B - 1.
        ((-1000, 1000, None, None, "0.0000000001"), (-1199, 1199)),
        ((None, 1000, -5000, None, "1"), (-5000, 980)),
        ((1000, None, None, 5000, "1"), (1020, 5000)),
        # Narrower than π: the one-sided quantiles still bound it.
        ((-100, 100, None, None, "0.5"), (-190, 190)),
    ],
)
def test_bounds_of_streams_20_to_200(
    window: tuple[int | None, int | None, int | None, int | None, str],
    expected: tuple[int, int],
) -> None:
    made = TimingWindow(*window[:4], Fraction(window[4]))
    assert bounds(made, 20, 200, 20, 200) == expected


@given(a=any_lengths, b=any_lengths, window=windows())
def test_bounds_are_finite(a: int, b: int, window: TimingWindow) -> None:
    shortest, longest = sorted((a, b))
    for end in bounds(window, shortest, longest, shortest, longest):
        assert abs(end) <= 4 * DURATION_LIMIT_US
