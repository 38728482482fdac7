"""P-TEMPLATES: what positions decide between templates (PTJ Theorems 2, 3 and 4)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.histogram import Histogram
from correlation.timing.histogram_exact import is_satisfied
from correlation.timing.intervals import Intervals, intersect, subtract, unite
from correlation.timing.regions import locate_regions
from correlation.timing.s_windows import stime
from correlation.timing.satisfaction import bounds
from correlation.timing.template_ranges import (
    Ranges,
    grid_bounds,
    make_grid,
    pack_grid,
    satisfied_templates,
    split_targets,
)
from correlation.timing.window import TimingWindow
from tests.unit.timing.histogram_strategies import (
    described,
    histograms,
    large_histograms,
    wide_windows,
)
from tests.unit.timing.strategies import windows

several = st.lists(histograms(), min_size=1, max_size=3)
spans = st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), max_size=5)
# PTJ Example 3.
PHI_1 = described((0, 20, "0.1"), (20, 30, "0.3"), (30, 40, "0.6"))
PHI_2 = described((0, 10, "0.15"), (10, 20, "0.3"), (20, 30, "0.4"), (30, 40, "0.15"))


def holds(intervals: Intervals, s: int) -> bool:
    return any(low <= s <= high for low, high in intervals)


@given(us=several, vs=several, window=windows(limit=25))
def test_p_templates_decide_pairs_by_position(
    us: list[Histogram], vs: list[Histogram], window: TimingWindow
) -> None:
    """Theorem 2."""
    grid = pack_grid(make_grid(us, vs, window))
    a, b, s = (x.ravel() for x in np.meshgrid(range(len(us)), range(len(vs)), range(-41, 42, 3)))
    got = satisfied_templates(grid, a, b, s)
    for i, j, x, is_inside in zip(a.tolist(), b.tolist(), s.tolist(), got.tolist(), strict=True):
        assert is_inside is is_satisfied(us[i].shape(), vs[j].shape().moved(x), window)


@given(u=histograms(), vs=several, window=windows(limit=25))
def test_p_templates_split_targets(u: Histogram, vs: list[Histogram], window: TimingWindow) -> None:
    """Theorem 3: SR is satisfied whatever the target, beyond SR and PR nothing is."""
    ranges = split_targets(make_grid([u], vs, window)[0])
    for s in range(-45, 46):
        decisions = {is_satisfied(u.shape(), v.shape().moved(s), window) for v in vs}
        assert holds(ranges.satisfied, s) is (decisions == {True})
        assert holds(ranges.probed, s) is (len(decisions) == 2)


@given(u=large_histograms, vs=st.lists(large_histograms, min_size=1, max_size=3), d=st.data())
def test_p_templates_are_ptj_theorem_3_when_wide(
    u: Histogram, vs: list[Histogram], d: st.DataObject
) -> None:
    longest = u.length_us + max(v.length_us for v in vs)
    ct = Fraction(d.draw(st.integers(1, 19)), 20)
    window = TimingWindow(-longest, longest, None, None, ct)
    lows, highs = zip(*(row[0] for row in make_grid([u], vs, window)[0]), strict=True)
    ranges = split_targets(make_grid([u], vs, window)[0])
    assert ranges.satisfied == ((max(lows), min(highs)),)
    assert ranges.probed == unite([(min(lows), max(lows) - 1), (min(highs) + 1, max(highs))])
    # RPR: the satisfaction times of the templates, from the base event's latest time.
    times = [stime(u.shape(), v.shape(), ct) + longest for v in vs]
    assert (min(times) // 1, max(times) // 1) == (min(highs), max(highs))


@given(us=several, vs=several, window=windows(limit=25))
def test_p_templates_no_pair_is_satisfied_outside_the_bounds(
    us: list[Histogram], vs: list[Histogram], window: TimingWindow
) -> None:
    """Theorem 4: and both bounds are reached."""
    least, greatest = grid_bounds(make_grid(us, vs, window))
    reached = [
        s
        for s in range(-45, 46)
        if any(is_satisfied(u.shape(), v.shape().moved(s), window) for u in us for v in vs)
    ]
    if reached:
        assert (least, greatest) == (reached[0], reached[-1])
    else:
        assert least > greatest


@given(
    a=st.tuples(st.integers(0, 40), st.integers(0, 40)).map(sorted),
    b=st.tuples(st.integers(0, 40), st.integers(0, 40)).map(sorted),
    data=st.data(),
)
def test_p_templates_of_intervals_are_the_regions(
    a: list[int], b: list[int], data: st.DataObject
) -> None:
    """Streams of intervals of two lengths: the extremes of all lengths between (P-MONOTONE)."""
    window = data.draw(wide_windows(a[1] + b[1]))
    us, vs = ([Histogram.from_interval(0, length) for length in ends] for ends in (a, b))
    grid = make_grid(us, vs, window)
    least, greatest = bounds(window, *a, *b)
    assert grid_bounds(grid) == (least, greatest)
    regions = locate_regions(window, a[0], *b)
    certain = max(regions.ll, regions.lh), min(regions.rl, regions.rh)
    assert split_targets(grid[0]).satisfied == (certain,)


def test_split_targets_of_ptj_examples() -> None:
    # P(T_B ≤ T_A + 100) ≥ 0.8 on the right, the mirror image on the left.
    window = TimingWindow(-100, 100, None, None, Fraction(8, 10))
    grid = make_grid([PHI_1, PHI_2], [PHI_1, PHI_2], window)
    assert split_targets(grid[0]) == Ranges(((-79, 91),), ((-91, -80), (92, 98)))
    # stime(H_3, H_2, 0.8) = 208.59, 1.4 us before max(H_3): here 100 us later.
    assert grid[0][1] == ((-79, 98),)
    assert grid_bounds(grid) == (-98, 98)


def test_grid_of_no_shapes_is_empty() -> None:
    window = TimingWindow(-100, 100, None, None, Fraction(8, 10))
    assert grid_bounds(make_grid([], [], window)) == (1, 0)
    packed = pack_grid(make_grid([], [], window))
    assert satisfied_templates(packed, [], [], []).tolist() == []


@pytest.mark.parametrize(("a", "b", "name"), [(2, 0, "index_a"), (0, 1, "index_b")])
def test_templates_outside_the_grid_are_refused(a: int, b: int, name: str) -> None:
    window = TimingWindow(-100, 100, None, None, Fraction(8, 10))
    packed = pack_grid(make_grid([PHI_1, PHI_2], [PHI_2], window))
    with pytest.raises(ValueError, match=name):
        satisfied_templates(packed, a, b, 0)


@given(one=spans, other=spans)
def test_intervals_are_sets_of_integers(
    one: list[tuple[int, int]], other: list[tuple[int, int]]
) -> None:
    first, second = unite(one), unite(other)
    everywhere = range(-10, 11)
    for s in everywhere:
        assert holds(first, s) is any(low <= s <= high for low, high in one)
        assert holds(intersect(first, second), s) is (holds(first, s) and holds(second, s))
        assert holds(subtract(first, second), s) is (holds(first, s) and not holds(second, s))
    for made in (first, intersect(first, second), subtract(first, second)):
        assert made == unite((s, s) for s in everywhere if holds(made, s))
