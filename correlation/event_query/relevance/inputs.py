"""Inputs of a query: its events with the closures of the clauses under which they matter.

A positive event matters under the clauses of G+: it may be part of a result. A negated event r
matters under the clauses of G+ ∧ G_r: it may stop a combination. The relations of negated events
do not restrict positive events, because results exist where no negated event does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from correlation.event_query.query import And, Query
from correlation.event_query.relevance.closure import Closure, StreamTimes, close_clause
from correlation.event_query.relevance.normal_form import Node, disjunctive_normal_form
from correlation.event_query.relevance.split import split_formula


@dataclass(frozen=True, slots=True)
class Input:
    """An event of a query.

    Parameters
    ----------
    alias, type : str
        Its alias and event type.
    negated : bool
        Whether it is negated.
    times : StreamTimes
        Its stream.
    closures : tuple of Closure
        One per clause under which an event matters, over its points and those of the positive
        events.
    """

    alias: str
    type: str
    negated: bool
    times: StreamTimes
    closures: tuple[Closure, ...]

    @property
    def stamp(self) -> Node:
        """The point that progress and keep values of its stream refer to."""
        return self.times.stamp(self.alias)

    @property
    def is_instant(self) -> bool:
        """Whether begin and end are one point."""
        return self.times.max_length_us == 0


def read_inputs(query: Query, types: Mapping[str, StreamTimes]) -> Iterator[Input]:
    """Yield the events of a query, in the order of its text.

    Parameters
    ----------
    query : Query
        The parsed query.
    types : mapping of event type to StreamTimes
        Stream of each event type.

    Raises
    ------
    InvalidFieldError
        A relation mentions two negated events, or there are too many clauses.
    """
    parts = split_formula(query)
    positive = {event.alias: types[event.type] for event in query.positive}
    uncertain = {event.alias for event in query.events if types[event.type].uncertain}
    of_results = tuple(
        close_clause(clause, positive)
        for clause in disjunctive_normal_form(parts.positive, uncertain)
    )
    for event in query.events:
        closures = of_results
        if event.negated:
            relations = And((parts.positive, parts.negated[event.alias]))
            closures = tuple(
                close_clause(clause, positive | {event.alias: types[event.type]})
                for clause in disjunctive_normal_form(relations, uncertain)
            )
        yield Input(event.alias, event.type, event.negated, types[event.type], closures)
