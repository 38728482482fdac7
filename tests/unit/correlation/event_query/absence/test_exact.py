"""The probability of absence over the rationals, against the oracle and closed forms."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.event_query.absence.exact import Candidate, absence_probability
from correlation.event_query.absence.windows import Interval, merge_intervals
from correlation.resources.histogram import WHOLE_MASS, Bucket, Histogram
from tests.unit.correlation.event_query.absence.absence_strategies import cases, judge

AFTER = (Interval(None, 0),)
HALF = WHOLE_MASS // 2


def uniform(lo: int, hi: int) -> Histogram:
    return Histogram.from_interval(lo, hi)


@given(cases())
def test_p_absence_is_the_judges(case: tuple[Histogram, list[Candidate]]) -> None:
    assert absence_probability(*case) == judge(*case)


@pytest.mark.parametrize("count", [1, 2, 9, 99])
def test_p_absence_of_equal_instants_is_one_of_their_number(count: int) -> None:
    """T_s is before all others: each of count + 1 independent equal times may be the first."""
    candidates = [Candidate(uniform(0, 10**6), AFTER)] * count
    assert absence_probability(uniform(0, 10**6), candidates) == Fraction(1, count + 1)


def test_p_absence_is_not_the_product_of_pairwise_probabilities() -> None:
    """Two candidates that are each absent with probability 1/2 are both absent with 1/3."""
    positive, candidate = uniform(0, 10), Candidate(uniform(0, 10), AFTER)
    assert absence_probability(positive, [candidate]) == Fraction(1, 2)
    both = absence_probability(positive, [candidate, candidate])
    assert both == judge(positive, [candidate, candidate]) == Fraction(1, 3)


def test_p_absence_of_opposite_events_is_less_than_the_product() -> None:
    before, after = Candidate(uniform(0, 2), AFTER), Candidate(uniform(0, 2), (Interval(0, None),))
    assert absence_probability(uniform(0, 2), [before, after]) == Fraction(1, 6)


def test_p_absence_of_exact_times_is_the_classical_answer() -> None:
    """Open ends are excluded between exact times only."""
    at = uniform(5, 5)
    for window, expected in [
        ((Interval(0, 3),), 0),
        ((Interval(0, 3, open_lo=True),), 1),
        ((Interval(-3, 0, open_hi=True),), 1),
        ((Interval(-3, 0, open_hi=True), Interval(0, 3, open_lo=True)), 1),
        ((Interval(-3, 0, open_hi=True), Interval(0, 3)), 0),
        ((Interval(None, None),), 0),
        ((), 1),
    ]:
        assert absence_probability(at, [Candidate(at, window)]) == expected
    either = (Interval(None, 0, open_hi=True), Interval(0, None, open_lo=True))
    assert absence_probability(uniform(4, 6), [Candidate(at, either)]) == 0
    assert absence_probability(at, [Candidate(uniform(4, 6), either)]) == 0


def test_p_absence_of_an_exact_candidate_is_the_mass_of_the_rest() -> None:
    positive = Histogram((Bucket(0, 1, HALF), Bucket(1, 9, 0), Bucket(9, 11, HALF)))
    assert absence_probability(positive, [Candidate(uniform(10, 10), (Interval(0, 5),))]) == (
        Fraction(3, 4)
    )


def test_p_absence_has_no_mass_in_a_gap() -> None:
    """The window covers the candidate except during its gap."""
    candidate = Histogram((Bucket(0, 2, HALF), Bucket(2, 8, 0), Bucket(8, 10, HALF)))
    window = (Interval(0, 2), Interval(8, 10))
    assert absence_probability(uniform(0, 0), [Candidate(candidate, window)]) == 0


def test_p_absence_of_many_candidates_in_integers() -> None:
    """The candidates split the time: P = Π over candidates that do not depend on T_s."""
    candidates = [Candidate(uniform(20 + i, 40 + i), (Interval(None, 20),)) for i in range(5)]
    assert absence_probability(uniform(0, 10), candidates) == judge(uniform(0, 10), candidates)
    power = [Candidate(uniform(0, 7), (Interval(0, None),))] * 60
    # P(T_r < t for all) = E (t / 14)^60 for t uniform on [0, 7], which is 1 / (61 · 2^60) if T_r is
    # uniform on [0, 14].
    power = [Candidate(uniform(0, 14), it.window) for it in power]
    assert absence_probability(uniform(0, 7), power) == Fraction(1, 61 * 2**60)


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-2, 9)), max_size=5))
def test_merged_intervals_hold_the_same_times(pairs: list[tuple[int, int]]) -> None:
    ends = [(lo, lo + by) for lo, by in pairs]
    merged = merge_intervals(tuple(Interval(*it) for it in ends))
    for half in range(-40, 41):
        assert any(lo <= half / 2 <= hi for lo, hi in ends) == any(
            (-math.inf if lo is None else lo) <= half / 2 <= (math.inf if hi is None else hi)
            for lo, hi in merged
        )
    assert all((one[1] or 0) < (other[0] or 0) for one, other in pairwise(merged))
