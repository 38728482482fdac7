"""Difference-bound matrices closed by shortest paths."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.errors import InvalidFieldError
from correlation.event_query.query import Point
from correlation.event_query.relevance.closure import Closure, StreamTimes
from correlation.event_query.relevance.normal_form import Atom
from tests.support.closures import TRUE_CLAUSE, close_clause
from tests.support.event_queries import ALARM_STREAMS, MINUTE, solution

S_BEGIN, S_END = Point("s", "begin"), Point("s", "end")
R_BEGIN, R_END = Point("r", "begin"), Point("r", "end")
WINDOW = frozenset({Atom(S_END, R_BEGIN, 0), Atom(R_BEGIN, S_END, 5 * MINUTE)})


def test_closure_of_the_running_example() -> None:
    instants = {"s": ALARM_STREAMS["Smoke"], "r": ALARM_STREAMS["Report"]}
    closure = close_clause(WINDOW, instants)
    assert closure.dist(R_END, S_END) == 0
    assert closure.dist(S_END, R_END) == 5 * MINUTE


def test_closure_without_declared_lengths() -> None:
    closure = close_clause(WINDOW, {"s": StreamTimes("s"), "r": StreamTimes("r")})
    assert closure.dist(R_END, S_END) == 0
    assert closure.dist(S_END, R_END) == math.inf
    assert closure.dist(S_BEGIN, S_END) == math.inf
    assert closure.dist(S_END, S_BEGIN) == 0


def test_closure_of_declared_lengths() -> None:
    closure = close_clause(TRUE_CLAUSE, {"s": StreamTimes("s", 2, 7)})
    assert (closure.dist(S_BEGIN, S_END), closure.dist(S_END, S_BEGIN)) == (7, -2)


def test_contradictory_clause_has_negative_infinite_distances() -> None:
    clause = frozenset({Atom(S_END, R_BEGIN, -1), Atom(R_END, S_END, 0)})
    closure = close_clause(clause, {"s": StreamTimes("s"), "r": StreamTimes("r")})
    assert closure.contradictory
    assert {closure.dist(v, p) for v in closure.points for p in closure.points} == {-math.inf}


@pytest.mark.parametrize("lengths", [(1, 0), (-1, None), (5, 4)])
def test_lengths_that_contradict_each_other_are_refused(lengths: tuple[int, int | None]) -> None:
    with pytest.raises(InvalidFieldError, match="declare 0 <= min_length <= max_length"):
        StreamTimes("s", *lengths)


POINTS = [Point("x", "begin"), Point("x", "end"), Point("y", "begin"), Point("y", "end")]
ATOMS = st.lists(
    st.builds(Atom, st.sampled_from(POINTS), st.sampled_from(POINTS), st.integers(-1, 2)).filter(
        lambda it: it.p != it.q
    ),
    max_size=6,
)
# Times relative to the first point.
GRID = list(product([0], *[range(-7, 8)] * 3))


@given(ATOMS)
def test_p_query_dist_is_the_least_upper_bound(atoms: list[Atom]) -> None:
    anchored = [Atom(POINTS[0], p, 7) for p in POINTS[1:]]
    closure = Closure((*anchored, *(Atom(p, POINTS[0], 7) for p in POINTS[1:]), *atoms))
    place = {p: i for i, p in enumerate(POINTS)}
    checks = [(place[p], place[q], bound) for p, q, bound, _ in closure.atoms]  # type: ignore[index]
    solutions = [t for t in GRID if all(t[p] - t[q] <= bound for p, q, bound in checks)]
    assert closure.contradictory == (not solutions)
    for v, p in product(POINTS, POINTS):
        found = max((t[place[p]] - t[place[v]] for t in solutions), default=-math.inf)
        assert closure.dist(v, p) == found


@given(atoms=ATOMS, highest=st.booleans())
def test_p_query_dist_is_attained_for_all_points_at_once(
    atoms: list[Atom], *, highest: bool
) -> None:
    closure = Closure((*(Atom(a, b, 9) for a in POINTS for b in POINTS if a != b), *atoms))
    times = solution(closure, POINTS[0], 100, highest=highest, within=9)
    assert closure.contradictory == (not times)
    if times:
        assert all(times[p] - times[q] <= bound for p, q, bound, _ in closure.atoms)
