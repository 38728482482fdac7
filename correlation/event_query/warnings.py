"""Warnings on queries that can never have a result, although they are valid.

A query whose relations contradict each other has no result. Neither has a query in which a positive
event s stops itself: a negated alias r of the same stream has only patterns that s has too, and s
in the place of r satisfies the relations of r whenever it is part of a result, i.e. G+ and not
G_r[s/r] contradict each other (`relevance.split`). This holds for uncertain instants, too: s in the
place of r has the same time, whichever it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from correlation.errors import InvalidFieldError
from correlation.event_query.checking import relevance_of, times_of
from correlation.event_query.condition import EventQueryCondition
from correlation.event_query.query import (
    And,
    EventPattern,
    Formula,
    Not,
    Or,
    Point,
    Query,
    Relation,
    Term,
    map_points,
)
from correlation.event_query.relevance.closure import StreamTimes
from correlation.event_query.relevance.inputs import read_inputs
from correlation.event_query.relevance.split import split_formula
from correlation.event_query.relevance.work import Work
from correlation.resources.streams import Stream

# Maximum number of steps for one pair of events, about 50 ms: a longer analysis warns of nothing.
_STEPS = 600_000


def find_warnings(condition: EventQueryCondition, streams: Mapping[str, Stream]) -> list[str]:
    """Return why a query can never have a result, as sentences with remedies.

    Parameters
    ----------
    condition : EventQueryCondition
        A condition that its streams support.
    streams : mapping of name to Stream
        Its streams.
    """
    if not relevance_of(condition, streams).satisfiable:
        return ["no events can satisfy the relations: the query never has a result; correct WHERE"]
    return list(_stopped_by_themselves(condition, streams))


def _stopped_by_themselves(
    condition: EventQueryCondition, streams: Mapping[str, Stream]
) -> Iterator[str]:
    query, stream_of = condition.query, condition.stream_of
    times = {
        name: replace(it, uncertainty_us=0) for name, it in times_of(condition, streams).items()
    }
    for negated in query.negated:
        for positive in query.positive:
            name = stream_of[positive.alias]
            if name != stream_of[negated.alias]:
                continue
            if set(negated.attributes) <= set(positive.attributes) and _always_stops(
                query, times, negated, positive
            ):
                yield (
                    f"event {positive.alias} also is an event {negated.alias}, and stops itself: "
                    f"the query never has a result; write < or > where {negated.alias} and "
                    f"{positive.alias} may have the same time"
                )


def _always_stops(
    query: Query, times: Mapping[str, StreamTimes], negated: EventPattern, positive: EventPattern
) -> bool:
    parts = split_formula(query)
    own = _renamed(parts.negated[negated.alias], negated.alias, positive.alias)
    others = replace(query, events=query.positive, where=And((parts.positive, Not(own))))
    try:
        first = next(read_inputs(others, times, Work(_STEPS)))
    except InvalidFieldError:
        return False
    return all(closure.contradictory for closure in first.closures)


def _renamed(formula: Formula, old: str, new: str) -> Formula:
    """Return a formula with another alias."""
    match formula:
        case And(parts):
            return And(tuple(_renamed(it, old, new) for it in parts))
        case Or(parts):
            return Or(tuple(_renamed(it, old, new) for it in parts))
        case Not(part):
            return Not(_renamed(part, old, new))
        case Relation(left, operator, right):
            return Relation(_moved(left, old, new), operator, _moved(right, old, new))


def _moved(term: Term, old: str, new: str) -> Term:
    return map_points(term, lambda it: Point(new, it.side) if it.alias == old else it)
