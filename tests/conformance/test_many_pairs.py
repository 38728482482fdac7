"""Decisions of many pairs against the judge: a million and more with HYPOTHESIS_PROFILE=deep.

Each example is an array of random pairs on a coarse grid, so that ties are common: 500 of them,
25,000 a run in the profile fast, 1,000,000 in deep.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.timing.histogram_filter import satisfied_shapes
from correlation.timing.satisfaction import satisfied
from correlation.timing.window import TimingWindow
from tests.oracle import histograms, intervals
from tests.support.shaped import draw_histogram, side_of_events, told
from tests.unit.timing.strategies import judged

PAIRS = 500
# How many shapes the pairs of an example are made of.
SHAPES = 12


def draw_window(rng: np.random.Generator, scale: int) -> TimingWindow:
    """Draw a window of any kind, its ends on the grid, its threshold coarse or fine."""
    lower, upper = sorted(int(k) * scale for k in rng.integers(-20, 21, 2))
    floor, ceiling = sorted(int(k) * scale for k in rng.integers(-25, 26, 2))
    places = int(rng.choice([2, 4, 10, 100, 10**10]))
    threshold = Fraction(int(rng.integers(1, places + 1)), places)
    kinds: list[tuple[int | None, int | None, int | None, int | None]] = [
        (lower, upper, None, None),
        (lower, upper, floor, ceiling),
        (None, upper, floor, None),
        (lower, None, None, ceiling),
    ]
    return TimingWindow(*kinds[int(rng.integers(4))], threshold)


@pytest.mark.timeout(3600)  # a million pairs of rationals
@given(seed=st.integers(0, 2**63), scale=st.sampled_from([1, 10, 1000, 2**20, 2**40]))
def test_many_pairs_of_intervals_are_decided_as_the_judge_does(seed: int, scale: int) -> None:
    rng = np.random.default_rng(seed)
    window = draw_window(rng, scale)
    lengths = rng.integers(0, 13, (2, PAIRS)) * scale + rng.integers(0, 2, (2, PAIRS))
    s = rng.integers(-25, 26, PAIRS) * scale + rng.integers(0, 2, PAIRS)
    found = satisfied(lengths[0], lengths[1], s, window).tolist()
    asked = judged(window)
    columns = zip(*lengths.tolist(), s.tolist(), strict=True)
    assert found == [intervals.is_satisfied((-a, 0), (t - b, t), asked) for a, b, t in columns]


@pytest.mark.timeout(3600)  # a million pairs of rationals
@given(seed=st.integers(0, 2**63), scale=st.sampled_from([1, 10, 1000, 2**20, 2**40]))
def test_many_pairs_of_shapes_are_decided_as_the_judge_does(seed: int, scale: int) -> None:
    rng = np.random.default_rng(seed)
    window = draw_window(rng, scale)
    parts = int(rng.choice([4, 10, 20]))
    shapes = [draw_histogram(rng, range(13), parts, scale) for _ in range(SHAPES)]
    side = side_of_events(shapes)
    rows = rng.integers(0, SHAPES, (2, PAIRS))
    s = rng.integers(-25, 26, PAIRS) * scale
    packed = side.classes.shapes
    found = satisfied_shapes(packed, side.codes[rows[0]], packed, side.codes[rows[1]], s, window)
    asked = judged(window)
    judges = [told(it) for it in shapes]
    columns = zip(*rows.tolist(), s.tolist(), strict=True)
    assert found.tolist() == [
        histograms.is_satisfied(judges[a], histograms.moved(judges[b], t), asked)
        for a, b, t in columns
    ]
