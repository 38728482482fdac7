"""Equalities that set the time of the result.

The result is named by its type: ``Alarm.rt.end = s.rt.end``. Its end is the maximum end of the
positive events, and its begin their minimum begin. An equality of WHERE that states this is true
for all results, and is not part of the normal form of a query. Other times are not supported.
"""

from __future__ import annotations

from dataclasses import replace

from correlation.event_query.language.normal import conjunction
from correlation.event_query.query import And, Extreme, Formula, Point, Query, Relation, Term


def without_result_times(query: Query) -> Query:
    """Return the query without the equalities that state the time of its result."""
    parts = query.where.parts if isinstance(query.where, And) else (query.where,)
    kept = [it for it in parts if not _states_time(query, it)]
    return query if len(kept) == len(parts) else replace(query, where=conjunction(kept))


def describe_result_times(query: Query) -> str:
    """Return how the time of the result may be written, for error messages."""
    ends = ", ".join(f"{it.alias}.rt.end" for it in query.positive)
    end = ends if len(query.positive) == 1 else f"max({ends})"
    return f"write `{query.type}.rt.end = {end}`, or leave it out"


def _states_time(query: Query, part: Formula) -> bool:
    if not isinstance(part, Relation) or part.operator != "=":
        return False
    sides = (part.left, part.right), (part.right, part.left)
    return any(_is_time(query, result, term) for result, term in sides)


def _is_time(query: Query, result: Term, term: Term) -> bool:
    """Return whether ``result = term`` sets the begin or the end of the result to its own value."""
    aliases = {event.alias for event in query.events}
    if not isinstance(result, Point) or result.alias != query.type or query.type in aliases:
        return False
    kind = "max" if result.side == "end" else "min"
    terms = term.terms if isinstance(term, Extreme) and term.kind == kind else (term,)
    return set(terms) == {Point(event.alias, result.side) for event in query.positive}
