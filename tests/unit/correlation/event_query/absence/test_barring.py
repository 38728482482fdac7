"""Times of T_s at which a positive event is stopped with certainty."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.event_query.absence.barring import Barred, merge_barred
from correlation.event_query.absence.deciding import decide_absences
from correlation.event_query.absence.exact import Candidate
from correlation.resources.histogram import Histogram
from tests.oracle import absence as oracle
from tests.unit.correlation.event_query.absence.absence_strategies import (
    cases,
    make_columns,
    make_instants,
    thresholds,
    to_candidates,
    to_oracle,
)

# Barred intervals as parts of the length of T_s, from a little before to a little after it.
_PARTS = st.lists(st.tuples(st.integers(-2, 12), st.integers(-1, 6)), max_size=4)


def make_barred(ends: list[list[tuple[int, int]]]) -> Barred:
    """Return the intervals of each positive event as columns."""
    rows = [(i, *pair) for i, pairs in enumerate(ends) for pair in pairs]
    columns = np.array(rows, np.int64).reshape(-1, 3)
    return Barred(columns[:, 0], columns[:, 1], columns[:, 2])


def remainder(instant: oracle.Instant, barred: list[tuple[int, int]]) -> oracle.Instant:
    """Return the parts of an instant outside the intervals, with their masses."""
    cuts = {edge for pair in barred for edge in pair}
    found = []
    for lo, hi, mass in instant:
        edges = sorted({lo, hi} | {it for it in cuts if lo < it < hi})
        for left, right in pairwise(edges):
            if not any(first <= left and right <= last for first, last in barred):
                found.append((left, right, mass * (right - left) / (hi - lo)))
    return found


def judge(
    positive: Histogram, candidates: list[Candidate], barred: list[tuple[int, int]]
) -> Fraction:
    """Return the probability from the distribution without the barred times."""
    instant = to_oracle(positive)
    if positive.length_us == 0:
        time = positive.earliest_us
        if any(lo <= time <= hi for lo, hi in barred):
            return Fraction(0)
    else:
        instant = remainder(instant, barred)
        if not instant:
            return Fraction(0)
    return oracle.probability(
        instant,
        to_candidates(candidates),
    )


@given(st.lists(st.tuples(cases(3), _PARTS), min_size=1, max_size=3), thresholds, st.data())
def test_p_absence_barred_decisions_are_the_judges(
    worlds: list[tuple[tuple[Histogram, list[Candidate]], list[tuple[int, int]]]],
    threshold: Fraction,
    data: st.DataObject,
) -> None:
    ends, expected = [], []
    for (positive, candidates), parts in worlds:
        step = max(positive.length_us // 10, 1)
        begins = [(positive.earliest_us + lo * step, length * step) for lo, length in parts]
        ends.append([(lo, lo + length) for lo, length in begins])
        expected.append(judge(positive, candidates, ends[-1]))
    positives, negated = make_columns([case for case, _ in worlds])
    possible = [it for it in expected if it > 0]
    # Perhaps a tie.
    threshold = data.draw(st.sampled_from([threshold, *possible]))
    found = decide_absences(positives, negated, threshold, make_barred(ends))
    assert found.reported.tolist() == [it >= threshold for it in expected]
    for i in np.flatnonzero(found.reported).tolist():
        assert found.probability[i] == pytest.approx(float(expected[i]), abs=2.0**-36)


def test_intervals_are_cut_and_merged_by_positive_event() -> None:
    positives = make_instants(
        [Histogram.from_interval(*it) for it in [(0, 10), (0, 10), (5, 5), (5, 5)]]
    )
    barred = make_barred([[(4, 6), (-5, 2), (6, 8), (9, 9)], [(6, 20), (0, 6)], [(5, 5)], [(6, 4)]])
    stopped, merged = merge_barred(positives, barred)
    assert stopped.tolist() == [False, True, True, False]
    assert [it.tolist() for it in merged] == [[0, 0], [0, 4], [2, 8]]


def test_half_of_the_times_is_barred_by_intervals_that_overlap() -> None:
    positives = make_instants([Histogram.from_interval(0, 8)])
    barred = make_barred([[(0, 3), (2, 4)]])
    assert decide_absences(positives, [], Fraction(1, 2), barred).reported.tolist() == [True]
    more = make_barred([[(0, 3), (2, 5)]])
    assert decide_absences(positives, [], Fraction(1, 2), more).reported.tolist() == [False]
