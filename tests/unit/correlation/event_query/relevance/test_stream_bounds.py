"""Relevance formulas are the negations of stream bound formulas, as in the source."""

from __future__ import annotations

import math

import pytest

from correlation.event_query.query import Extreme, Point, Shifted, Term
from correlation.event_query.relevance.closure import Closure, StreamTimes
from correlation.event_query.relevance.keep import KeepFunction, keep_function
from correlation.event_query.relevance.normal_form import Atom
from correlation.event_query.relevance.stream_bounds import (
    Above,
    Bottom,
    BoundAnd,
    Bounded,
    BoundOr,
    RelevanceAnd,
    RelevanceFormula,
    RelevanceOr,
    StreamBound,
    Top,
    relevance_formula,
    results_until,
)
from tests.support.closures import TRUE_CLAUSE, close_clause

P, Q = Point("p", "end"), Point("q", "end")


@pytest.mark.parametrize(
    ("bound", "relevance"),
    [
        (Top(), Bottom()),
        (Bounded(P, "b"), Above(P, "b")),
        (Bounded(P, "b", 5), Above(P, "b", 5)),
        (
            BoundOr((Bounded(P, "b1"), Bounded(Q, "b2"))),
            RelevanceAnd((Above(P, "b1"), Above(Q, "b2"))),
        ),
        (
            BoundAnd((Bounded(P, "b1"), BoundOr((Top(), Bounded(Q, "b2"))))),
            RelevanceOr((Above(P, "b1"), RelevanceAnd((Bottom(), Above(Q, "b2"))))),
        ),
    ],
)
def test_relevance_formula(bound: StreamBound, relevance: RelevanceFormula) -> None:
    assert relevance_formula(bound) == relevance


@pytest.mark.parametrize(
    ("time", "bound"),
    [
        (P, Bounded(P, "b")),
        (Extreme("max", (P, Q)), BoundAnd((Bounded(P, "b"), Bounded(Q, "b")))),
        (Shifted(P, 5), Bounded(P, "b", 5)),
        (Extreme("max", (Shifted(P, -1),)), Bounded(P, "b", -1)),
        (
            Shifted(Extreme("min", (P, Shifted(Q, 2))), 5),
            BoundOr((Bounded(P, "b", 5), Bounded(Q, "b", 7))),
        ),
    ],
)
def test_results_until_a_bound_have_their_time_until_the_bound(
    time: Term, bound: StreamBound
) -> None:
    assert results_until(time, "b", lambda point: point) == bound


EVENTS = {"p": StreamTimes("p", 0, 0), "q": StreamTimes("q", 0, 0)}
# q <= p + 4 and p <= q + 1, and a contradiction.
NEAR = close_clause(frozenset({Atom(Q, P, 4), Atom(P, Q, 1)}), EVENTS)
FREE = close_clause(TRUE_CLAUSE, EVENTS)
NEVER = Closure((*NEAR.atoms, Atom(Q, P, -2)))


@pytest.mark.parametrize(
    ("formula", "closures", "offset"),
    [
        (Above(P, "b"), [NEAR], 0),
        (Above(Q, "b"), [NEAR], -4),
        (Above(Q, "b"), [FREE], -math.inf),
        (Above(Q, "b"), [NEVER], math.inf),
        (Above(Q, "b"), [NEAR, NEVER], -4),
        (Above(Q, "b"), [NEAR, FREE], -math.inf),
        (Above(Q, "b", 3), [NEAR], -7),
        # Both parts hold, so one alone is enough: less is kept than by the source's minimum.
        (RelevanceAnd((Above(P, "b"), Above(Q, "b"))), [NEAR], 0),
        (RelevanceOr((Above(P, "b"), Above(Q, "b"))), [NEAR], -4),
    ],
)
def test_keep_function_of_the_time_p(
    formula: RelevanceFormula, closures: list[Closure], offset: float
) -> None:
    assert keep_function(formula, closures, P).offsets == {"b": offset}


def test_keep_function_is_the_minimum_over_several_bounds() -> None:
    formula = RelevanceAnd((Above(P, "b1"), Above(Q, "b2")))
    found = keep_function(formula, [NEAR], P)
    assert found == KeepFunction({"b1": 0, "b2": -4})
    assert (found.value({"b1": 10, "b2": 11}), found.value({"b1": 10, "b2": 99})) == (7, 10)


def test_keep_function_of_bottom_is_infinite() -> None:
    found = keep_function(Bottom(), [NEAR], P)
    assert found.value({}) == math.inf
