"""Event queries for tests: the running example, random queries, and their form for the oracle."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from hypothesis import assume, reject
from hypothesis import strategies as st

from correlation.errors import InvalidFieldError
from correlation.event_query.language.checks import find_problems
from correlation.event_query.language.normal import normal_query
from correlation.event_query.query import (
    And,
    AttributePattern,
    Comparison,
    EventPattern,
    Extreme,
    Formula,
    Not,
    Or,
    OutputAttribute,
    Point,
    Query,
    Relation,
    Shifted,
    Term,
    Variable,
)
from correlation.event_query.relevance.analysis import (
    Relevance,
    analyse_relevance,
    may_end_before_it_begins,
)
from correlation.event_query.relevance.closure import Closure, StreamTimes
from correlation.event_query.relevance.inputs import Input
from correlation.event_query.relevance.normal_form import Atom, Node
from correlation.event_query.relevance.unbounded import UnboundedQueryError
from tests.oracle.event_queries import Event, Item, JudgedQuery, Pattern

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Events read so far, and future events.
Read = tuple[list[Event], list[Event]]
Times = dict[Node, int]
MINUTE = 60_000_000


def begin(alias: str, shift_us: int = 0) -> Term:
    """Return `alias.rt.begin`, shifted."""
    return Shifted(Point(alias, "begin"), shift_us) if shift_us else Point(alias, "begin")


def end(alias: str, shift_us: int = 0) -> Term:
    """Return `alias.rt.end`, shifted."""
    return Shifted(Point(alias, "end"), shift_us) if shift_us else Point(alias, "end")


_AREA = (AttributePattern("area", Variable("X")),)
# The running example of the source.
ALARM = Query(
    "Alarm",
    (OutputAttribute("area", Variable("X")),),
    (EventPattern("s", "Smoke", _AREA), EventPattern("r", "Report", _AREA, negated=True)),
    And(
        (
            Relation(end("s"), "<=", begin("r")),
            Relation(begin("r"), "<=", end("s", 5 * MINUTE)),
        )
    ),
)
ALARM_STREAMS = {
    "Smoke": StreamTimes("smoke", 0, 0),
    "Report": StreamTimes("report", 0, 0),
}


def judged(query: Query, types: Mapping[str, StreamTimes]) -> JudgedQuery:
    """Return a query in the form of the oracle."""
    return JudgedQuery(
        [_pattern(event, types) for event in query.positive],
        [_pattern(event, types) for event in query.negated],
        as_item(query.where),
        None if query.result_begin is None else as_item(query.result_begin),
        None if query.result_end is None else as_item(query.result_end),
    )


def as_item(part: Formula | Term) -> Item:
    """Return a formula or a term as nested tuples."""
    match part:
        case Relation(left, operator, right):
            return (operator, as_item(left), as_item(right))
        case And(parts) | Or(parts):
            kind = "and" if isinstance(part, And) else "or"
            return (kind, tuple(map(as_item, parts)))
        case Not(inner):
            return ("not", as_item(inner))
        case Extreme(kind, terms):
            return (kind, tuple(map(as_item, terms)))
        case Shifted(term, offset):
            return ("+", as_item(term), offset)
    return (part.side, part.alias)


def _pattern(event: EventPattern, types: Mapping[str, StreamTimes]) -> Pattern:
    variables = [(it.pattern, it.name) for it in event.attributes]
    return Pattern(
        event.alias,
        types[event.type].stream,
        tuple((it.name, name) for it, name in variables if isinstance(it, Variable)),
        tuple(
            (it.name, it.pattern.operator, it.pattern.constant)
            for it in event.attributes
            if isinstance(it.pattern, Comparison)
        ),
    )


# Streams of instants, of short events, and of events of any length.
SMALL_STREAMS = {
    "A": StreamTimes("a", 0, 0),
    "B": StreamTimes("b", 0, 2),
    "C": StreamTimes("c"),
    # Another type of the stream of instants.
    "D": StreamTimes("a", 0, 0),
}
_SHIFTS = st.integers(-3, 3)


def terms(aliases: Sequence[str]) -> st.SearchStrategy[Term]:
    """Return a strategy for temporal terms over some aliases, with min and max terms."""
    point: st.SearchStrategy[Term] = st.builds(
        Point, st.sampled_from(aliases), st.sampled_from(["begin", "end"])
    )
    return st.recursive(
        point | st.builds(Shifted, point, _SHIFTS),
        lambda inner: (
            st.builds(Extreme, st.sampled_from(["min", "max"]), st.tuples(inner, inner))
            | st.builds(Shifted, inner, _SHIFTS)
        ),
        max_leaves=3,
    )


@cache
def formulas(*aliases: str) -> st.SearchStrategy[Formula]:
    """Return a strategy for temporal formulas over some aliases."""
    term = terms(aliases)
    relation: st.SearchStrategy[Formula] = st.builds(
        Relation, term, st.sampled_from(["<", "<=", ">", ">=", "<=", ">=", "="]), term
    )
    return st.recursive(
        relation,
        lambda inner: (
            st.builds(Or, st.tuples(inner, inner))
            | st.builds(And, st.tuples(inner, inner))
            | st.builds(Not, inner)
        ),
        max_leaves=3,
    )


@st.composite
def queries(draw: st.DrawFn) -> Query:
    """Draw a query with 1 to 3 positive and 0 to 3 negated events, most of them bounded."""
    positive = [f"p{i}" for i in range(draw(st.integers(1, 3)))]
    negated = [f"n{i}" for i in range(draw(st.integers(0, 3)))]
    types = st.sampled_from(sorted(SMALL_STREAMS))
    parts: list[Formula] = []
    for number, alias in enumerate([*positive, *negated]):
        if number and draw(st.integers(0, 9)):
            other = draw(st.sampled_from(positive[:number]))
            parts += near(draw, alias, other)
    if draw(st.booleans()):
        parts.append(draw(formulas(*positive)))
    for alias in negated:
        if draw(st.booleans()):
            parts.append(draw(formulas(*positive, alias)))
    patterns = st.lists(st.just(AttributePattern("k", Variable("K"))), max_size=1)
    return with_times(
        draw,
        Query(
            "R",
            (),
            tuple(
                EventPattern(it, draw(types), tuple(draw(patterns)), negated=it in negated)
                for it in [*positive, *negated]
            ),
            And(tuple(parts)),
        ),
    )


def with_times(draw: st.DrawFn, query: Query) -> Query:
    """Return a query, of which one in two states the end of its result, or also its begin."""
    if draw(st.booleans()):
        return query
    time = terms([it.alias for it in query.positive])
    end = draw(time)
    before = st.builds(Shifted, st.just(end), st.integers(-3, 0))
    begin = draw(st.none() | time | before | before)
    return normal_query(replace(query, result_begin=begin, result_end=end))


def ordered(query: Query, types: Mapping[str, StreamTimes]) -> Query:
    """Return a query whose results do not end before they begin."""
    if not may_end_before_it_begins(query, types):
        return query
    return replace(query, where=And((query.where, Relation(query.begin, "<=", query.end))))


def bounded(query: Query, types: Mapping[str, StreamTimes]) -> Query:
    """Return a valid query with the relations that make it bounded, and order its results."""
    given = query
    try:
        analyse_relevance(query, types)
    except InvalidFieldError as error:
        parts = [query.where]
        for problem in error.problems:
            assume(isinstance(problem, UnboundedQueryError))
            assert isinstance(problem, UnboundedQueryError)
            parts += [Relation(p, "<=", Shifted(v, 2)) for p, v in problem.missing]
        query = replace(query, where=And(tuple(parts)))
    query = ordered(query, types)
    assume(not list(find_problems(query)))
    if query is not given:
        try:
            analyse_relevance(query, types)
        except InvalidFieldError as error:
            if any(isinstance(it, UnboundedQueryError) for it in error.problems):
                raise
            # The added relations lead to more alternatives than a query may have.
            reject()
    return query


def near(draw: st.DrawFn, alias: str, other: str) -> list[Formula]:
    """Return relations that bound an event by another on both sides, perhaps with a choice."""
    low, high = draw(_SHIFTS), draw(st.integers(0, 3))
    near: list[Formula] = [
        Relation(end(alias), "<=", end(other, low + high)),
        Relation(end(other, low), "<=", end(alias)),
    ]
    if draw(st.booleans()):
        return near
    return [Or((And(tuple(near)), Relation(end(alias), "=", end(other, draw(_SHIFTS)))))]


def solution(closure: Closure, x: Node, at: int, *, highest: bool, within: int = 8) -> Times:
    """Return times that satisfy a clause with x at a time; {} without times within a distance.

    The times are the lowest (or highest) that satisfy the clause. A point has at most the given
    distance from x where the clause does not bound it.
    """
    near = [
        atom for p in closure.points if p != x for atom in (Atom(p, x, within), Atom(x, p, within))
    ]
    bounded = Closure((*closure.atoms, *near))
    if bounded.contradictory:
        return {}
    if highest:
        return {p: at + int(bounded.dist(x, p)) for p in closure.points}
    return {p: at - int(bounded.dist(p, x)) for p in closure.points}


def events_at(inputs: Sequence[Input], times: Times, first_id: int = 0) -> list[Event]:
    """Return one event per input whose points have times, all with the same key."""
    return [
        Event(
            it.times.stream,
            times[Point(it.alias, "begin")],
            times[Point(it.alias, "end")],
            (("k", True),),
            first_id + number,
        )
        for number, it in enumerate(inputs)
        if Point(it.alias, "begin") in times
    ]


@st.composite
def events(draw: st.DrawFn, relevance: Relevance, progress: Mapping[str, int]) -> Read:
    """Draw events: combinations that satisfy a clause, at or near a bound, and others.

    Events after the progress of their stream are read now or in future.
    """
    found: list[Event] = []
    bound = relevance.progress.value(progress)
    for number in range(draw(st.integers(0, 3))):
        it = draw(st.sampled_from(relevance.inputs))
        closures = [closure for closure in it.closures if not closure.contradictory]
        if closures:
            x = draw(st.sampled_from(relevance.inputs))
            stamp = x.stamp if x.stamp in closures[0].points else it.stamp
            near = bound if draw(st.booleans()) else progress[x.times.stream]
            at = draw(st.integers(-1, 3)) + int(near)
            highest = draw(st.booleans())
            times = solution(draw(st.sampled_from(closures)), stamp, at, highest=highest)
            found += events_at(relevance.inputs, times, 100 * number)
    lengths = {times.stream: times.max_length_us for times in SMALL_STREAMS.values()}
    for number in range(draw(st.integers(0, 3))):
        stream = draw(st.sampled_from(sorted(lengths)))
        finish = progress[stream] + draw(st.integers(-6, 6))
        longest = lengths[stream]
        length = draw(st.integers(0, 6 if longest is None else longest))
        key = (("k", draw(st.booleans())),)
        found.append(Event(stream, finish - length, finish, key, 1000 + number))
    future = [it for it in found if it.end > progress[it.stream] and draw(st.booleans())]
    return [it for it in found if it not in future], future
