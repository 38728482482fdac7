"""The disjunctive normal form is equivalent to the formula."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.errors import InvalidFieldError
from correlation.event_query.query import (
    FALSE,
    TRUE,
    And,
    Extreme,
    Formula,
    Or,
    Point,
    Relation,
    Shifted,
)
from correlation.event_query.relevance.closure import StreamTimes
from correlation.event_query.relevance.normal_form import (
    Atom,
    Clause,
    disjunctive_normal_form,
)
from correlation.event_query.relevance.split import push_negations
from tests.oracle.event_queries import Event, holds
from tests.support.closures import TRUE_CLAUSE, close_clause
from tests.support.event_queries import as_item, begin, end, formulas

A, B, C = (Point(name, "end") for name in "abc")


@pytest.mark.parametrize(
    ("formula", "clauses"),
    [
        (Relation(A, "<=", Shifted(B, 5)), [{Atom(A, B, 5)}]),
        (Relation(Shifted(A, 2), "<", Shifted(B, 5)), [{Atom(A, B, 2)}]),
        (Relation(A, ">", B), [{Atom(B, A, -1)}]),
        (Relation(A, "=", B), [{Atom(A, B, 0), Atom(B, A, 0)}]),
        (Relation(Extreme("min", (A, B)), "<=", C), [{Atom(A, C, 0)}, {Atom(B, C, 0)}]),
        (Relation(Extreme("max", (A, B)), "<=", C), [{Atom(A, C, 0), Atom(B, C, 0)}]),
        (Relation(C, "<=", Extreme("min", (A, B))), [{Atom(C, A, 0), Atom(C, B, 0)}]),
        (Relation(C, "<=", Extreme("max", (A, B))), [{Atom(C, A, 0)}, {Atom(C, B, 0)}]),
        # An atom of a point with itself is true or false.
        (Relation(A, "<=", A), [TRUE_CLAUSE]),
        (Relation(A, "<", A), []),
        # Two atoms that contradict each other.
        (And((Relation(A, "<", B), Relation(B, "<", A))), []),
        (TRUE, [TRUE_CLAUSE]),
        (FALSE, []),
    ],
)
def test_clauses_of_a_formula(formula: Formula, clauses: list[Clause]) -> None:
    assert [set(clause) for clause in disjunctive_normal_form(formula)] == [*map(set, clauses)]


@pytest.mark.parametrize(
    ("formula", "clauses"),
    [
        # Between exact times < is ≤ minus one microsecond, beside an uncertain instant it is open.
        (Relation(A, "<", B), [{Atom(A, B, 0, open=True)}]),
        (Relation(Shifted(C, 2), ">", B), [{Atom(B, C, 2, open=True)}]),
        (Relation(A, "<", C), [{Atom(A, C, -1)}]),
        (And((Relation(A, "<", B), Relation(A, "<=", B))), [{Atom(A, B, 0, open=True)}]),
        (And((Relation(A, "<", B), Relation(A, "<=", Shifted(B, -1)))), [{Atom(A, B, -1)}]),
        # Between a and a + 1 µs there are times if b is uncertain, and none if it is exact.
        (
            And((Relation(A, "<", B), Relation(B, "<", Shifted(A, 1)))),
            [{Atom(A, B, 0, open=True), Atom(B, A, 1, open=True)}],
        ),
        (And((Relation(A, "<", C), Relation(C, "<", Shifted(A, 1)))), []),
        (And((Relation(A, "<", B), Relation(B, "<=", A))), []),
        # Begin and end of an instant are equal.
        (Relation(Point("b", "begin"), "<", B), []),
        (Relation(Point("b", "begin"), "<=", B), [TRUE_CLAUSE]),
        (Relation(Point("b", "begin"), "<", Shifted(B, 1)), [TRUE_CLAUSE]),
    ],
)
def test_clauses_of_a_formula_with_an_uncertain_instant(
    formula: Formula, clauses: list[Clause]
) -> None:
    assert [set(it) for it in disjunctive_normal_form(formula, {"b"})] == [*map(set, clauses)]


def test_two_strict_relations_of_uncertain_instants_bound_a_chain_openly() -> None:
    chain = And((Relation(A, "<", B), Relation(B, "<", C)))
    (clause,) = disjunctive_normal_form(chain, {"a", "b", "c"})
    closure = close_clause(clause, {name: StreamTimes(name, 0, 0, 5) for name in "abc"})
    # With whole microseconds the bound would be -2.
    assert closure.dist(C, A) == 0


TIMES = st.tuples(st.integers(-5, 5), st.integers(-5, 5))


@given(formulas("a", "b", "c"), st.lists(TIMES, min_size=3, max_size=3))
def test_clauses_hold_when_the_formula_holds(
    formula: Formula, times: list[tuple[int, int]]
) -> None:
    events = {name: Event(name, *pair) for name, pair in zip("abc", times, strict=True)}
    at = {Point(name, "begin"): event.begin for name, event in events.items()} | {
        Point(name, "end"): event.end for name, event in events.items()
    }
    clauses = disjunctive_normal_form(push_negations(formula))
    by_clauses = any(
        all(at[p] - at[q] <= bound for p, q, bound, _ in clause)  # type: ignore[index]
        for clause in clauses
    )
    assert by_clauses == holds(as_item(formula), events)


def test_too_many_clauses_are_refused_before_they_are_built() -> None:
    unequal = [
        Or((Relation(begin(f"a{i}"), "<", end("b")), Relation(begin(f"a{i}"), ">", end("b", 5))))
        for i in range(60)
    ]
    with pytest.raises(InvalidFieldError, match="has more than 256 alternatives"):
        disjunctive_normal_form(And(tuple(unequal)))
    assert len(disjunctive_normal_form(And(tuple(unequal[:8])))) == 256


def test_contradictory_products_do_not_count_as_clauses() -> None:
    either = Or((Relation(A, "<", B), Relation(B, "<", A)))
    assert len(disjunctive_normal_form(And((either,) * 60))) == 2
