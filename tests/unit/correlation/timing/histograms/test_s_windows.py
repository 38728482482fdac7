"""P-SWINDOWS: the range of s where a pair of shapes is satisfied, and PTJ's satisfaction time."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from correlation.resources.histogram import Histogram
from correlation.timing.histograms.exact import is_satisfied, to_steps
from correlation.timing.histograms.integer_sets import unite
from correlation.timing.histograms.s_windows import _solve, _sweep, s_windows
from correlation.timing.intervals.satisfaction import s_window
from correlation.timing.intervals.window import TimingWindow
from tests.oracle import histograms as oracle
from tests.support.ptj import stime
from tests.unit.correlation.timing.histogram_strategies import (
    described,
    histograms,
    large_histograms,
    told,
    wide_windows,
)
from tests.unit.correlation.timing.strategies import (
    PLACES,
    any_lengths,
    judged,
    thresholds,
    windows,
)

# PTJ Example 3.
PHI_1 = described((0, 20, "0.1"), (20, 30, "0.3"), (30, 40, "0.6"))
PHI_2 = described((0, 10, "0.15"), (10, 20, "0.3"), (20, 30, "0.4"), (30, 40, "0.15"))
H_3, H_2 = PHI_1.moved(170), PHI_2.moved(70)
# Two modes far apart: a narrow window reaches one of them at a time.
TWO_MODES = described((-100, -90, "0.5"), (-90, -10, "0"), (-10, 0, "0.5"))
POINT = Histogram.from_interval(0, 0)


def judged_windows(u: Histogram, v: Histogram, window: TimingWindow) -> list[int]:
    """All satisfied s, every s in reach looked at."""
    ends = (window.lower_us, window.upper_us, window.floor_us, window.ceiling_us)
    places = [end for end in ends if end is not None]
    reach = range(min(places) - u.length_us - 2, max(places) + v.length_us + 3)
    a, b = told(u.shape()), told(v.shape())
    return [s for s in reach if oracle.is_satisfied(a, oracle.moved(b, s), judged(window))]


def listed(spans: tuple[tuple[int, int], ...]) -> list[int]:
    return [s for low, high in spans for s in range(low, high + 1)]


@given(u=histograms(), v=histograms(), window=windows(limit=25))
def test_p_swindows_are_the_judges(u: Histogram, v: Histogram, window: TimingWindow) -> None:
    got = s_windows(u, v, window)
    assert listed(got) == judged_windows(u, v, window)
    assert got == unite(got)


@given(u=histograms(), v=histograms(), ends=st.tuples(st.integers(-9, 9), st.integers(0, 9)))
def test_p_swindows_are_the_judges_on_ties(
    u: Histogram, v: Histogram, ends: tuple[int, int]
) -> None:
    """Every threshold that some s meets exactly."""
    lower, upper = ends[0], ends[0] + ends[1]
    a, b = told(u.shape()), told(v.shape())
    plain = (lower, upper, None, None, Fraction(1))
    reach = range(lower - 13, upper + 14)
    by_s = {s: oracle.probability(a, oracle.moved(b, s), plain) for s in reach}
    cts = {p for p in by_s.values() if p and PLACES % p.denominator == 0}
    assume(cts)
    for ct in sorted(cts)[:8]:
        window = TimingWindow(lower, upper, None, None, ct)
        assert listed(s_windows(u, v, window)) == [s for s, p in by_s.items() if p >= ct]


@given(u=large_histograms, v=large_histograms, window=windows(), inside=st.fractions(0, 1))
def test_p_swindows_ends_are_exact(
    u: Histogram, v: Histogram, window: TimingWindow, inside: Fraction
) -> None:
    got = s_windows(u, v, window)
    shape_u, shape_v = u.shape(), v.shape()
    for low, high in got:
        for s in (low, low + int(inside * (high - low)), high):
            assert is_satisfied(shape_u, shape_v.moved(s), window)
        assert not is_satisfied(shape_u, shape_v.moved(low - 1), window)
        assert not is_satisfied(shape_u, shape_v.moved(high + 1), window)
    for (_, high), (low, _) in itertools.pairwise(got):
        middle = high + 1 + int(inside * (low - high - 2))
        assert not is_satisfied(shape_u, shape_v.moved(middle), window)


@given(u=large_histograms, v=large_histograms, window=windows(limit=10**6), part=st.fractions(0, 1))
def test_p_swindows_hold_every_satisfied_s(
    u: Histogram, v: Histogram, window: TimingWindow, part: Fraction
) -> None:
    spans = s_windows(u, v, window)
    low = -u.length_us - 10**6
    s = low + int(part * (u.length_us + v.length_us + 2 * 10**6))
    expected = is_satisfied(u.shape(), v.shape().moved(s), window)
    assert any(low <= s <= high for low, high in spans) is expected


@given(u=large_histograms, v=large_histograms, data=st.data())
def test_p_swindows_are_one_interval_when_wide(
    u: Histogram, v: Histogram, data: st.DataObject
) -> None:
    window = data.draw(wide_windows(u.length_us + v.length_us))
    ((low, high),) = s_windows(u, v, window)
    assert low <= high


@given(u=histograms(longest=10**6, most=6), v=histograms(longest=10**6, most=6), data=st.data())
def test_p_swindows_sweep_finds_what_bisection_finds(
    u: Histogram, v: Histogram, data: st.DataObject
) -> None:
    """Two ways to the s-window of a wide window: they share no code but the steps."""
    assume(u.length_us + v.length_us > 0)
    ct = data.draw(thresholds)
    lower = data.draw(st.integers(-(10**6), 10**6))
    more = data.draw(st.one_of(st.just(0), st.integers(0, 10**6)))
    window = TimingWindow(lower, lower + u.length_us + v.length_us + more, None, None, ct)
    swept = unite(_sweep(to_steps(u.shape()), to_steps(v.shape()), window.scalars()))
    assert swept == s_windows(u, v, window)


@given(a=any_lengths, b=any_lengths, window=windows())
def test_p_swindows_of_intervals_are_those_of_lengths(a: int, b: int, window: TimingWindow) -> None:
    low, high = (int(end[0]) for end in s_window(a, b, window))
    got = s_windows(Histogram.from_interval(0, a), Histogram.from_interval(0, b), window)
    assert got == unite([(low, high)])


@given(u=large_histograms, v=large_histograms, window=windows())
def test_s_windows_are_the_mirrored_ones(u: Histogram, v: Histogram, window: TimingWindow) -> None:
    mirrored = s_windows(v, u, window.mirrored())
    assert s_windows(u, v, window) == tuple((-high, -low) for low, high in reversed(mirrored))


@pytest.mark.parametrize(
    ("u", "v", "window", "expected"),
    [
        # Only one mode at a time, each with half of the probability.
        (POINT, TWO_MODES, (-10, 10, "0.5"), ((0, 10), (90, 100))),
        (TWO_MODES, POINT, (-10, 10, "0.5"), ((-100, -90), (-10, 0))),
        (POINT, TWO_MODES, (-10, 10, "0.51"), ()),
        (POINT, TWO_MODES, (-10, 10, "0.25"), ((-5, 15), (85, 105))),
        # Wide enough for both modes: one interval.
        (POINT, TWO_MODES, (-50, 50, "0.5"), ((-40, 140),)),
        (POINT, TWO_MODES, (-50, 50, "1"), ((50, 50),)),
        (TWO_MODES, TWO_MODES, (-10, 10, "0.25"), ((-90, -90), (-10, 10), (90, 90))),
        (TWO_MODES, TWO_MODES, (-10, 10, "0.4"), ((-6, 6),)),
        (POINT, POINT, (-10, 10, "1"), ((-10, 10),)),
        (POINT, POINT, (3, 3, "0.0000000001"), ((3, 3),)),
    ],
)
def test_s_windows_of_two_modes_have_gaps(
    u: Histogram,
    v: Histogram,
    window: tuple[int, int, str],
    expected: tuple[tuple[int, int], ...],
) -> None:
    made = TimingWindow(window[0], window[1], None, None, Fraction(window[2]))
    assert listed(expected) == judged_windows(u, v, made)
    assert s_windows(u, v, made) == expected


def test_s_windows_are_cut_by_floor_and_ceiling() -> None:
    cut = TimingWindow(-10, 10, 5, 94, Fraction(1, 2))
    assert s_windows(POINT, TWO_MODES, cut) == ((5, 10), (90, 94))
    one_sided = TimingWindow(None, 10, -30, None, Fraction(1, 2))
    assert s_windows(POINT, TWO_MODES, one_sided) == ((-30, 100),)


@given(
    curve=st.integers(-9, 9),
    slope=st.integers(-60, 60),
    value=st.integers(-400, 400),
    width=st.integers(1, 30),
    far=st.sampled_from([1, 10**60]),
)
def test_p_swindows_roots_are_rounded_to_the_satisfied_side(
    curve: int, slope: int, value: int, width: int, far: int
) -> None:
    expected = [t for t in range(width + 1) if curve * t * t + slope * t + value >= 0]
    got = unite(_solve(curve * far, slope * far, value * far, width))
    assert listed(got) == expected


def test_stime_of_ptj_example_4() -> None:
    got = stime(H_3, H_2, Fraction("0.8"))
    # The paper's quadratic: -0.0007625 y² + 0.236 y - 17.315 = 0.8, t = y - 70 + 110.
    y = got - 40
    assert 0 <= Fraction("-0.0007625") * y**2 + Fraction("0.236") * y - Fraction("18.115") < 1e-10
    assert got == Fraction("208.5907854727")
    assert round(float(got), 2) == 208.59


@pytest.mark.parametrize(
    ("delta", "expected"), [("0.925", "200"), ("0.76875", "210"), ("1", "170"), ("0.5", None)]
)
def test_stime_is_where_ge_meets_delta(delta: str, expected: str | None) -> None:
    """PTJ Example 4: P(H_3 - 90 ≥ H_2) = 0.925, and t = 90 + max(H_2)."""
    ct = Fraction(delta)
    got = stime(H_3, H_2, ct)
    if expected is not None:
        assert got == Fraction(expected)
    # In units of 10**-10 us the answer is the last that meets δ.
    unit = 10**10
    fine_3 = [(lo * unit, hi * unit, p) for lo, hi, p in told(H_3)]
    fine_2 = [(lo * unit, hi * unit, p) for lo, hi, p in told(H_2)]
    t = int(got * unit)
    assert oracle.ge(oracle.moved(fine_3, 110 * unit - t), fine_2) >= ct
    assert oracle.ge(oracle.moved(fine_3, 110 * unit - t - 1), fine_2) < ct


@given(
    i=large_histograms,
    j=large_histograms,
    delta=st.integers(1, 20).map(lambda n: Fraction(n, 20)),
    by=st.integers(-1000, 1000),
)
def test_stime_is_the_end_of_an_s_window(
    i: Histogram, j: Histogram, delta: Fraction, by: int
) -> None:
    """Theorem 2: max_j ≤ stime + d iff satisfied; Equation 7: it moves with H_i."""
    window = TimingWindow(None, 0, -(2**50), None, delta)
    ((_, high),) = s_windows(i, j, window)
    got = stime(i, j, delta)
    assert got // 1 == i.latest_us + high
    assert stime(i.moved(by), j, delta) == got + by
