"""Inputs of a query: its events with the closures of the clauses under which they matter.

A positive event matters under the clauses of G+: it may be part of a result. A negated event r
matters under the clauses of G+ ∧ G_r: it may stop a combination. The relations of negated events
do not restrict positive events, because results exist where no negated event does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from correlation.event_query.query import Query
from correlation.event_query.relevance.closure import Closure, StreamTimes, close_clauses
from correlation.event_query.relevance.normal_form import Clause, Node, NormalForms
from correlation.event_query.relevance.split import split_formula
from correlation.event_query.relevance.work import Work


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
    clauses : tuple of Clause
        Disjunctive normal form of its relations: of G+ for a positive event, of G_r for a negated
        one.
    closures : tuple of Closure
        One per clause under which an event matters, over its points and those of the positive
        events.
    """

    alias: str
    type: str
    negated: bool
    times: StreamTimes
    clauses: tuple[Clause, ...]
    closures: tuple[Closure, ...]

    @property
    def stamp(self) -> Node:
        """The point that progress and keep values of its stream refer to."""
        return self.times.stamp(self.alias)

    @property
    def is_instant(self) -> bool:
        """Whether begin and end are one point."""
        return self.times.max_length_us == 0


def read_inputs(
    query: Query, types: Mapping[str, StreamTimes], work: Work | None = None
) -> Iterator[Input]:
    """Yield the events of a query, in the order of its text.

    Parameters
    ----------
    query : Query
        The parsed query.
    types : mapping of event type to StreamTimes
        Stream of each event type.
    work : Work or None
        Counts the steps; None: a new count.

    Raises
    ------
    InvalidFieldError
        A relation mentions two negated events, there are too many clauses, or they take too much
        work.
    """
    parts = split_formula(query)
    positive = {event.alias: types[event.type] for event in query.positive}
    uncertain = {event.alias for event in query.events if types[event.type].uncertain}
    work = Work() if work is None else work
    forms = NormalForms(work, uncertain)
    among = forms.of(parts.positive)
    of_results = forms.clauses(among)
    closed = close_clauses(of_results, positive, work)
    for event in query.events:
        clauses, closures = of_results, closed
        if event.negated:
            own = forms.of(parts.negated[event.alias])
            clauses = forms.clauses(own)
            events = positive | {event.alias: types[event.type]}
            closures = close_clauses(forms.clauses(forms.both(among, own)), events, work)
        yield Input(event.alias, event.type, event.negated, types[event.type], clauses, closures)
