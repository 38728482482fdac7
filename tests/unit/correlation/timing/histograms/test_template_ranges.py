"""P-TEMPLATES: verdicts by position between templates (PTJ Theorems 2, 3 and 4)."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from correlation.resources.histogram import Histogram
from correlation.timing.histograms.classes import Classes
from correlation.timing.histograms.exact import is_satisfied
from correlation.timing.histograms.integer_sets import Intervals, unite
from correlation.timing.histograms.pieces import CERTAIN, Pieces, split_by_windows
from correlation.timing.histograms.s_windows import s_windows
from correlation.timing.histograms.shapes import pack_shapes
from correlation.timing.histograms.table import WindowTable
from correlation.timing.histograms.template_ranges import _decide_template_kernel
from correlation.timing.intervals.regions import locate_regions
from correlation.timing.intervals.satisfaction import bounds
from correlation.timing.intervals.window import TimingWindow
from tests.support.ptj import stime
from tests.unit.correlation.timing.histogram_strategies import (
    described,
    histograms,
    large_histograms,
    wide_windows,
)
from tests.unit.correlation.timing.strategies import windows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from correlation.timing.histograms.template_ranges import GridColumns

several = st.lists(histograms(), min_size=1, max_size=3, unique_by=Histogram.shape)
spans = st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), max_size=5)
# PTJ Example 3.
PHI_1 = described((0, 20, "0.1"), (20, 30, "0.3"), (30, 40, "0.6"))
PHI_2 = described((0, 10, "0.15"), (10, 20, "0.3"), (20, 30, "0.4"), (30, 40, "0.15"))


def holds(intervals: Intervals, s: int) -> bool:
    return any(low <= s <= high for low, high in intervals)


def grid_of(
    us: Sequence[Histogram],
    vs: Sequence[Histogram],
    window: TimingWindow,
    *,
    base_is_a: bool = True,
) -> tuple[GridColumns, Pieces]:
    """Return the s-windows of all shapes, and the pieces of base events of either stream."""
    table = WindowTable(window, us, vs)
    table.settle(10**9)
    a, b = (Classes(pack_shapes(shapes), 0) for shapes in (us, vs))
    base, target, mine = (a, b, window) if base_is_a else (b, a, window.mirrored())
    found = table.view(base, target, base_is_a=base_is_a)
    assert found is not None
    assert found.is_complete
    return found.columns, split_by_windows(base, target, found.columns, mine.scalars())


def list_pieces(pieces: Pieces, i: int, *, certain: bool) -> Intervals:
    """Return the certain or the probed pieces of class i."""
    mine = slice(int(pieces.starts[i]), int(pieces.starts[i + 1]))
    columns = (column[mine].tolist() for column in (pieces.low, pieces.high, pieces.how))
    return unite(
        (low, high) for low, high, how in zip(*columns, strict=True) if (how == CERTAIN) == certain
    )


@given(us=several, vs=several, window=windows(limit=25), base_is_a=st.booleans())
def test_p_templates_decide_pairs_by_position(
    us: list[Histogram], vs: list[Histogram], window: TimingWindow, *, base_is_a: bool
) -> None:
    """Theorem 2."""
    grid, _ = grid_of(us, vs, window, base_is_a=base_is_a)
    for i, u in enumerate(us):
        for j, v in enumerate(vs):
            for s in range(-41, 42, 3):
                place = (i, j, s) if base_is_a else (j, i, -s)
                decided = bool(_decide_template_kernel(grid, *place))
                assert decided is is_satisfied(u.shape(), v.shape().moved(s), window)


@given(u=histograms(), vs=several, window=windows(limit=25), base_is_a=st.booleans())
def test_p_templates_split_targets(
    u: Histogram, vs: list[Histogram], window: TimingWindow, *, base_is_a: bool
) -> None:
    """Theorem 3: SR is satisfied whatever the target, beyond SR and PR nothing is."""
    us, others, sign = ([u], vs, 1) if base_is_a else (vs, [u], -1)
    _, pieces = grid_of(us, others, window, base_is_a=base_is_a)
    certain, probed = (list_pieces(pieces, 0, certain=it) for it in (True, False))
    cells = [s_windows(a, b, window) for a in us for b in others]
    for s in range(-45, 46):
        decisions = {
            is_satisfied(a.shape(), b.shape().moved(sign * s), window) for a in us for b in others
        }
        assert not (holds(certain, s) and holds(probed, s))
        if holds(certain, s):
            assert decisions == {True}
        elif not holds(probed, s):
            assert decisions == {False}
        elif all(len(it) == 1 for it in cells):
            # No tighter range is right, unless all of them lie apart.
            assert decisions == {True, False} or not certain


@given(u=large_histograms, vs=st.lists(large_histograms, min_size=1, max_size=3), d=st.data())
def test_p_templates_are_ptj_theorem_3_when_wide(
    u: Histogram, vs: list[Histogram], d: st.DataObject
) -> None:
    longest = u.length_us + max(v.length_us for v in vs)
    ct = Fraction(d.draw(st.integers(1, 19)), 20)
    window = TimingWindow(-longest, longest, None, None, ct)
    lows, highs = zip(*(s_windows(u, v, window)[0] for v in vs), strict=True)
    _, pieces = grid_of([u], vs, window)
    assert list_pieces(pieces, 0, certain=True) == ((max(lows), min(highs)),)
    assert list_pieces(pieces, 0, certain=False) == unite(
        [(min(lows), max(lows) - 1), (min(highs) + 1, max(highs))]
    )
    # RPR: the satisfaction times of the templates, from the base event's latest time.
    times = [stime(u.shape(), v.shape(), ct) + longest for v in vs]
    assert (min(times) // 1, max(times) // 1) == (min(highs), max(highs))


@given(us=several, vs=several, window=windows(limit=25))
def test_p_templates_no_pair_is_satisfied_outside_the_bounds(
    us: list[Histogram], vs: list[Histogram], window: TimingWindow
) -> None:
    """Theorem 4: and both bounds are reached."""
    _, pieces = grid_of(us, vs, window)
    least, greatest = pieces.reach
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
    us, vs = ([Histogram.from_interval(0, length) for length in sorted({*ends})] for ends in (a, b))
    _, pieces = grid_of(us, vs, window)
    assert pieces.reach == bounds(window, *a, *b)
    regions = locate_regions(window, a[0], *b)
    certain = max(regions.ll, regions.lh), min(regions.rl, regions.rh)
    assert list_pieces(pieces, 0, certain=True) == (certain,)


def test_ranges_of_ptj_examples() -> None:
    # P(T_B ≤ T_A + 100) ≥ 0.8 on the right, the mirror image on the left.
    window = TimingWindow(-100, 100, None, None, Fraction(8, 10))
    grid, pieces = grid_of([PHI_1, PHI_2], [PHI_1, PHI_2], window)
    assert list_pieces(pieces, 0, certain=True) == ((-79, 91),)
    assert list_pieces(pieces, 0, certain=False) == ((-91, -80), (92, 98))
    # stime(H_3, H_2, 0.8) = 208.59, 1.4 us before max(H_3): here 100 us later.
    decisions = [bool(_decide_template_kernel(grid, 0, 1, s)) for s in (-80, -79, 98, 99)]
    assert decisions == [False, True, True, False]
    assert pieces.reach == (-98, 98)


@given(one=spans)
def test_intervals_are_sets_of_integers(one: list[tuple[int, int]]) -> None:
    made = unite(one)
    everywhere = range(-10, 11)
    for s in everywhere:
        assert holds(made, s) is any(low <= s <= high for low, high in one)
    assert made == unite((s, s) for s in everywhere if holds(made, s))
