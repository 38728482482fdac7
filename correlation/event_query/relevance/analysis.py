"""Relevance analysis of a query: progress of its results and keep values of its inputs.

The time of a result is its end, a term over points of its positive events; by default the maximum
of their ends. If the instant of an event is uncertain, its points are `Latest`.

Reference. Novoseltsev 2013 (TSA). Proofs: docs/proofs.md, P-QUERY-PROGRESS, P-QUERY-KEEP.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from correlation.errors import InvalidFieldError
from correlation.event_query.query import (
    And,
    Point,
    Query,
    Relation,
    Term,
    value_at,
)
from correlation.event_query.relevance.closure import Closure, Distance, StreamTimes
from correlation.event_query.relevance.inputs import Input, read_inputs
from correlation.event_query.relevance.keep import KeepFunction, keep_function
from correlation.event_query.relevance.normal_form import Latest, Node
from correlation.event_query.relevance.progress import ProgressFunction, lead
from correlation.event_query.relevance.split import split_formula
from correlation.event_query.relevance.stream_bounds import relevance_formula, results_until
from correlation.event_query.relevance.unbounded import refuse_unbounded
from correlation.event_query.relevance.work import Work


@dataclass(frozen=True, slots=True)
class Relevance:
    """Progress and keep functions of a query.

    Parameters
    ----------
    result : str
        Type of the result; the name of the bound in the keep functions.
    begin, end : Term
        Begin and end of the result. The end is its time.
    is_stated : bool
        Whether the query states one of both.
    inputs : tuple of Input
        The events, in the order of the text.
    leads : mapping of alias to int or +inf
        Lead of each event, in µs.
    progress : ProgressFunction
        Progress of the results, from that of the streams.
    keeps : mapping of alias to KeepFunction
        Keep function of each event, at the progress of the results.
    """

    result: str
    begin: Term
    end: Term
    is_stated: bool
    inputs: tuple[Input, ...]
    leads: Mapping[str, Distance]
    progress: ProgressFunction
    keeps: Mapping[str, KeepFunction]

    @property
    def satisfiable(self) -> bool:
        """Whether times exist that satisfy the relations among the positive events."""
        closures = next(it.closures for it in self.inputs if not it.negated)
        return not all(closure.contradictory for closure in closures)

    def time_after_last_end(self) -> Distance:
        """Return an upper bound of the time of a result minus the last end of its events, in µs.

        The bound of a point p is min over i of dist(t_i, p). By default it is 0.
        """
        ends = [it.stamp for it in self.inputs if not it.negated]
        closures = next(it.closures for it in self.inputs if not it.negated)
        node = node_of(self.inputs)

        def highest(closure: Closure) -> Distance:
            found: Distance = value_at(
                self.end, lambda point: min(closure.dist(t, node(point)) for t in ends)
            )
            return found

        return max((highest(it) for it in closures if not it.contradictory), default=0)

    def keep_values(self, bound: Distance) -> dict[str, Distance]:
        """Return the keep value of each stream: the minimum over its aliases.

        Parameters
        ----------
        bound : int
            Progress of the results: those with time <= bound are published, in µs.

        Returns
        -------
        dict of stream to int or +inf
            Events whose time is at most this are not needed. The engine's keep value, the minimum
            `latest` that is needed, is larger by 1.
        """
        values: dict[str, Distance] = {}
        for it in self.inputs:
            value = self.keeps[it.alias].value({self.result: bound})
            values[it.times.stream] = min(value, values.get(it.times.stream, math.inf))
        return values


def analyse_relevance(
    query: Query, types: Mapping[str, StreamTimes], work: Work | None = None
) -> Relevance:
    """Derive the progress and keep functions of a query.

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
        The query has no positive event, a relation mentions two negated events, there are too many
        clauses, they take too much work, or an input is not bounded
        (`unbounded.UnboundedQueryError`).
    """
    if not query.positive:
        raise InvalidFieldError(
            "events", "must have a positive event", "add an event without `not`"
        )
    inputs = tuple(read_inputs(query, types, work))
    refuse_unbounded(inputs, query.end)
    node = node_of(inputs)
    later_results = relevance_formula(results_until(query.end, query.type, node))
    leads = {it.alias: lead(it.closures, query.end, it.stamp, node) for it in inputs}
    return Relevance(
        query.type,
        query.begin,
        query.end,
        (query.result_begin, query.result_end) != (None, None),
        inputs,
        leads,
        ProgressFunction.of_aliases((it.times.stream, leads[it.alias]) for it in inputs),
        {it.alias: keep_function(later_results, it.closures, it.stamp) for it in inputs},
    )


def node_of(inputs: Sequence[Input]) -> Callable[[Point], Node]:
    """Return the function from a point of the result's time to the point of the analysis.

    Progress refers to the last possible time of an uncertain instant.
    """
    uncertain = {it.alias for it in inputs if it.times.uncertain}
    return lambda point: Latest(point.alias) if point.alias in uncertain else point


def may_end_before_it_begins(query: Query, types: Mapping[str, StreamTimes]) -> bool:
    """Return whether the relations admit a result whose end is before its begin.

    Parameters
    ----------
    query : Query
        The parsed query.
    types : mapping of event type to StreamTimes
        Stream of each event type.

    Raises
    ------
    InvalidFieldError
        There are too many clauses, or they take too much work.
    """
    if query.result_begin is None and query.result_end is None:
        return False
    return _may_hold(Relation(query.end, "<", query.begin), query, types)


def may_begin_before_it_ends(query: Query, types: Mapping[str, StreamTimes]) -> bool:
    """Return whether the relations admit a result whose begin is at most its end.

    See `may_end_before_it_begins`.
    """
    return _may_hold(Relation(query.begin, "<=", query.end), query, types)


def _may_hold(relation: Relation, query: Query, types: Mapping[str, StreamTimes]) -> bool:
    """Return whether a relation holds for times of a result."""
    both = And((split_formula(query).positive, relation))
    first = next(read_inputs(replace(query, events=query.positive, where=both), types))
    return not all(closure.contradictory for closure in first.closures)
