"""Meaning of a query for given events: variables and temporal relations.

Each function decides for one event or one combination. The operator decides for many at once; both
follow the same definitions (`relevance.split`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from correlation.event_query.comparing import COMPARE
from correlation.event_query.query import (
    BEGIN,
    And,
    EventPattern,
    Formula,
    Not,
    Or,
    Point,
    Term,
    Variable,
    value_at,
)
from correlation.resources.attributes import AttributeValue


class Times(NamedTuple):
    """Begin and end of an event, in µs; equal for an instant."""

    begin: int
    end: int


class Binding(NamedTuple):
    """An attribute of an event that a variable is bound to."""

    alias: str
    attribute: str
    value: AttributeValue | None


def bindings(
    events: Iterable[EventPattern], values: Mapping[str, Mapping[str, AttributeValue | None]]
) -> Iterator[tuple[str, Binding]]:
    """Yield the variables of events and the attributes that they are bound to, in their order.

    Parameters
    ----------
    events : iterable of EventPattern
        Events of the query.
    values : mapping of alias to (mapping of attribute to value)
        Attributes of the events.
    """
    for event in events:
        for it in event.attributes:
            if isinstance(it.pattern, Variable):
                value = values[event.alias].get(it.name)
                yield it.pattern.name, Binding(event.alias, it.name, value)


def holds(formula: Formula, times: Mapping[str, Times]) -> bool:
    """Return whether a temporal formula holds for the times of its aliases."""
    match formula:
        case And(parts):
            return all(holds(part, times) for part in parts)
        case Or(parts):
            return any(holds(part, times) for part in parts)
        case Not(part):
            return not holds(part, times)
    left, right = (value_of(it, times) for it in (formula.left, formula.right))
    return COMPARE[formula.operator](left, right)


def value_of(term: Term, times: Mapping[str, Times]) -> int:
    """Return the value of a temporal term, in µs."""

    def at(point: Point) -> int:
        found = times[point.alias]
        return found.begin if point.side == BEGIN else found.end

    return int(value_at(term, at))
