"""P-HISTOGRAM, over the rationals: printed examples, the oracle, ties, extreme times."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from correlation.limits import DURATION_LIMIT_US, LENGTH_LIMIT_US, TIME_LIMIT_US
from correlation.resources.histogram import WHOLE_MASS, Bucket, Histogram
from correlation.timing.histograms.exact import exact_probability, is_satisfied
from correlation.timing.intervals.window import TimingWindow
from tests.oracle import histograms as oracle
from tests.oracle import intervals
from tests.support.ptj import ge
from tests.unit.correlation.timing.histogram_strategies import (
    described,
    histograms,
    large_histograms,
    told,
)
from tests.unit.correlation.timing.strategies import PLACES, judged, windows

# PTJ Example 3.
PHI_1 = described((0, 20, "0.1"), (20, 30, "0.3"), (30, 40, "0.6"))
PHI_2 = described((0, 10, "0.15"), (10, 20, "0.3"), (20, 30, "0.4"), (30, 40, "0.15"))
H_3, H_2 = PHI_1.moved(170), PHI_2.moved(70)
ANY_CT = Fraction(1, 2)
# Where a histogram of any length ends within all of time.
_FARTHEST_US = TIME_LIMIT_US - LENGTH_LIMIT_US


@pytest.mark.parametrize(("d", "expected"), [(90, "0.925"), (100, "0.76875")])
def test_ge_of_ptj_examples(d: int, expected: str) -> None:
    assert ge(H_3.moved(-d), H_2) == Fraction(expected)
    assert oracle.ge(told(H_3.moved(-d)), told(H_2)) == Fraction(expected)
    # The same as a condition: B happens no sooner than d after A.
    window = TimingWindow(d, None, None, 10**6, ANY_CT)
    assert exact_probability(H_2, H_3, window) == Fraction(expected)


@pytest.mark.parametrize(
    ("i", "j", "expected"),
    [
        ((0, 0), (0, 0), "1"),  # closed
        ((0, 0), (1, 1), "0"),
        ((5, 5), (0, 10), "0.5"),
        ((0, 0), (0, 10), "0"),
        ((0, 10), (10, 10), "0"),
        ((0, 10), (7, 7), "0.3"),
        ((0, 10), (0, 10), "0.5"),
        ((0, 10), (5, 15), "0.125"),
        ((0, 10), (2, 4), "0.7"),
        ((5, 15), (0, 10), "0.875"),
        ((2, 4), (0, 10), "0.3"),
    ],
)
def test_ge_of_one_bucket_is_ptj_lemma_1(
    i: tuple[int, int], j: tuple[int, int], expected: str
) -> None:
    assert ge(Histogram.from_interval(*i), Histogram.from_interval(*j)) == Fraction(expected)


@given(a=histograms(), b=histograms(), window=windows(limit=40))
def test_p_histogram_probability_is_the_judges(
    a: Histogram, b: Histogram, window: TimingWindow
) -> None:
    assert exact_probability(a, b, window) == oracle.probability(told(a), told(b), judged(window))


@given(a=large_histograms, b=large_histograms, window=windows(), near=st.booleans())
def test_p_histogram_decision_is_the_judges_in_all_of_time(
    a: Histogram, b: Histogram, window: TimingWindow, *, near: bool
) -> None:
    if near:
        latest_us = a.latest_us + (window.lower_us or 0)
        b = b.moved(max(-_FARTHEST_US, min(latest_us, _FARTHEST_US)) - b.latest_us)
    assert is_satisfied(a, b, window) is oracle.is_satisfied(told(a), told(b), judged(window))


@given(
    a=st.tuples(st.integers(-20, 20), st.integers(0, 12)),
    b=st.tuples(st.integers(-20, 20), st.integers(0, 12)),
    window=windows(limit=40),
)
def test_p_histogram_of_one_bucket_is_the_interval(
    a: tuple[int, int], b: tuple[int, int], window: TimingWindow
) -> None:
    one, other = (a[0], a[0] + a[1]), (b[0], b[0] + b[1])
    expected = intervals.probability(one, other, judged(window))
    made = Histogram.from_interval(*one), Histogram.from_interval(*other)
    assert exact_probability(*made, window) == expected
    assert oracle.probability(told(made[0]), told(made[1]), judged(window)) == expected
    assert is_satisfied(*made, window) is intervals.is_satisfied(one, other, judged(window))


@given(a=histograms(), b=histograms(), window=windows(limit=40))
def test_probability_is_the_mirrored_one(a: Histogram, b: Histogram, window: TimingWindow) -> None:
    assert exact_probability(a, b, window) == exact_probability(b, a, window.mirrored())
    assert is_satisfied(a, b, window) is is_satisfied(b, a, window.mirrored())


@given(a=histograms(), b=histograms(), place=st.integers(0, 11))
def test_probability_does_not_feel_where_buckets_are_cut(
    a: Histogram, b: Histogram, place: int
) -> None:
    parts: list[Bucket] = []
    for lo, hi, mass in a.buckets:
        middle = lo + place * (hi - lo) // 12
        share = mass * (middle - lo)
        if lo < middle < hi and share % (hi - lo) == 0:
            share //= hi - lo
            parts += [Bucket(lo, middle, share), Bucket(middle, hi, mass - share)]
        else:
            parts.append(Bucket(lo, hi, mass))
    window = TimingWindow(-5, 3, None, None, ANY_CT)
    assert exact_probability(Histogram(tuple(parts)), b, window) == exact_probability(a, b, window)


def test_p_histogram_at_the_limits_of_time() -> None:
    first = described((-TIME_LIMIT_US, 9 - TIME_LIMIT_US, "1"))
    last = described((TIME_LIMIT_US - 5, TIME_LIMIT_US, "1"))
    window = TimingWindow(None, DURATION_LIMIT_US, -DURATION_LIMIT_US, None, ANY_CT)
    assert exact_probability(first, last, window) == 0
    assert exact_probability(last, first, window) == 1
    assert not is_satisfied(last, first, window)  # beyond the floor
    assert is_satisfied(last, last, window)


def test_p_histogram_decides_ties() -> None:
    """Thresholds that a pair of each example meets exactly, at least one pair in twenty."""
    source = random.Random(2006)  # noqa: S311 - no secret
    pairs = ties = 0
    for _ in range(4 * settings().max_examples):
        a, b = _draw_coarse(source), _draw_coarse(source)
        lower, upper = sorted(source.randint(-12, 12) for _ in range(2))
        reach = range(lower - 12, upper + 13)
        by_s = {
            s: oracle.probability(
                told(a), oracle.moved(told(b), s), (lower, upper, None, None, ANY_CT)
            )
            for s in reach
        }
        cts = [p for p in by_s.values() if p and PLACES % p.denominator == 0]
        window = TimingWindow(lower, upper, None, None, source.choice(cts or [ANY_CT]))
        for s, p in by_s.items():
            assert is_satisfied(a, b.moved(s), window) is (p >= window.threshold), (a, b, s)
            pairs += 1
            ties += p == window.threshold
    assert ties >= pairs / 20


def _draw_coarse(source: random.Random) -> Histogram:
    """Draw a shape of lengths 1 to 4 and masses in tenths: its probabilities are decimals."""
    if source.random() < 0.1:
        return Histogram.from_interval(0, 0)
    parts = [source.choice((1, 2, 2, 4)) for _ in range(source.randint(1, 3))]
    cuts = sorted(source.randint(0, 10) for _ in parts[1:])
    masses = [high - low for low, high in zip([0, *cuts], [*cuts, 10], strict=True)]
    edges = [sum(parts[:i]) for i in range(len(parts) + 1)]
    return Histogram(
        tuple(
            Bucket(lo, hi, mass * WHOLE_MASS // 10)
            for lo, hi, mass in zip(edges, edges[1:], masses, strict=False)
        )
    ).shape()
