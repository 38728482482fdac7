"""Queries that need unbounded memory are refused, with the relations that mend them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given

from correlation.errors import InvalidFieldError
from correlation.event_query.query import (
    FALSE,
    TRUE,
    And,
    EventPattern,
    Extreme,
    Formula,
    Or,
    Point,
    Query,
    Relation,
    Shifted,
)
from correlation.event_query.relevance.analysis import analyse_relevance
from correlation.event_query.relevance.closure import StreamTimes
from correlation.event_query.relevance.unbounded import UnboundedQueryError
from tests.support.event_queries import SMALL_STREAMS, begin, end, queries
from tests.support.messages import assert_names

if TYPE_CHECKING:
    from collections.abc import Sequence

INSTANTS = {name: StreamTimes(name.lower(), 0, 0) for name in "ABDRQ"}
LASTING = {name: StreamTimes(name.lower()) for name in "ABRQ"}


def query(aliases: str, where: Formula) -> Query:
    """Return a query over events named by letters; r and q are negated."""
    events = [EventPattern(name, name.upper(), negated=name in "rq") for name in aliases]
    return Query("Result", (), tuple(events), where)


def refusals(found: Query, types: dict[str, StreamTimes]) -> list[tuple[str, str, str]]:
    """Return alias, stream and remedy of each refused input."""
    with pytest.raises(InvalidFieldError) as caught:
        analyse_relevance(found, types)
    problems = caught.value.problems
    assert all(isinstance(it, UnboundedQueryError) for it in problems)
    return [(it.alias, it.stream, it.remedy) for it in problems]  # type: ignore[attr-defined]


def test_a_positive_event_without_a_bound_of_the_other() -> None:
    after = Relation(end("a"), "<=", begin("b"))
    assert refusals(query("ab", after), INSTANTS) == [
        ("a", "a", "add `b.rt.begin <= a.rt.end + C` with a constant C")
    ]


def test_unrelated_positive_events_bound_neither() -> None:
    assert refusals(query("ab", TRUE), INSTANTS) == [
        ("a", "a", "add `b.rt.begin <= a.rt.end + C` with a constant C"),
        ("b", "b", "add `a.rt.begin <= b.rt.end + C` with a constant C"),
    ]


@pytest.mark.parametrize(
    ("aliases", "where", "relations"),
    [
        # Three components that no relation connects: a cycle.
        ("abd", TRUE, [("b", "a"), ("d", "b"), ("a", "d")]),
        # a <= b <= d bounds a by b, and b by d: one relation closes the cycle.
        (
            "abd",
            And((Relation(end("a"), "<=", end("b")), Relation(end("b"), "<=", end("d")))),
            [("d", "a")],
        ),
        # Nothing follows a and d, so b must follow each of them within a bound.
        (
            "abd",
            And((Relation(end("a"), "<=", end("b")), Relation(end("d"), "<=", end("b")))),
            [("b", "a"), ("b", "d")],
        ),
        # The relations that bound the positive events bound the negated one as well.
        (
            "abdr",
            And((Relation(end("r"), ">=", end("d")), Relation(end("r"), "<=", end("a", 5)))),
            [("b", "a"), ("d", "b"), ("a", "d")],
        ),
        # The relations of the first alternative are assumed for the second.
        (
            "abd",
            Or((Relation(end("a"), "<=", end("b")), Relation(end("b"), "<=", end("d")))),
            [("d", "a"), ("b", "d"), ("a", "b")],
        ),
    ],
)
def test_as_few_relations_as_possible_are_named(
    aliases: str, where: Formula, relations: list[tuple[str, str]]
) -> None:
    with pytest.raises(InvalidFieldError) as caught:
        analyse_relevance(query(aliases, where), INSTANTS)
    named = [(p.alias, v.alias) for it in caught.value.problems for p, v in it.missing]  # type: ignore[attr-defined]
    assert sorted(named) == sorted(relations)


def test_a_negated_event_that_may_come_at_any_later_time() -> None:
    after = Relation(end("a"), "<=", begin("r"))
    with pytest.raises(UnboundedQueryError, match="at any time after") as caught:
        analyse_relevance(query("ar", after), INSTANTS)
    assert (caught.value.field, caught.value.alias) == ("events[1]", "r")
    assert_names(caught.value.remedy, "add `r.rt.begin <= a.rt.end + C`")


def test_a_negated_event_that_may_stop_any_later_combination() -> None:
    before = Relation(end("r"), "<=", begin("a"))
    with pytest.raises(UnboundedQueryError, match="kept forever") as caught:
        analyse_relevance(query("ar", before), INSTANTS)
    assert (caught.value.field, caught.value.alias) == ("events[1]", "r")
    assert_names(caught.value.remedy, "add `a.rt.begin <= r.rt.end + C`")


def test_events_of_any_length_need_a_bound_of_their_end() -> None:
    window = And(
        (
            Relation(end("a"), "<=", begin("r")),
            Relation(begin("r"), "<=", end("a", 5)),
        )
    )
    remedy = (
        "add `r.rt.end <= a.rt.end + C` with a constant C, or declare the max_length of stream r"
    )
    assert refusals(query("ar", window), LASTING) == [("r", "r", remedy)]
    assert (
        analyse_relevance(query("ar", window), LASTING | {"R": StreamTimes("r", 0, 3)}).leads["r"]
        == -8
    )


def test_relations_of_positive_events_are_not_repeated_for_negated_events() -> None:
    near_a = Relation(begin("r"), "=", end("a"))
    assert refusals(query("abr", near_a), INSTANTS) == [
        ("a", "a", "add `b.rt.begin <= a.rt.end + C` with a constant C"),
        ("b", "b", "add `a.rt.begin <= b.rt.end + C` with a constant C"),
    ]


def test_one_clause_without_a_bound_suffices() -> None:
    either = Or((Relation(begin("r"), "=", end("a")), Relation(begin("r"), "<=", end("a"))))
    assert refusals(query("ar", either), INSTANTS) == [
        ("r", "r", "add `a.rt.begin <= r.rt.end + C` with a constant C")
    ]


def test_relations_of_a_negated_event_do_not_bound_positive_events() -> None:
    near_both = And(tuple(Relation(begin("r"), "=", end(name)) for name in "ab"))
    assert [alias for alias, _, _ in refusals(query("abr", near_both), INSTANTS)] == ["a", "b"]


def test_a_minimum_is_a_bound_of_one_event_only() -> None:
    first = Relation(Extreme("max", (end("a"), end("b"))), "<=", Shifted(begin("a"), 5))
    assert [alias for alias, _, _ in refusals(query("ab", first), INSTANTS)] == ["b"]


def test_an_event_that_never_matters_needs_no_bound() -> None:
    never = And((Relation(begin("r"), "<", end("a")), Relation(end("r"), ">", begin("a", 5))))
    found = analyse_relevance(query("ar", never), INSTANTS)
    assert (found.leads["r"], found.keep_values(3)["r"]) == (float("inf"), float("inf"))
    assert not analyse_relevance(query("ab", FALSE), INSTANTS).satisfiable


def test_a_query_without_positive_events_is_refused() -> None:
    with pytest.raises(InvalidFieldError, match="a positive event"):
        analyse_relevance(query("r", TRUE), INSTANTS)


def test_a_relation_that_a_later_one_makes_needless_is_not_named() -> None:
    # The end of q is before the end of p in one alternative, and before its begin in the other.
    either = Or(
        (Relation(begin("p"), "=", end("q", 1)), Relation(end("p"), "=", begin("q", 1))),
    )
    events = tuple(EventPattern(it, "C", negated=it == "n") for it in ("p", "q", "n"))
    with pytest.raises(InvalidFieldError) as caught:
        analyse_relevance(Query("R", (), events, either), SMALL_STREAMS)
    named = [it for problem in caught.value.problems for it in missing_of(problem)]
    assert (end("p"), end("n")) in named
    assert (begin("p"), end("n")) not in named


@given(queries())
def test_a_refused_query_needs_each_of_the_relations_that_its_refusal_names(found: Query) -> None:
    try:
        analyse_relevance(found, SMALL_STREAMS)
    except InvalidFieldError as error:
        assume("alternatives" not in error.problem)
        named = [it for problem in error.problems for it in missing_of(problem)]
        assert named
        analyse_relevance(added(found, named), SMALL_STREAMS)
        for one in named:
            rest = [it for it in named if it != one]
            with pytest.raises(InvalidFieldError) as caught:
                analyse_relevance(added(found, rest), SMALL_STREAMS)
            assert all(isinstance(it, UnboundedQueryError) for it in caught.value.problems)


def missing_of(problem: InvalidFieldError) -> Sequence[tuple[Point, Point]]:
    """Return the relations that a refusal names, as (p, v)."""
    return problem.missing if isinstance(problem, UnboundedQueryError) else ()


def added(found: Query, named: Sequence[tuple[Point, Point]]) -> Query:
    """Return a query with relations that were missing; the constant is beyond all others."""
    more = [Relation(p, "<=", Shifted(v, 1000)) for p, v in named]
    return replace(found, where=And((found.where, *more)))
