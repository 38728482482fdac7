"""Reported probabilities: published check values, points, closeness to the rationals."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.timing.intervals.probability import probability
from correlation.timing.intervals.window import TimingWindow
from tests.oracle import intervals
from tests.unit.correlation.timing.strategies import any_lengths, judged, windows

# PTJ Examples 3 and 4: the histograms, bucket by bucket.
H2 = [((70, 80), 0.15), ((80, 90), 0.3), ((90, 100), 0.4), ((100, 110), 0.15)]
H3 = [((170, 190), 0.1), ((190, 200), 0.3), ((200, 210), 0.6)]


@pytest.mark.parametrize(("shift", "expected"), [(90, 0.925), (100, 0.76875)])
def test_probability_of_histograms_is_ptj_examples_when_summed(shift: int, expected: float) -> None:
    window = TimingWindow(shift, None, None, 10**6, Fraction(1, 2))
    total = sum(p * q * probability(*a, *b, window)[0] for a, p in H2 for b, q in H3)
    assert total == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ((0, 10), (0, 10), 0.75),  # |T_A - T_B| ≤ 5 of two equal tens: 1 - (1/2)²
        ((0, 10), (5, 15), 0.5),
        ((0, 10), (15, 25), 0.0),
        ((0, 0), (5, 5), 1.0),
        ((0, 0), (6, 6), 0.0),
        ((0, 0), (0, 10), 0.5),
        ((0, 10), (0, 0), 0.5),
        ((0, 10), (-2, -2), 0.3),
        ((3, 4), (3, 4), 1.0),
    ],
)
def test_probability_of_mutual_deadline(
    a: tuple[int, int], b: tuple[int, int], expected: float
) -> None:
    window = TimingWindow(-5, 5, None, None, Fraction(1, 2))
    assert probability(*a, *b, window)[0] == pytest.approx(expected, abs=1e-15)


@given(
    a=any_lengths,
    b=any_lengths,
    start=st.sampled_from([0, 2**60 - 2**52, -(2**60) + 2**52]),
    s=st.integers(-(2**51), 2**51),
    window=windows(),
)
def test_probability_is_close_to_the_rational_one(
    a: int, b: int, start: int, s: int, window: TimingWindow
) -> None:
    events = (start - a, start), (start + s - b, start + s)
    got = probability(*events[0], *events[1], window)[0]
    exact = intervals.probability(*events, judged(window))
    assert 0 <= got <= 1
    assert abs(Fraction(float(got)) - exact) <= Fraction(1, 2**50)


def test_probability_broadcasts_over_pairs() -> None:
    window = TimingWindow(-5, 5, None, None, Fraction(1, 2))
    got = probability(np.zeros(3, np.int64), 0, [-6, -5, 0], [-6, -5, 10], window)
    assert got.tolist() == [0.0, 1.0, 0.5]
