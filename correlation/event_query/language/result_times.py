"""Time of the result, from equalities of the query.

The result is named by its type: ``Alarm.rt.end = s.rt.end + 5 min``. At the top level of WHERE,
each of ``Alarm.rt.begin = t`` and ``Alarm.rt.end = t`` may be stated once, with the sides in any
order; t is a term over positive events. Without them the begin is the minimum begin and the end the
maximum end of the positive events. The equalities are not relations among events: they are fields
of the `Query`, not parts of its formula. Text and JSON form write them at the end of WHERE.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from correlation.event_query.language.errors import quoted
from correlation.event_query.language.grammar import KEYWORDS, NAME
from correlation.event_query.language.normal import conjunction, is_default_time
from correlation.event_query.query import (
    And,
    Formula,
    Point,
    Query,
    Relation,
    Side,
    Term,
    points_of,
    relations_of,
)


class TimeProblem(NamedTuple):
    """A problem of the time of the result: its part, what is wrong, and how to correct it."""

    part: object
    problem: str
    remedy: str


def with_result_times(query: Query) -> Query:
    """Return the query with its result times taken from its formula.

    Equalities that are not valid stay in the formula, where `check_result_times` finds them.
    """
    kept: list[Formula] = []
    found: dict[Side, Term] = {}
    for part in _parts_of(query.where):
        stated = _stated(query, part)
        if stated is None or stated[0] in found or not _can_be_time(query, stated[1]):
            kept.append(part)
        else:
            found[stated[0]] = stated[1]
    if not found:
        return query
    own = {side: it for side, it in found.items() if not is_default_time(query, side, it)}
    return replace(
        query,
        where=conjunction(kept),
        result_begin=own.get("begin"),
        result_end=own.get("end"),
    )


def formula_with_times(query: Query) -> Formula:
    """Return the formula of a query together with the equalities of its result times."""
    stated: list[tuple[Side, Term | None]] = [
        ("begin", query.result_begin),
        ("end", query.result_end),
    ]
    equalities = [
        Relation(Point(query.type, side), "=", term) for side, term in stated if term is not None
    ]
    return conjunction([query.where, *equalities]) if equalities else query.where


def find_time_places(query: Query) -> dict[Side, Relation]:
    """Return the relations of a formula that state the begin and the end of the result."""
    found: dict[Side, Relation] = {}
    for part in _parts_of(query.where):
        stated = _stated(query, part)
        if stated is not None and isinstance(part, Relation):
            found.setdefault(stated[0], part)
    return found


def check_result_times(query: Query) -> Iterator[TimeProblem]:
    """Yield the mentions of the result that do not state its time, one for each relation."""
    stated_times = query.result_begin, query.result_end
    if stated_times != (None, None) and not _is_named(query):
        yield TimeProblem(query, *_unnamed(query))
    for part in _parts_of(query.where):
        yield from _check_part(query, part)


def _check_part(query: Query, part: Formula) -> Iterator[TimeProblem]:
    stated = _stated(query, part)
    if stated is not None:
        side, term = stated
        found = _problem_of(query, term)
        if found is not None:
            yield found
        elif isinstance(part, Relation) and _can_be_time(query, term):
            point = part.left if _is_result(query, part.left) else part.right
            problem = f"the {side} of the result {query.type} is stated twice"
            yield TimeProblem(point, problem, "keep one of both equalities")
        return
    for relation in relations_of(part):
        sides = (*points_of(relation.left), *points_of(relation.right))
        mentioned = next((it for it in sides if _is_result(query, it)), None)
        if mentioned is not None:
            yield TimeProblem(
                mentioned,
                f"the time of the result {query.type} is not an equality of its own: it can only "
                "be stated by equalities at the top level of WHERE",
                describe_result_time(query, mentioned.side),
            )


def describe_result_time(query: Query, side: Side) -> str:
    """Return how the time of the result may be written, for error messages."""
    points = [f"{it.alias}.rt.{side}" for it in query.positive]
    kind = "min" if side == "begin" else "max"
    term = points[0] if len(points) == 1 else f"{kind}({', '.join(points)})"
    return f"write `{query.type}.rt.{side} = {term}` or another term, or leave it out"


def _can_be_time(query: Query, term: Term) -> bool:
    """Return whether a term can be a time of the result."""
    positive = {event.alias for event in query.positive}
    return _is_named(query) and all(it.alias in positive for it in points_of(term))


def _problem_of(query: Query, term: Term) -> TimeProblem | None:
    """Return why a term cannot be a time of the result, unless an alias is unknown."""
    if not _is_named(query):
        return TimeProblem(query, *_unnamed(query))
    negated = {event.alias for event in query.negated}
    for point in points_of(term):
        if point.alias in negated:
            return TimeProblem(
                point,
                f"the time of the result {query.type} depends on {quoted(point.alias)}, a negated "
                "event, which does not exist if there is a result",
                "use times of positive events",
            )
        if point.alias == query.type:
            return TimeProblem(
                point,
                f"the time of the result {query.type} depends on itself",
                "use times of positive events",
            )
    return None


def _stated(query: Query, part: Formula) -> tuple[Side, Term] | None:
    """Return which time of the result a part states, and its term."""
    if isinstance(part, Relation) and part.operator == "=":
        for result, term in ((part.left, part.right), (part.right, part.left)):
            if isinstance(result, Point) and _is_result(query, result):
                return result.side, term
    return None


def _is_result(query: Query, term: Term) -> bool:
    """Return whether a term is a time of the result; an event may have the name of the type."""
    if not isinstance(term, Point) or term.alias != query.type:
        return False
    return all(event.alias != query.type for event in query.events)


def _is_named(query: Query) -> bool:
    """Return whether WHERE can name the result."""
    valid = NAME.fullmatch(query.type) is not None and query.type.lower() not in KEYWORDS
    return valid and all(event.alias != query.type for event in query.events)


def _unnamed(query: Query) -> tuple[str, str]:
    return (
        f"the result {quoted(query.type)} has a time, but WHERE cannot name it",
        "use a type of A-Z, a-z, 0-9 and '_' that is neither a keyword nor an alias",
    )


def _parts_of(formula: Formula) -> tuple[Formula, ...]:
    return formula.parts if isinstance(formula, And) else (formula,)
