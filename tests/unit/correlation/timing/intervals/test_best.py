"""P-BEST: the best target is the oracle's, including all kinds of ties."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from correlation.buffers.columns import BytesColumn
from correlation.limits import DURATION_LIMIT_US, LENGTH_LIMIT_US
from correlation.timing.intervals.best import (
    NONE,
    Targets,
    _compare_crosswise_kernel,
    _measure_loss_kernel,
    compare_targets,
    find_best,
)
from correlation.timing.intervals.exact import ROUNDING_BOUND
from correlation.timing.intervals.pairs import Side
from correlation.timing.intervals.unmatched import mark_matched
from correlation.timing.intervals.window import TimingWindow
from tests.oracle.emit import best_target, rank_target
from tests.oracle.intervals import Event, is_satisfied, probability
from tests.unit.correlation.timing.sides import one_group, side
from tests.unit.correlation.timing.strategies import any_lengths, judged, windows

WIDE = TimingWindow(-100, 100, None, None, Fraction(1, 2))


def compare(base: Event, one: Event, other: Event, window: TimingWindow) -> int:
    return int(np.sign(compare_targets(side(base), side(one), side(other), window))[0])


def judge(base: Event, one: Event, other: Event, window: TimingWindow) -> int:
    ranks = [rank_target(base, (event, b""), judged(window)) for event in (one, other)]
    return (ranks[0] > ranks[1]) - (ranks[0] < ranks[1])


def best(
    base: Side, target: Side, window: TimingWindow, ids: list[bytes], late: list[bool]
) -> list[int]:
    none = np.full(len(base.latest), NONE)
    targets = Targets(target, BytesColumn.from_list(ids), np.array(late, np.bool_))
    found = find_best(base, targets, one_group(base, target), window, left_out=none)
    return [int(row) for row in found.rows]


@given(
    a=any_lengths,
    b=any_lengths,
    c=any_lengths,
    window=windows(),
    near=st.tuples(*(st.integers(-3, 3) for _ in range(2))),
    data=st.data(),
)
def test_p_best_compares_as_the_rationals_do(
    a: int, b: int, c: int, window: TimingWindow, near: tuple[int, int], data: st.DataObject
) -> None:
    ends = [e for e in (window.lower_us, window.upper_us) if e is not None]

    def draw(length: int, off: int) -> Event:
        corners = [e + d for e in ends for d in (-a, length, length - a, (length - a) // 2, 0)]
        s = data.draw(st.sampled_from(corners)) + off
        return (s - length, s)

    one, other = draw(b, near[0]), draw(c, near[1])
    assert compare((-a, 0), one, other, window) == judge((-a, 0), one, other, window)


@given(
    a=any_lengths,
    b=st.integers(1, LENGTH_LIMIT_US),
    depth=st.fractions(0, 2),
    off=st.integers(-1, 1),
)
def test_p_best_tells_mirrored_targets_apart_by_their_distance_alone(
    a: int, b: int, depth: Fraction, off: int
) -> None:
    """As deep behind the lower end as another behind the upper one: equally probable."""
    window = TimingWindow(0, DURATION_LIMIT_US, None, None, Fraction(1, 2))
    cut = int(depth * b)
    below = (-cut, b - cut)
    above = (DURATION_LIMIT_US - a - b + cut + off, DURATION_LIMIT_US - a + cut + off)
    assert compare((-a, 0), below, above, window) == judge((-a, 0), below, above, window)
    if off == 0:
        assert probability((-a, 0), below, judged(window)) == probability(
            (-a, 0), above, judged(window)
        )


@given(
    m=st.integers(1, 2**20),
    factor=st.integers(2, 2**10),
    numbers=st.tuples(*(st.integers(1, 2**20) for _ in range(2))),
    off=st.integers(-1, 1),
)
def test_p_best_crosswise_on_ties_of_unequal_lengths(
    m: int, factor: int, numbers: tuple[int, int], off: int
) -> None:
    """Depths in the middle branch, m (2w - m) of 2mM: lengths M and kM at depths that tie."""
    large = m * 2 + numbers[0]
    w = m + numbers[1] % (large - m + 1)
    # (2w' - m) / kM = (2w - m) / M, where w' is whole.
    twice = factor * (2 * w - m) + m
    one, other = (w, 0, large), (twice // 2 + off, 0, factor * large)
    lost = [Fraction(m * (2 * u - m), 2 * m * length) for u, _, length in (one, other)]
    expected = (lost[0] > lost[1]) - (lost[0] < lost[1])
    assume(m <= other[0] <= other[2])
    assert _compare_crosswise_kernel(m, one, other) == expected
    if twice % 2 == 0 and off == 0:
        assert expected == 0


@given(
    half=st.integers(1, 2**20),
    odd=st.tuples(*(st.integers(2**30, 2**43) for _ in range(2))),
    sign=st.sampled_from([2, -2]),
)
def test_p_best_tells_apart_what_float_cannot(half: int, odd: tuple[int, int], sign: int) -> None:
    """Losses (2w - m) / 2M that differ by 1 / MM', as little as two of them can."""
    m, one_length, other_length = 2 * half, 2 * odd[0] + 1, 2 * odd[1] + 1
    assume(math.gcd(one_length, other_length) == 1)
    # x M' - x' M = ±2 with x, x' even, as 2w - m is.
    x = sign * pow(other_length, -1, one_length) % one_length
    x += one_length * (x % 2)
    y = (x * other_length - sign) // one_length
    assume(m <= x <= 2 * one_length - m)
    assume(m <= y <= 2 * other_length - m)
    one, other = ((u + m) // 2 for u in (x, y))
    window = TimingWindow(0, DURATION_LIMIT_US, None, None, Fraction(1, 2))
    targets = [(-u, length - u) for u, length in ((one, one_length), (other, other_length))]
    assert compare((-m, 0), targets[0], targets[1], window) == (1 if sign > 0 else -1)
    assert judge((-m, 0), targets[0], targets[1], window) == (1 if sign > 0 else -1)


@given(
    a=any_lengths,
    b=any_lengths,
    u=st.floats(-0.5, 2.5),
    v=st.floats(-0.5, 2.5),
)
def test_p_best_rounding_bound(a: int, b: int, u: float, v: float) -> None:
    depths = (int(u * max(a, b)), int(v * max(a, b)))
    # Of the events [-a, 0] and [0, b]: u = lower, v = a + b - upper.
    lower, upper = depths[0], a + b - depths[1]
    assume(lower <= upper)
    exact = 1 - probability((-a, 0), (0, b), (lower, upper, None, None, Fraction(1)))
    found = Fraction(_measure_loss_kernel(*depths, a, b))
    assert abs(found - exact) <= Fraction(ROUNDING_BOUND) / 2 * exact


@pytest.mark.parametrize(
    ("targets", "ids", "late", "expected"),
    [
        # Nothing in reach, and something in reach that is not probable enough.
        ([(500, 510)], [b"a"], [False], NONE),
        ([(95, 135)], [b"a"], [False], NONE),
        # The most probable; of those that are certain the nearest; of those the earlier.
        ([(60, 120), (80, 120)], [b"a", b"b"], [False] * 2, 0),
        ([(-40, -30), (20, 30)], [b"a", b"b"], [False] * 2, 1),
        ([(-30, -20), (30, 40)], [b"b", b"a"], [False] * 2, 0),
        # The same middle: the shorter one has the earlier latest.
        ([(18, 22), (10, 30)], [b"b", b"a"], [False] * 2, 0),
        # The same interval: by id, byte by byte, then the event that is not late.
        ([(10, 30)] * 3, [b"ab", b"a\xff", b"a"], [False] * 3, 2),
        ([(10, 30)] * 2, [b"b\xff", b"b\x01"], [False] * 2, 1),
        ([(10, 30)] * 3, [b"a"] * 3, [True, False, False], 1),
    ],
)
def test_best_target_of_an_event(
    targets: list[Event], ids: list[bytes], late: list[bool], expected: int
) -> None:
    assert best(side((0, 10)), side(*targets), WIDE, ids, late) == [expected]


def test_p_best_a_first_target_must_be_satisfied_and_points_lose_all() -> None:
    points = side((99, 99), (110, 110), (111, 111))
    assert best(side((10, 10)), points, WIDE, [b"c", b"b", b"a"], [False] * 3) == [0]
    assert best(side((11, 11)), points, WIDE, [b"c", b"b", b"a"], [False] * 3) == [0]
    assert best(side((5, 5)), points, WIDE, [b"c", b"b", b"a"], [False] * 3) == [0]
    assert best(side((0, 0)), points, WIDE, [b"c", b"b", b"a"], [False] * 3) == [0]
    assert best(side((-2, -2)), points, WIDE, [b"c", b"b", b"a"], [False] * 3) == [NONE]


@given(data=st.data())
def test_p_best_and_unmatched_are_the_judges(data: st.DataObject) -> None:
    events = st.lists(
        st.tuples(st.integers(-20, 20), st.integers(0, 8)), min_size=1, max_size=8
    ).map(lambda drawn: sorted(((t - size, t) for t, size in drawn), key=lambda e: e[1]))
    base, target = data.draw(events), data.draw(events)
    window = data.draw(windows(25))
    itself = data.draw(st.booleans())
    if itself:
        target = base
    names = [b"%d" % data.draw(st.integers(0, 2)) for _ in target]
    left_out = np.arange(len(base)) if itself else np.full(len(base), NONE)
    targets = Targets(side(*target), BytesColumn.from_list(names), np.zeros(len(target), np.bool_))
    groups = one_group(side(*base), side(*target))
    found = find_best(side(*base), targets, groups, window, left_out=left_out)
    matched = np.zeros(len(base), np.bool_)
    mark_matched(side(*base), side(*target), groups, window, matched, left_out=left_out)
    for i, event in enumerate(base):
        others = [j for j in range(len(target)) if j != left_out[i]]
        named = [(target[j], names[j]) for j in others]
        expected = best_target(event, named, judged(window))
        row = int(found.rows[i])
        assert (None if row == NONE else (target[row], names[row])) == (
            None if expected is None else named[expected]
        )
        assert matched[i] == any(is_satisfied(event, it, judged(window)) for it, _ in named)


def test_unmatched_decides_no_further_than_the_first_satisfied_target() -> None:
    base = side((0, 100))
    window = TimingWindow(-200, 200, None, None, Fraction(7, 10))
    sure = side((0, 50), (40, 90), (40, 110))
    matched = np.zeros(1, np.bool_)
    none = np.full(1, NONE)
    assert mark_matched(base, sure, one_group(base, sure), window, matched, left_out=none) == 0
    assert matched.tolist() == [True]
    # Marked before: not looked at again.
    assert mark_matched(base, sure, one_group(base, sure), window, matched, left_out=none) == 0
    narrow = TimingWindow(-20, 20, None, None, Fraction(1, 10))
    alike = side(*[(0, 100)] * 5)
    matched = np.zeros(1, np.bool_)
    assert mark_matched(base, alike, one_group(base, alike), narrow, matched, left_out=none) == 1
