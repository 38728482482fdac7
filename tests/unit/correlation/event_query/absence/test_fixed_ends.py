"""Windows with fixed ends: relations to events with exact times, beside an uncertain instant."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from correlation.event_query.absence import exact, gathering
from correlation.event_query.absence.barring import Barred
from correlation.event_query.absence.cuts import list_own_stops, windows_at
from correlation.event_query.absence.deciding import FILTER, POSITION, decide_absences
from correlation.event_query.absence.exact import Candidate, absence_probability
from correlation.event_query.absence.filter import (
    ABSENT,
    DOUBTFUL,
    STOPPED,
    filter_cases,
    measure_cases,
)
from correlation.event_query.absence.gathering import gather_cases
from correlation.event_query.absence.instants import InstantTable, as_read_only
from correlation.event_query.absence.position import Negated
from correlation.event_query.absence.windows import (
    ALWAYS,
    INFINITE_US,
    Box,
    Cuts,
    Interval,
    Window,
    make_windows,
)
from correlation.limits import LENGTH_LIMIT_US, TIME_LIMIT_US
from correlation.resources.histogram import Histogram
from tests.oracle import absence as oracle
from tests.unit.correlation.event_query.absence.absence_strategies import (
    cases,
    judge,
    make_columns,
    make_instants,
    make_negated,
    thresholds,
    to_candidates,
    to_oracle,
)

Case = tuple[Histogram, list[Candidate]]
CASES = cases(fixed=True)


def uniform(lo: int, hi: int) -> Histogram:
    return Histogram.from_interval(lo, hi)


def assert_probability(case: Case, expected: Fraction) -> None:
    """Check the judge, integers and float64."""
    assert judge(*case) == expected
    assert absence_probability(*case) == expected
    stopped, gathered = gather_cases(*make_columns([case]))
    assert not stopped[0]
    values, errors = measure_cases(gathered, np.arange(1))
    assert abs(Fraction(float(values[0])) - expected) <= Fraction(float(errors[0])) / 2
    near = Fraction(1, 10**9)
    assert filter_cases(gathered, expected - near)[0] == ABSENT
    assert filter_cases(gathered, expected + near)[0] == STOPPED


@given(CASES)
def test_p_absence_with_fixed_ends_is_the_judges(case: Case) -> None:
    assert absence_probability(*case) == judge(*case)


def test_p_absence_between_a_fixed_end_and_the_positive_event() -> None:
    """T_r is after T_s and at most 6: P(T_r > 6 or T_r < T_s) of T_s on [0, 8], T_r on [4, 8]."""
    box = Box(Interval(0, None), Interval(None, 6))
    candidate = Candidate(uniform(4, 8), (box,))
    # The report is in [4, 6] with 1/2, and then after the event unless this is in (T_r, 8].
    assert_probability((uniform(0, 8), [candidate]), 1 - Fraction(1, 2) * Fraction(5, 8))


def test_p_absence_of_overlapping_boxes_counts_their_union() -> None:
    """T_r is after T_s, or after 4, whatever T_s is."""
    window = (Interval(0, None), Box(ALWAYS, Interval(4, None)))
    # T_r must be before T_s and before 4: T_r on [0, 4] has 1/2, and T_s is later unless it is
    # before it.
    expected = Fraction(1, 2) * (Fraction(1, 2) + Fraction(1, 2) * Fraction(1, 2))
    candidate = Candidate(uniform(0, 8), window)
    assert_probability((uniform(0, 8), [candidate]), expected)


def test_p_absence_of_fixed_ends_of_the_positive_event() -> None:
    """Only a positive event of the time from 2 to 4 is stopped."""
    candidate = Candidate(uniform(0, 8), (Box(Interval(0, None), positive=Interval(2, 4)),))
    expected = 1 - Fraction(1, 4) * Fraction(5, 8)
    assert_probability((uniform(0, 8), [candidate]), expected)
    # Two such events: the second factor jumps at the same times.
    both = Fraction(3, 4) + Fraction(1, 4) * (Fraction(3, 8) ** 2 + Fraction(1, 3) / 64)
    assert_probability((uniform(0, 8), [candidate] * 2), both)


@given(cases(many=8, fixed=True))
def test_p_absence_measured_with_fixed_ends_is_within_its_error(case: Case) -> None:
    stopped, gathered = gather_cases(*make_columns([case]))
    values, errors = measure_cases(gathered, np.arange(1))
    found = Fraction(0) if stopped[0] else Fraction(float(values[0]))
    assert abs(found - judge(*case)) <= Fraction(float(errors[0])) / 2
    assert errors[0] < 2.0**-38


@given(CASES, thresholds)
def test_p_absence_filter_with_fixed_ends_is_never_wrong(case: Case, threshold: Fraction) -> None:
    found = judge(*case)
    stopped, gathered = gather_cases(*make_columns([case]))
    if stopped[0]:
        assert found == 0
        return
    near = Fraction(1, 10**9)
    for at in {threshold, found, found * (1 + Fraction(1, 2**50))}:
        if 0 < at <= 1:
            verdict = filter_cases(gathered, at)[0]
            assert verdict in ({ABSENT, DOUBTFUL} if found >= at else {STOPPED, DOUBTFUL})
    if found > near:
        assert filter_cases(gathered, found - near)[0] == ABSENT
    if found + near <= 1:
        assert filter_cases(gathered, found + near)[0] == STOPPED


@given(st.lists(CASES | cases(), min_size=1, max_size=4), thresholds, st.integers(0, 4))
def test_p_absence_decisions_with_fixed_ends_are_the_judges(
    given_cases: list[Case], threshold: Fraction, place: int
) -> None:
    """Cases with and without fixed ends together; a threshold may be a probability."""
    expected = [judge(*it) for it in given_cases]
    for minimum in {threshold, *expected[place : place + 1]} - {0}:
        found = decide_absences(*make_columns(given_cases), minimum)
        assert found.reported.tolist() == [it >= minimum for it in expected]
        for i in np.flatnonzero(found.reported).tolist():
            error = max(Fraction(float(found.error[i])), expected[i] / 2**53)
            assert abs(Fraction(float(found.probability[i])) - expected[i]) <= error


@given(CASES, thresholds, st.data())
def test_p_absence_of_an_event_of_several_entries_is_that_of_the_union(
    case: Case, threshold: Fraction, data: st.DataObject
) -> None:
    """The parts of each window are dealt to two entries, which have the events in common."""
    positive, candidates = case
    expected = judge(*case)
    entries: list[list[Window]] = [[], []]
    for it in candidates:
        split = data.draw(st.integers(0, len(it.window)))
        entries[0].append(it.window[:split])
        entries[1].append(it.window[split:])
    negated = [
        make_negated([windows[place]], [[it.time]], np.array([place]))
        for windows in entries
        for place, it in enumerate(candidates)
    ]
    for minimum in {threshold, expected} - {0}:
        found = decide_absences(make_instants([positive]), negated, minimum)
        assert found.reported[0] == (expected >= minimum)


def test_p_absence_position_with_fixed_ends() -> None:
    """Inside all three intervals of a box, outside one of them, or neither."""
    positive, time = uniform(0, 10), uniform(20, 30)
    for box, place in [
        (Box(Interval(10, 30), Interval(20, 30), Interval(0, 10)), "inside"),
        (Box(Interval(10, 30), Interval(21, None)), "uncertain"),
        (Box(Interval(10, 30), positive=Interval(1, None)), "uncertain"),
        (Box(Interval(11, 30), Interval(20, 30)), "uncertain"),
        (Box(Interval(30, None), Interval(20, 30)), "outside"),
        (Box(Interval(None, 10), Interval(20, 30)), "outside"),
        (Box(ALWAYS, Interval(30, None)), "outside"),
        (Box(ALWAYS, Interval(None, 20)), "outside"),
        (Box(ALWAYS, positive=Interval(10, None)), "outside"),
        (Box(ALWAYS, Interval(25, 24)), "outside"),
        (Box(Interval(5, 4), Interval(25, 26)), "outside"),
    ]:
        columns = make_columns([(positive, [Candidate(time, (box,))])])
        found = decide_absences(*columns, Fraction(1, 10**10))
        assert found.decided_by.tolist() == [FILTER if place == "uncertain" else POSITION]
        assert found.reported.tolist() == [place != "inside"]


@pytest.mark.parametrize(
    ("negated", "stopped"),
    [
        (Interval(None, 5), True),
        (Interval(5, None), True),
        (Interval(None, 5, open_hi=True), False),
        (Interval(5, None, open_lo=True), False),
        (Interval(5, 5), True),
        (Interval(4, 5, open_lo=True), True),
    ],
)
def test_open_fixed_ends_count_for_exact_times(negated: Interval, *, stopped: bool) -> None:
    """An event at 5 us, between fixed ends, stops a positive event of an earlier time."""
    window = (Box(Interval(0, None), negated),)
    for positive, expected in [(uniform(0, 10), Fraction(1, 2)), (uniform(5, 5), Fraction(0))]:
        case = positive, [Candidate(uniform(5, 5), window)]
        assert absence_probability(*case) == judge(*case) == (expected if stopped else 1)
        columns = make_columns([case])
        found = decide_absences(*columns, Fraction(3, 4))
        assert found.reported.tolist() == [not stopped]
        at_half = decide_absences(*columns, Fraction(1, 2))
        assert at_half.reported.tolist() == [not stopped or expected >= Fraction(1, 2)]


@pytest.mark.parametrize(
    ("positive", "stopped"), [(Interval(5, 9), 1), (Interval(5, 9, open_lo=True), 0)]
)
def test_open_fixed_ends_of_an_exact_positive_event_count(positive: Interval, stopped: int) -> None:
    case = uniform(5, 5), [Candidate(uniform(4, 8), (Box(ALWAYS, positive=positive),))]
    assert absence_probability(*case) == judge(*case) == 1 - stopped
    found = decide_absences(*make_columns([case]), Decimal(1))
    assert found.reported.tolist() == [not stopped]


@given(CASES)
def test_windows_at_an_exact_time_are_those_of_the_boxes(case: Case) -> None:
    """Columns and single boxes are resolved alike, open ends included."""
    positive, candidates = case
    for it in candidates:
        at = positive.earliest_us
        columns = windows_at(make_negated([it.window], [[]]).windows, np.array([at]))
        shown = columns.intervals(0)
        plain = exact._plain(it.window, lambda box: box.at_positive(at))  # noqa: B023, SLF001
        ends = [end for one in plain for end in one[:2] if end is not None]
        for difference in {end + by for end in ends for by in (-1, 0, 1)}:
            assert any(one.holds(difference) for one in shown if isinstance(one, Interval)) == any(
                one.holds(difference) for one in plain
            )


@pytest.mark.parametrize(
    ("box", "continuous", "whole"),
    [
        (Box(Interval(0, 5), Interval(3, 7), Interval(None, 5)), (3, 5), (3, 5)),
        (Box(Interval(0, 5), Interval(None, 7), Interval(4, 9)), (4, 7), (4, 7)),
        (Box(Interval(-1, 0), Interval(3, 7, open_lo=True, open_hi=True)), (3, 7), (4, 6)),
        (Box(ALWAYS, ALWAYS, Interval(3, 7, open_lo=True, open_hi=True)), (3, 7), (4, 6)),
        (Box(Interval(0, 5, open_lo=True), Interval(3, 7)), None, None),
        (Box(ALWAYS, Interval(3, 7), Interval(8, None)), None, None),
    ],
)
def test_times_at_which_a_positive_event_is_in_its_own_window(
    box: Box, continuous: tuple[int, int] | None, whole: tuple[int, int] | None
) -> None:
    """An open end counts in whole microseconds if the event has an exact time."""
    windows = make_negated([(box,), (box,)], [[], []]).windows
    found = list_own_stops(windows, np.array([0, 1]), np.array([False, True]))
    expected = [(i, *ends) for i, ends in enumerate((continuous, whole)) if ends is not None]
    assert list(zip(*(it.tolist() for it in found), strict=True)) == expected


@given(CASES, st.data())
def test_a_positive_event_in_its_own_window_is_stopped_between_fixed_ends(
    case: Case, data: st.DataObject
) -> None:
    positive, candidates = case
    windows = [it.window for it in candidates]
    exact_time = positive.length_us == 0
    negated = make_negated(windows, [[] for _ in windows]).windows
    if negated.cuts is None:
        return
    rows = np.flatnonzero([data.draw(st.booleans()) for _ in windows])
    found = list_own_stops(negated, rows, np.full(len(windows), exact_time))
    # Between two microseconds no time is an end.
    times = [Fraction(positive.earliest_us)]
    if not exact_time:
        times = [Fraction(edge) + Fraction(1, 3) for edge in positive.edges_us[:-1]]
    for row in rows.tolist():
        mine = [
            (lo, hi)
            for owner, lo, hi in zip(*(it.tolist() for it in found), strict=True)
            if owner == row
        ]
        parts = to_candidates([Candidate(positive, windows[row])])[0][1]
        for t in times:
            expected = any(oracle.holds(t, t, part, exact=True) for part in parts)
            assert any(lo <= t <= hi for lo, hi in mine) == expected


def test_p_absence_with_fixed_ends_at_the_limits_of_time() -> None:
    """Ends of ±2**60, beside infinite ones, do not overflow."""
    limit, length = TIME_LIMIT_US, LENGTH_LIMIT_US
    for positive, time, box in [
        (
            uniform(-limit, -limit + length),
            uniform(limit - length, limit),
            Box(ALWAYS, Interval(limit - length // 2, limit)),
        ),
        (
            uniform(limit - length, limit),
            uniform(-limit, -limit + length),
            Box(Interval(None, 0), Interval(-limit, -limit + length // 2)),
        ),
        (
            uniform(limit - length, limit),
            uniform(limit - length, limit),
            Box(ALWAYS, positive=Interval(limit - length // 2, None)),
        ),
    ]:
        case = positive, [Candidate(time, (box,))]
        assert judge(*case) == Fraction(1, 2)
        columns = make_columns([case])
        for minimum, expected in [(Fraction(1, 2), True), (Fraction(51, 100), False)]:
            assert decide_absences(*columns, minimum).reported.tolist() == [expected]


def test_fixed_ends_out_of_range_are_refused() -> None:
    opens = np.zeros((1, 1, 4), np.bool_)
    for ends in ([0, 1, 2], [0, 1, 2, TIME_LIMIT_US + 1]):
        with pytest.raises(ValueError, match=r"^cuts: "):
            make_windows([[0]], [[1]], cuts=Cuts(np.array([[ends]]), opens))
    held = make_windows([[0]], [[1]], cuts=Cuts(np.array([[[0, INFINITE_US] * 2]]), opens))
    assert held.intervals(0) == (Box(Interval(0, 1), Interval(0, None), Interval(0, None)),)


def test_cases_that_differ_in_their_fixed_ends_are_computed_each() -> None:
    """Ties that differ only in their place are computed once; their fixed ends are compared."""
    length = LENGTH_LIMIT_US
    half = length // 2

    def case(at: int, end: int) -> Case:
        window = [(Box(ALWAYS, Interval(None, at + it)),) for it in (end, half, half)]
        return uniform(at, at + length), [Candidate(uniform(at, at + length), it) for it in window]

    # One microsecond more is beyond the precision of float64.
    given_cases = [case(0, half), case(10**9, half), case(0, half + 1), case(10**9, half - 1)]
    found = decide_absences(*make_columns(given_cases), Fraction(1, 8))
    assert found.counts["exact"] == 4
    assert found.reported.tolist() == [True, True, False, True]


def without_cuts(
    positives: object,  # noqa: ARG001 - as the function
    negated: list[Negated],
    barred: Barred | None,
) -> tuple[list[Negated], Barred | None]:
    """Return wrong entries: without their fixed ends."""
    return [replace(it, windows=it.windows._replace(cuts=None)) for it in negated], barred


def one_later(
    positives: InstantTable, negated: list[Negated], barred: Barred | None
) -> tuple[list[Negated], Barred | None]:
    """Return wrong entries: the last time of negated events is 1 us later."""
    moved = []
    for it in negated:
        if it.windows.cuts is None:
            moved.append(it)
            continue
        ends = it.windows.cuts.ends.copy()
        ends[..., 1] += (ends[..., 1] != INFINITE_US).astype(np.int64)
        cuts = Cuts(as_read_only(ends), it.windows.cuts.opens)
        moved.append(replace(it, windows=it.windows._replace(cuts=cuts)))
    return _RESOLVE(positives, moved, barred)


_RESOLVE = gathering._resolve_exact  # noqa: SLF001 - the function that the mutations replace


@pytest.mark.parametrize("wrong", [without_cuts, one_later])
def test_a_mutation_of_fixed_ends_is_caught(wrong: object) -> None:
    def fails(case: Case) -> bool:
        expected = judge(*case)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(gathering, "_resolve_exact", wrong)
            if expected == 0:
                return False
            return not decide_absences(*make_columns([case]), expected).reported[0]

    once = settings(max_examples=2000, phases=[Phase.generate], database=None)
    find(CASES, fails, settings=once)


def test_the_judge_of_fixed_ends_is_the_area_between_lines() -> None:
    """A triangle: 0 <= T_r - T_s and T_r <= 1, both uniform on [0, 2], is 1/8 of the square."""
    box = ((0, None, False, False), (None, 1, False, False), oracle.ALWAYS)
    assert oracle.probability(to_oracle(uniform(0, 2)), [(to_oracle(uniform(0, 2)), [box])]) == (
        Fraction(7, 8)
    )
