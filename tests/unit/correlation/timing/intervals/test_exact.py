"""P-EXACT: decisions equal those of the rationals, including ties, extremes and points."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.limits import DURATION_LIMIT_US, LENGTH_LIMIT_US
from correlation.timing.intervals.exact import (
    ROUNDING_BOUND,
    _compare_exactly_kernel,
    _measure_cut_kernel,
    _square_cut_kernel,
)
from correlation.timing.intervals.satisfaction import satisfied
from correlation.timing.intervals.window import TimingWindow
from tests.oracle.intervals import is_satisfied
from tests.unit.correlation.timing.strategies import (
    PLACES,
    any_lengths,
    judged,
    thresholds,
    windows,
)


def decide(a: int, b: int, s: int, window: TimingWindow) -> bool:
    return bool(satisfied(a, b, s, window)[0])


def judge(a: int, b: int, s: int, window: TimingWindow) -> bool:
    return is_satisfied((-a, 0), (s - b, s), judged(window))


def cut(w: int, a: int, b: int) -> int:
    """K(w), as docs/proofs.md defines it, in unbounded integers; 0 < a, b."""
    corners = ((w, 1), (w - a, -1), (w - b, -1), (w - a - b, 1))
    return sum(sign * max(z, 0) ** 2 for z, sign in corners)


@pytest.mark.parametrize("threshold", ["0.1", "0.25", "0.5", "0.6", "0.98", "1"])
@pytest.mark.parametrize(("lower", "upper"), [(-7, 7), (-2, 1), (0, 0), (3, 4), (None, 2)])
def test_p_exact_for_all_small_pairs(lower: int | None, upper: int, threshold: str) -> None:
    window = TimingWindow(lower, upper, -11, None, Fraction(threshold))
    cases = list(itertools.product(range(5), range(5), range(-12, 13)))
    lengths_a, lengths_b, differences = np.array(cases).T
    got = satisfied(lengths_a, lengths_b, differences, window).tolist()
    assert got == [judge(*case, window) for case in cases]


@given(a=any_lengths, b=any_lengths, window=windows(), near=st.integers(-3, 3), data=st.data())
def test_p_exact_for_all_sizes(
    a: int, b: int, window: TimingWindow, near: int, data: st.DataObject
) -> None:
    ends = [e for e in (window.lower_us, window.upper_us) if e is not None]
    corner = data.draw(st.sampled_from([e + d for e in ends for d in (-a, b, b - a, 0)]))
    s = data.draw(st.one_of(st.just(corner + near), st.integers(corner - a - b, corner + a + b)))
    assert decide(a, b, s, window) is judge(a, b, s, window)


@given(
    scale=st.integers(1, LENGTH_LIMIT_US // 10**4),
    depth=st.integers(0, 2 * 10**4 - 1),
    off=st.integers(-1, 1),
    upper_side=st.booleans(),
)
def test_p_exact_on_ties_of_equal_lengths(
    scale: int, depth: int, off: int, *, upper_side: bool
) -> None:
    """Lengths 10**4 scale, cut to a depth whose probability is a decimal: P = ct exactly."""
    length = 10**4 * scale
    tie = cut(depth, 10**4, 10**4)
    window = TimingWindow(
        -DURATION_LIMIT_US, DURATION_LIMIT_US, None, None, 1 - Fraction(tie, 2 * 10**8)
    )
    s = DURATION_LIMIT_US - length + depth * scale + off
    if not upper_side:
        s = -s
    assert decide(length, length, s, window) is (off <= 0)


@given(scale=st.integers(1, LENGTH_LIMIT_US // PLACES), lost=st.integers(1, PLACES - 1))
def test_p_exact_on_ties_of_unequal_lengths(scale: int, lost: int) -> None:
    """The linear branch: one length is tiny, the probability falls by 1 / M a step."""
    long, short = PLACES * scale, 2
    depth = lost * scale + 1
    window = TimingWindow(
        None, DURATION_LIMIT_US, -DURATION_LIMIT_US, None, 1 - Fraction(lost, PLACES)
    )
    edge = DURATION_LIMIT_US - long + depth
    assert decide(long, short, edge, window)
    assert decide(long, short, edge + 1, window) is judge(long, short, edge + 1, window)
    assert not decide(long, short, edge + scale + 2, window)


@given(a=any_lengths, b=any_lengths, s=st.integers(-(2**51), 2**51), window=windows())
def test_decision_is_the_mirrored_one(a: int, b: int, s: int, window: TimingWindow) -> None:
    assert decide(a, b, s, window) is decide(b, a, -s, window.mirrored())


@pytest.mark.parametrize(
    ("a", "b", "s", "expected"),
    [
        (0, 0, -5, True),  # closed at both ends
        (0, 0, 5, True),
        (0, 0, -6, False),
        (0, 0, 6, False),
        (10, 0, -10, True),  # T_A in [-10, 0], T_B = -10: half of A lies within
        (10, 0, -11, False),
        (10, 0, 0, True),
        (0, 10, 10, True),
        (0, 10, 11, False),
    ],
)
def test_decision_of_points_is_closed(a: int, b: int, s: int, *, expected: bool) -> None:
    assert decide(a, b, s, TimingWindow(-5, 5, None, None, Fraction(1, 2))) is expected


@given(a=any_lengths, b=any_lengths, part=st.fractions(0, 1), off=st.integers(-2, 2))
def test_p_exact_rounding_bound(a: int, b: int, part: Fraction, off: int) -> None:
    """Each K is off by at most 5 of the 16 half-units in the last place that the filter allows."""
    small, large = sorted((max(a, 1), max(b, 1)))
    w = int(part * (small + large)) + off
    got = _measure_cut_kernel(w, small, large, 2.0 * float(small) * float(large))
    exact = cut(w, small, large)
    assert abs(Fraction(got) - exact) <= Fraction(ROUNDING_BOUND) * 5 / 16 * exact


@given(
    a=st.integers(1, 2**25),
    b=st.integers(1, 2**25),
    part=st.fractions(0, 1),
    off=st.integers(-2, 2),
)
def test_p_exact_squares_are_not_rounded(a: int, b: int, part: Fraction, off: int) -> None:
    small, large = sorted((a, b))
    w = int(part * (small + large)) + off
    assert Fraction(_square_cut_kernel(w, small, large)) == cut(w, small, large)
    assert Fraction(_square_cut_kernel(2**25, 2**25, 2**25)) == 2**50
    assert Fraction(_square_cut_kernel(2**26, 2**25, 2**25)) == 2**51


@given(
    a=any_lengths, b=any_lengths, u=st.integers(-4, 2**46), v=st.integers(-4, 2**46), ct=thresholds
)
def test_p_exact_integers(a: int, b: int, u: int, v: int, ct: Fraction) -> None:
    small, large = sorted((max(a, 1), max(b, 1)))
    window = TimingWindow(0, 1, None, None, ct)
    lost = cut(u, small, large) + cut(v, small, large)
    expected = lost <= (1 - ct) * 2 * small * large
    assert bool(_compare_exactly_kernel(u, v, small, large, window.scalars())) is expected


def test_p_exact_is_used_where_float_cannot_tell() -> None:
    """2**45 long, ct with ten decimals: neighbours in s differ by less than the filter sees."""
    length = LENGTH_LIMIT_US
    window = TimingWindow(-(2**50), 2**50, None, None, Fraction(PLACES - 1, PLACES))
    s = np.arange(-(2**50) + length - 500_000, -(2**50) + length - 497_000, dtype=np.int64)
    sample = s[:: len(s) // 50]
    expected = [judge(length, length, int(x), window) for x in sample]
    assert satisfied(length, length, sample, window).tolist() == expected


@pytest.mark.parametrize("length", [0, 1, LENGTH_LIMIT_US])
@pytest.mark.parametrize("s", [-(2**61), 2**61])
@pytest.mark.parametrize(
    ("lower", "upper", "floor", "ceiling"),
    [
        (-DURATION_LIMIT_US, DURATION_LIMIT_US, None, None),
        (None, -DURATION_LIMIT_US, -DURATION_LIMIT_US, None),
        (DURATION_LIMIT_US, None, None, DURATION_LIMIT_US),
    ],
)
def test_p_range_at_the_limits_of_time(
    lower: int | None,
    upper: int | None,
    floor: int | None,
    ceiling: int | None,
    s: int,
    length: int,
) -> None:
    window = TimingWindow(lower, upper, floor, ceiling, Fraction(1, PLACES))
    assert not decide(length, length, s, window)
    assert not decide(0, length, s, window)
