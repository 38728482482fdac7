"""Decisions of many positive events in columns: the judge's, by position, filter and integers."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.buffers.columns import DictionaryColumn
from correlation.event_query.absence.deciding import (
    EXACT,
    FILTER,
    POSITION,
    decide_absences,
)
from correlation.event_query.absence.exact import Candidate
from correlation.event_query.absence.instants import (
    join_tables,
    make_table,
    take_instants,
)
from correlation.event_query.absence.position import Negated
from correlation.event_query.absence.windows import (
    INFINITE_US,
    Interval,
    make_windows,
    merge_intervals,
    merge_windows,
)
from correlation.limits import LENGTH_LIMIT_US, TIME_LIMIT_US
from correlation.resources.histogram import Histogram
from tests.unit.correlation.event_query.absence.absence_strategies import (
    cases,
    instants,
    judge,
    make_columns,
    make_instants,
    make_negated,
    thresholds,
    window_tuples,
)

Case = tuple[Histogram, list[Candidate]]
MINUTE = 60_000_000
FIVE_MINUTES = (Interval(0, 5 * MINUTE),)


def uniform(lo: int, hi: int) -> Histogram:
    return Histogram.from_interval(lo, hi)


@given(st.lists(cases(), min_size=1, max_size=4), thresholds, st.integers(0, 4))
def test_p_absence_decisions_are_the_judges(
    given_cases: list[Case], threshold: Fraction, place: int
) -> None:
    """Thresholds that equal the probability of one of the events are decided exactly."""
    exact = [judge(*it) for it in given_cases]
    for minimum in {threshold, *exact[place : place + 1]} - {0}:
        found = decide_absences(*make_columns(given_cases), minimum)
        assert found.reported.tolist() == [it >= minimum for it in exact]
        assert sum(found.counts.values()) == len(exact)
        for i, it in enumerate(exact):
            if it < minimum:
                assert math.isnan(found.probability[i])
            else:
                error = Fraction(float(found.error[i]))
                assert abs(Fraction(float(found.probability[i])) - it) <= max(error, it / 2**53)


@given(st.lists(instants(), max_size=6), instants(), window_tuples(), thresholds)
def test_p_absence_of_a_range_of_candidates_is_the_judges(
    times: list[Histogram], positive: Histogram, window: tuple[Interval, ...], threshold: Fraction
) -> None:
    """One entry with all candidates, and one entry for each half of them, decide alike."""
    exact = judge(positive, [Candidate(it, window) for it in times])
    one = [make_negated([window], [times])]
    two = [make_negated([window], [part]) for part in (times[:3], times[3:])]
    for negated in (one, two):
        found = decide_absences(make_instants([positive]), negated, threshold)
        assert found.reported[0] == (exact >= threshold)


def test_p_absence_is_decided_in_each_way() -> None:
    """By position: stopped, and without candidates; by the filter; a tie in integers."""
    tie = [uniform(0, 10)] * 3
    negated = make_negated(
        [(Interval(None, 0),)] * 5,
        [[uniform(-9, 0)], [uniform(10, 11)], [uniform(0, 9)], tie, [*tie, uniform(20, 30)]],
    )
    found = decide_absences(make_instants([uniform(0, 10)] * 5), [negated], Decimal("0.25"))
    assert found.reported.tolist() == [False, True, True, True, True]
    assert found.decided_by.tolist() == [POSITION, POSITION, FILTER, EXACT, EXACT]
    assert found.counts == {"position": 2, "filter": 1, "exact": 2}
    assert found.probability[1:].tolist() == [1.0, pytest.approx(0.45), 0.25, 0.25]
    assert found.error.tolist() == [0.0, 0.0, pytest.approx(0.0, abs=2.0**-43), 0.0, 0.0]
    above = decide_absences(make_instants([uniform(0, 10)] * 5), [negated], Fraction(251, 1000))
    assert above.reported.tolist() == [False, True, True, False, False]


@pytest.mark.parametrize("count", [9, 99])
def test_p_absence_tie_of_many_equal_candidates(count: int) -> None:
    """P = 1 / (count + 1) exactly; one unit more of the threshold is not reached."""
    second = [uniform(0, 10**6)]
    negated = [make_negated([(Interval(None, 0),)], [second * count])]
    minimum = Fraction(1, count + 1)
    assert decide_absences(make_instants(second), negated, minimum).reported[0]
    more = minimum + Fraction(1, 10**30)
    assert not decide_absences(make_instants(second), negated, more).reported[0]


def test_p_absence_of_smoke_and_uncertain_reports() -> None:
    """Two reports, each inside the window with probability 1/2 but on opposite sides of it."""
    smoke = uniform(0, MINUTE)
    early, late = uniform(0, MINUTE), uniform(5 * MINUTE, 6 * MINUTE)
    negated = [make_negated([FIVE_MINUTES], [[early, late]])]
    found = decide_absences(make_instants([smoke]), negated, Decimal("0.2"))
    # Given T_s = t, the early report is missed with t, the late one with 1 - t: E t (1 - t) = 1/6.
    assert not found.reported[0]
    below = decide_absences(make_instants([smoke]), negated, Decimal("0.1666666666"))
    assert below.reported[0]
    assert below.probability[0] == pytest.approx(1 / 6, abs=1e-13)


def test_p_absence_position_of_exact_times_counts_closed_and_open_ends() -> None:
    at = make_instants([uniform(7, 7)] * 4)
    windows = make_windows(
        [[0], [0], [-5], [-5]], [[5], [5], [0], [0]], [[0], [1], [0], [0]], [[0], [0], [0], [1]]
    )
    negated = Negated(make_table([7], [7]), np.zeros(4, np.int64), np.ones(4, np.int64), windows)
    found = decide_absences(at, [negated], Decimal(1))
    assert found.reported.tolist() == [False, True, False, True]
    assert found.counts["position"] == 4


def test_p_absence_at_the_limits_of_time() -> None:
    """Ends of ±2**61 and infinite ends do not overflow."""
    first, last = -TIME_LIMIT_US, TIME_LIMIT_US
    length = LENGTH_LIMIT_US
    positives = [uniform(first, first + length), uniform(last - length, last)]
    windows = [
        (Interval(2 * last - length, 2 * last),),
        (Interval(None, 2 * first + length), Interval(2 * last, None)),
    ]
    times = [[uniform(last - length, last)], [uniform(first, first + length)]]
    given_cases = [
        (positive, [Candidate(it, window) for it in part])
        for positive, window, part in zip(positives, windows, times, strict=True)
    ]
    exact = [judge(*it) for it in given_cases]
    assert exact == [Fraction(1, 2), Fraction(1, 2)]
    for minimum, expected in [(Fraction(1, 2), True), (Fraction(51, 100), False)]:
        found = decide_absences(make_instants(positives), [make_negated(windows, times)], minimum)
        assert found.reported.tolist() == [expected, expected]


def test_decisions_without_candidates_or_events_are_by_position() -> None:
    assert decide_absences(make_instants([uniform(0, 5)]), [], Decimal(1)).reported.tolist() == [
        True
    ]
    empty = decide_absences(make_instants([]), [make_negated([], [])], Decimal(1))
    assert empty.counts == {"position": 0, "filter": 0, "exact": 0}


@pytest.mark.parametrize("threshold", [Fraction(0), Fraction(-1), Fraction(101, 100)])
def test_threshold_out_of_range_is_refused(threshold: Fraction) -> None:
    with pytest.raises(ValueError, match="threshold: must be above 0 and at most 1"):
        decide_absences(make_instants([]), [], threshold)


def test_columns_that_do_not_fit_are_refused() -> None:
    table, one = make_table([0], [1]), np.ones(1, np.int64)
    window = make_windows([[0]], [[1]])
    with pytest.raises(ValueError, match=r"^begin and end: .*outside the table"):
        Negated(table, one, one + 1, window)
    with pytest.raises(ValueError, match=r"^begin, end and windows: .*equal lengths"):
        Negated(table, np.zeros(2, np.int64), one, window)
    with pytest.raises(ValueError, match="each positive event"):
        decide_absences(make_instants([]), [Negated(table, one, one, window)], Decimal(1))
    with pytest.raises(ValueError, match=r"^lo and hi: .*two dimensions"):
        make_windows([0], [1])
    with pytest.raises(ValueError, match=r"^hi: .*out of range"):
        make_windows([[0]], [[2**61 + 1]])
    with pytest.raises(ValueError, match=r"^earliest and latest: .*one dimension"):
        make_table([0], [1, 2])
    for earliest, latest in [(1, 0), (0, 2**45 + 1), (2**60, 2**60 + 1)]:
        with pytest.raises(ValueError, match=r"time .*length .*out of range"):
            make_table([earliest], [latest])
    shape = DictionaryColumn.from_list(
        [Histogram.from_buckets([[0, 2, 0.5], [2, 3, 0.5]]).shape_bytes]
    )
    with pytest.raises(ValueError, match=r"^shape: .*length .*differs"):
        make_table([0], [4], shape)


@given(st.lists(window_tuples(), max_size=5))
def test_merged_columns_are_the_merged_intervals(windows: list[tuple[Interval, ...]]) -> None:
    columns = make_negated(windows, [[] for _ in windows]).windows
    lo, hi = merge_windows(columns)
    for i, window in enumerate(windows):
        assert columns.intervals(i) == window
        found = [
            (None if low == -INFINITE_US else low, None if high == INFINITE_US else high)
            for low, high in zip(lo[i].tolist(), hi[i].tolist(), strict=True)
            if low <= high
        ]
        assert found == merge_intervals(window)


@given(st.lists(instants(), min_size=1, max_size=6), st.data())
def test_taken_and_joined_instants_are_the_same(
    times: list[Histogram], data: st.DataObject
) -> None:
    rows = data.draw(st.lists(st.integers(0, len(times) - 1), max_size=8))
    table = make_instants(times)
    taken = take_instants(table, np.array(rows, np.int64))
    joined = join_tables([taken, table, taken])
    expected = [times[row] for row in rows]
    expected = [*expected, *times, *expected]
    assert [joined.histogram(i) for i in range(len(expected))] == expected
