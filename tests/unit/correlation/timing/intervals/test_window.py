"""The window as a value: accepted input, its mirror, its width."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given

from correlation.errors import InvalidFieldError
from correlation.limits import DURATION_LIMIT_US
from correlation.timing.intervals.window import TimingWindow
from tests.unit.correlation.timing.strategies import windows

HALF = Fraction(1, 2)


@pytest.mark.parametrize(
    ("lower", "upper", "floor", "ceiling", "threshold", "field"),
    [
        (1, 0, None, None, HALF, "upper_us"),
        (0, 1, 1, 0, HALF, "ceiling_us"),
        (None, None, 0, 1, HALF, "lower_us"),
        (None, 1, None, 1, HALF, "floor_us"),
        (1, None, 1, None, HALF, "ceiling_us"),
        (0, DURATION_LIMIT_US + 1, None, None, HALF, "upper_us"),
        (-DURATION_LIMIT_US - 1, 0, None, None, HALF, "lower_us"),
        (0, 1, None, None, Fraction(0), "threshold"),
        (0, 1, None, None, Fraction(11, 10), "threshold"),
        (0, 1, None, None, Fraction(1, 3), "threshold"),
        (0, 1, None, None, Fraction(1, 10**11), "threshold"),
    ],
)
def test_window_refuses_field(
    lower: int | None,
    upper: int | None,
    floor: int | None,
    ceiling: int | None,
    threshold: Fraction,
    field: str,
) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        TimingWindow(lower, upper, floor, ceiling, threshold)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("window", "mirrored"),
    [
        (TimingWindow(-3, 3, None, None, HALF), TimingWindow(-3, 3, None, None, HALF)),
        (TimingWindow(1, 3, None, None, HALF), TimingWindow(-3, -1, None, None, HALF)),
        (TimingWindow(None, 3, -9, None, HALF), TimingWindow(-3, None, None, 9, HALF)),
    ],
)
def test_mirrored_swaps_the_roles(window: TimingWindow, mirrored: TimingWindow) -> None:
    assert window.mirrored() == mirrored


@given(window=windows())
def test_mirrored_twice_is_the_window(window: TimingWindow) -> None:
    assert window.mirrored().mirrored() == window


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [(-5, 5, True), (-5, 4, False), (None, -100, True), (100, None, True)],
)
def test_is_wide_compares_with_the_sum_of_lengths(
    lower: int | None, upper: int | None, *, expected: bool
) -> None:
    floor = -1000 if lower is None else None
    ceiling = 1000 if upper is None else None
    assert TimingWindow(lower, upper, floor, ceiling, HALF).is_wide(7, 3) is expected
