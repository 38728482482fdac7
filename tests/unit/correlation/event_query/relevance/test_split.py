"""Negations pushed inwards, and the relations of each negated event."""

from __future__ import annotations

import pytest

from correlation.errors import InvalidFieldError
from correlation.event_query.query import (
    And,
    EventPattern,
    Extreme,
    Formula,
    Not,
    Or,
    Query,
    Relation,
)
from correlation.event_query.relevance.split import push_negations, split_formula
from tests.support.event_queries import begin, end
from tests.support.messages import naming

A_B = Relation(end("a"), "<=", end("b"))
R_A = Relation(begin("r"), "<", end("a"))
Q_A = Relation(begin("q"), "=", end("a"))


def query(where: Formula) -> Query:
    events = [EventPattern(name, "E", negated=name in "rq") for name in "abrq"]
    return Query("R", (), tuple(events), where)


@pytest.mark.parametrize(
    ("formula", "pushed"),
    [
        (Not(A_B), Relation(end("a"), ">", end("b"))),
        (Not(Not(A_B)), A_B),
        (
            Not(Q_A),
            Or((Relation(begin("q"), "<", end("a")), Relation(begin("q"), ">", end("a")))),
        ),
        (
            Not(And((A_B, Not(R_A)))),
            Or((Relation(end("a"), ">", end("b")), R_A)),
        ),
        (Not(Or(())), And(())),
    ],
)
def test_push_negations(formula: Formula, pushed: Formula) -> None:
    assert push_negations(formula) == pushed


def test_parts_belong_to_the_negated_event_that_they_mention() -> None:
    either = Or((A_B, R_A))
    split = split_formula(query(And((A_B, And((either, Q_A))))))
    assert split.positive == And((A_B,))
    assert split.negated == {"r": And((either,)), "q": And((Q_A,))}


def test_a_max_term_that_mentions_a_negated_event_is_one_part() -> None:
    relation = Relation(Extreme("max", (end("r"), end("a"))), "<=", end("b"))
    split = split_formula(query(relation))
    assert (split.positive, split.negated["r"]) == (And(()), And((relation,)))


def test_parts_of_a_negated_disjunction_are_separate() -> None:
    split = split_formula(query(Not(Or((Not(A_B), Not(R_A))))))
    assert (split.positive, split.negated["r"]) == (And((A_B,)), And((R_A,)))


@pytest.mark.parametrize(
    "formula", [Relation(end("r"), "<", end("q")), Or((R_A, Q_A)), Not(And((R_A, Q_A)))]
)
def test_a_part_with_two_negated_events_is_refused(formula: Formula) -> None:
    with pytest.raises(InvalidFieldError, match=naming("negated events r and q")):
        split_formula(query(formula))
