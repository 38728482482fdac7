"""P-STOCHASTIC-SHIFT and P-STOCHASTIC-LOOKUP: base events that decide for other base events."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from correlation.resources.histogram import Histogram
from correlation.timing.histograms.s_windows import s_windows
from correlation.timing.histograms.stochastic_order import shift, tabulate_shifts
from correlation.timing.intervals.window import TimingWindow
from tests.oracle import histograms as oracle
from tests.unit.correlation.timing.histogram_strategies import (
    described,
    histograms,
    large_histograms,
    told,
    wide_windows,
)
from tests.unit.correlation.timing.strategies import judged, windows


@given(u=histograms(), v=histograms())
def test_p_stochastic_shift_is_the_min_that_dominates(u: Histogram, v: Histogram) -> None:
    shape_u, shape_v = told(u.shape()), told(v.shape())
    dominating = [
        by for by in range(-14, 15) if oracle.dominates(oracle.moved(shape_u, by), shape_v)
    ]
    assert dominating == list(range(shift(u, v), 15))


@given(u=large_histograms, v=large_histograms)
def test_p_stochastic_shift_is_exact_for_all_lengths(u: Histogram, v: Histogram) -> None:
    by = shift(u, v)
    shape_u, shape_v = told(u.shape()), told(v.shape())
    assert oracle.dominates(oracle.moved(shape_u, by), shape_v)
    assert not oracle.dominates(oracle.moved(shape_u, by - 1), shape_v)


@given(u=large_histograms, v=large_histograms, w=large_histograms)
def test_shift_orders_shapes(u: Histogram, v: Histogram, w: Histogram) -> None:
    assert shift(u, u) == 0
    assert max(0, u.length_us - v.length_us) <= shift(u, v) <= u.length_us
    assert shift(u, w) <= shift(u, v) + shift(v, w)


@pytest.mark.parametrize(
    ("u", "v", "expected"),
    [
        # Intervals: both ends have to be ordered (LL10 Corollary 2).
        (described((0, 20, "1")), described((0, 200, "1")), 0),
        (described((0, 200, "1")), described((0, 20, "1")), 180),
        (Histogram.from_interval(5, 5), described((0, 20, "1")), 0),
        (described((0, 20, "1")), Histogram.from_interval(5, 5), 20),
        # A gap: just above one half v has left its first mode and u has not.
        (
            described((0, 10, "0.6"), (10, 90, "0"), (90, 100, "0.4")),
            described((0, 10, "0.5"), (10, 90, "0"), (90, 100, "0.5")),
            # Q_v(0.5+) = 90, Q_u(0.5) = 8 + 1/3.
            82,
        ),
        (described((0, 20, "0.5"), (20, 30, "0.5")), described((0, 30, "1")), 0),
        (described((0, 30, "1")), described((0, 22, "0.5"), (22, 30, "0.5")), 7),
        # Q_v(0.65) - Q_u(0.65) = 2.5.
        (described((0, 30, "1")), described((0, 22, "0.65"), (22, 30, "0.35")), 3),
    ],
)
def test_shift_of_shapes(u: Histogram, v: Histogram, expected: int) -> None:
    assert shift(u, v) == expected
    # Wherever they lie.
    assert shift(u.moved(1000), v.moved(-1000)) == expected


def test_tabulate_shifts_has_a_row_a_shape() -> None:
    shapes = [Histogram.from_interval(0, length) for length in (20, 50, 200)]
    assert tabulate_shifts(shapes, shapes[:2]).tolist() == [[0, 0], [30, 0], [180, 150]]
    assert tabulate_shifts([], shapes).shape == (0, 3)


@given(
    base=histograms(),
    satisfied_base=histograms(),
    target=histograms(),
    window=st.one_of(wide_windows(24), windows(limit=30)),
    more=st.integers(0, 6),
    inside=st.integers(0, 12),
    left=st.booleans(),
)
def test_p_stochastic_lookup_decides_dominated_base_events(
    base: Histogram,
    satisfied_base: Histogram,
    target: Histogram,
    window: TimingWindow,
    more: int,
    inside: int,
    *,
    left: bool,
) -> None:
    """(e', t) satisfied, e at or before e' (left; after it, right), the far end does not cut."""
    spans = s_windows(satisfied_base, target, window)
    assume(spans)
    low, high = spans[0] if left else spans[-1]
    s = min(low + inside, high) if left else max(high - inside, low)
    entry, t = satisfied_base.shape(), target.shape().moved(s)
    if left:
        e = base.shape().moved(-shift(entry, base) - more)
        far_end_cuts = window.upper_us is not None and t.latest_us - e.earliest_us > window.upper_us
    else:
        e = base.shape().moved(shift(base, entry) + more)
        far_end_cuts = window.lower_us is not None and t.earliest_us - e.latest_us < window.lower_us
    assume(not far_end_cuts)
    # The hard cuts hold for (e, t) by its position alone.
    plain = (window.lower_us, window.upper_us, None, None, window.threshold)
    assert oracle.is_satisfied(told(entry), told(t), judged(window))
    assert oracle.is_satisfied(told(e), told(t), plain)


@given(
    base=histograms(),
    target=histograms(),
    violated_target=histograms(),
    window=st.one_of(wide_windows(24), windows(limit=30)),
    s=st.integers(-40, 40),
    more=st.integers(0, 6),
    left=st.booleans(),
)
def test_p_lookup_violated_holds_for_any_distributions(
    base: Histogram,
    target: Histogram,
    violated_target: Histogram,
    window: TimingWindow,
    s: int,
    more: int,
    *,
    left: bool,
) -> None:
    """(e, t') violated and not cut by the far end, t at or before t' (left; after it, right)."""
    near = window.lower_us if left else window.upper_us
    assume(near is not None)
    e, entry = base.shape(), violated_target.shape().moved((near or 0) + s)
    if left:
        t = target.shape().moved(entry.latest_us - shift(entry, target.shape()) - more)
        cuts = window.upper_us is not None and entry.latest_us - e.earliest_us > window.upper_us
    else:
        t = target.shape().moved(entry.latest_us + shift(target.shape(), entry) + more)
        cuts = window.lower_us is not None and entry.earliest_us - e.latest_us < window.lower_us
    plain = (window.lower_us, window.upper_us, None, None, window.threshold)
    assume(not cuts and not oracle.is_satisfied(told(e), told(entry), plain))
    assert not oracle.is_satisfied(told(e), told(t), plain)


def test_p_stochastic_lookup_is_not_read_when_the_far_end_cuts() -> None:
    """The premise is needed: a dominated base event that the upper end cuts is violated."""
    window = TimingWindow(-5, 5, None, None, Fraction(1))
    point = Histogram.from_interval(0, 0)
    assert oracle.is_satisfied(told(point), told(point), judged(window))
    assert shift(point, point) == 0
    assert not oracle.is_satisfied(told(point.moved(-6)), told(point), judged(window))
