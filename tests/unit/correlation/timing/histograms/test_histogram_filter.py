"""P-HISTOGRAM, in float64: the rounding bound, and integer decisions of doubtful pairs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.limits import BUCKET_LIMIT, DURATION_LIMIT_US, LENGTH_LIMIT_US, TIME_LIMIT_US
from correlation.resources.histogram import WHOLE_MASS, Bucket, Histogram
from correlation.timing.histograms.filter import (
    _filter_pair_kernel,
    _measure_lost_kernel,
    satisfied_shapes,
    shape_probability,
)
from correlation.timing.histograms.shapes import pack_shapes
from correlation.timing.intervals.satisfaction import satisfied
from correlation.timing.intervals.search import DOUBTFUL
from correlation.timing.intervals.window import TimingWindow
from tests.oracle import histograms as oracle
from tests.unit.correlation.timing.histogram_strategies import (
    cut_pairs,
    described,
    histograms,
    told,
)
from tests.unit.correlation.timing.strategies import PLACES, any_lengths, judged, windows

HALF = Fraction(1, 2)
MANY = Histogram(
    tuple(Bucket(i * i, (i + 1) * (i + 1), WHOLE_MASS // 100) for i in range(BUCKET_LIMIT))
)


def judge(a: Histogram, b: Histogram, s: int, window: TimingWindow) -> bool:
    return oracle.is_satisfied(told(a.shape()), oracle.moved(told(b.shape()), s), judged(window))


@given(
    shapes=st.lists(histograms(), min_size=1, max_size=3), window=windows(limit=25), data=st.data()
)
def test_p_histogram_filtered_decisions_are_the_judges(
    shapes: list[Histogram], window: TimingWindow, data: st.DataObject
) -> None:
    a, b = (data.draw(st.integers(0, len(shapes) - 1)) for _ in range(2))
    s = np.arange(-40, 41)
    packed = pack_shapes(shapes)
    got = satisfied_shapes(packed, a, packed, b, s, window)
    assert got.tolist() == [judge(shapes[a], shapes[b], x, window) for x in s.tolist()]


@given(a=histograms(), b=histograms(), s=st.integers(-12, 12), window=windows(limit=12))
def test_p_histogram_filtered_decisions_are_the_judges_on_ties(
    a: Histogram, b: Histogram, s: int, window: TimingWindow
) -> None:
    ends = (window.lower_us, window.upper_us, -50, 50)
    tie = oracle.probability(told(a.shape()), oracle.moved(told(b.shape()), s), (*ends, HALF))
    if tie and PLACES % tie.denominator == 0:
        window = TimingWindow(*ends, tie)
        packed = pack_shapes([a, b])
        places = [s - 1, s, s + 1]
        got = satisfied_shapes(packed, 0, packed, 1, places, window)
        assert got.tolist() == [judge(a, b, x, window) for x in places]
        assert got[1]


@given(cut_pairs())
def test_p_histogram_rounding_bound(case: tuple[Histogram, Histogram, int, TimingWindow]) -> None:
    """Wrong by at most half of what the filter allows, relative to what is lost."""
    a, b, s, window = case
    packed = pack_shapes([a, b])
    scalars = window.scalars()
    got = Fraction(_measure_lost_kernel(packed, 0, packed, 1, s, scalars)) / WHOLE_MASS**2
    moved = oracle.moved(told(b.shape()), s)
    exact = 1 - oracle.probability(told(a.shape()), moved, judged(window))
    buckets = len(a.buckets) + len(b.buckets)
    assert abs(got - exact) <= Fraction(buckets + 16, 2**53) * exact
    reported = shape_probability(packed, 0, packed, 1, s, window)[0]
    assert 0 <= reported <= 1
    assert abs(Fraction(float(reported)) - (1 - exact)) <= Fraction(1, 2**44)
    assert satisfied_shapes(packed, 0, packed, 1, s, window)[0] == judge(a, b, s, window)


@pytest.mark.parametrize("s", [-9_000, -1_234, 0, 777, 9_000])
@pytest.mark.parametrize(("lower", "upper"), [(-500, 500), (-12_000, 12_000), (100, None)])
def test_p_histogram_rounding_bound_of_many_buckets(lower: int, upper: int | None, s: int) -> None:
    window = TimingWindow(lower, upper, None, 10**6, HALF)
    packed, shape = pack_shapes([MANY]), told(MANY.shape())
    exact = 1 - oracle.probability(shape, oracle.moved(shape, s), judged(window))
    got = Fraction(_measure_lost_kernel(packed, 0, packed, 0, s, window.scalars()))
    assert abs(got / WHOLE_MASS**2 - exact) <= Fraction(2 * BUCKET_LIMIT + 16, 2**53) * exact


@given(a=any_lengths, b=any_lengths, s=st.integers(-(2**51), 2**51), window=windows())
def test_p_histogram_filtered_decision_of_one_bucket_is_the_interval(
    a: int, b: int, s: int, window: TimingWindow
) -> None:
    packed = pack_shapes([Histogram.from_interval(0, a), Histogram.from_interval(0, b)])
    got = satisfied_shapes(packed, 0, packed, 1, s, window)
    assert got.tolist() == satisfied(a, b, s, window).tolist()


@pytest.mark.parametrize(("ct", "expected"), [("0.8", True), ("0.8000000001", False)])
def test_p_histogram_is_decided_in_integers_where_float_cannot_tell(
    ct: str, *, expected: bool
) -> None:
    # P(T_A ≥ -9) = 0.9 - 0.1: no float of these is exact, the tie is.
    shape = described((0, 3, "0.1"), (3, 10, "0.7"), (10, 13, "0.2"))
    point = Histogram.from_interval(0, 0)
    packed = pack_shapes([shape, point])
    window = TimingWindow(None, -3, -50, None, Fraction(ct))
    assert judge(shape, point, -12, window) is expected
    verdict = _filter_pair_kernel(packed, 0, packed, 1, -12, window.scalars())
    assert (verdict == DOUBTFUL) is expected
    assert satisfied_shapes(packed, 0, packed, 1, -12, window).tolist() == [expected]


@pytest.mark.parametrize("s", [-(2**61), 2**61])
@pytest.mark.parametrize(
    ("lower", "upper", "floor", "ceiling"),
    [
        (-DURATION_LIMIT_US, DURATION_LIMIT_US, None, None),
        (None, -DURATION_LIMIT_US, -DURATION_LIMIT_US, None),
        (DURATION_LIMIT_US, None, None, DURATION_LIMIT_US),
    ],
)
def test_p_histogram_filter_at_the_limits_of_time(
    lower: int | None, upper: int | None, floor: int | None, ceiling: int | None, s: int
) -> None:
    longest = Histogram.from_interval(TIME_LIMIT_US - LENGTH_LIMIT_US, TIME_LIMIT_US)
    packed = pack_shapes([longest, Histogram.from_interval(0, 0)])
    window = TimingWindow(lower, upper, floor, ceiling, Fraction(1, PLACES))
    for a, b in ((0, 0), (0, 1), (1, 0), (1, 1)):
        assert not satisfied_shapes(packed, a, packed, b, s, window)[0]
        certain = (lower is None and s < 0) or (upper is None and s > 0)
        assert shape_probability(packed, a, packed, b, s, window)[0] == certain


def test_satisfied_shapes_decides_many_pairs_at_once() -> None:
    shapes = [described((0, 10, "0.5"), (10, 30, "0.5")), Histogram.from_interval(0, 0)]
    packed = pack_shapes(shapes)
    window = TimingWindow(-10, 10, None, None, HALF)
    a, b, s = (values.ravel() for values in np.meshgrid([0, 1], [0, 1], range(-40, 41)))
    got = satisfied_shapes(packed, a, packed, b, s, window).tolist()
    cases = zip(a.tolist(), b.tolist(), s.tolist(), strict=True)
    assert got == [judge(shapes[i], shapes[j], x, window) for i, j, x in cases]
    empty = satisfied_shapes(packed, [], packed, [], [], window)
    assert empty.tolist() == []


@pytest.mark.parametrize(("a", "b", "name"), [(2, 0, "index_a"), (0, -1, "index_b")])
def test_shapes_outside_are_refused(a: int, b: int, name: str) -> None:
    packed = pack_shapes([Histogram.from_interval(0, 0), Histogram.from_interval(0, 9)])
    window = TimingWindow(-10, 10, None, None, HALF)
    for function in (satisfied_shapes, shape_probability):
        with pytest.raises(ValueError, match=name):
            function(packed, [0, a], packed, [0, b], 0, window)


def test_pack_shapes_holds_offsets_from_the_latest_time() -> None:
    packed = pack_shapes([described((5, 6, "0.25"), (6, 9, "0.75")), Histogram.from_interval(7, 7)])
    assert packed.starts.tolist() == [0, 2, 3]
    assert packed.edges.tolist() == [-4, -3, 0, 0, 0]
    assert packed.masses.tolist() == [WHOLE_MASS // 4, 3 * WHOLE_MASS // 4, WHOLE_MASS]
    assert packed.to_steps(0).whole == 4
    assert packed.to_steps(1).is_point
