"""Relevance analysis of a query: progress of its results and keep values of its inputs.

The time of a result is the maximum of the times of its positive events: `rt.end`, or `Latest` if
the instants of their stream are uncertain.

Reference. Novoseltsev 2013 (TSA). Proofs: docs/proofs.md, P-QUERY-PROGRESS, P-QUERY-KEEP.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from correlation.errors import InvalidFieldError
from correlation.event_query.query import Query
from correlation.event_query.relevance.closure import Distance, StreamTimes
from correlation.event_query.relevance.inputs import Input, read_inputs
from correlation.event_query.relevance.keep import KeepFunction, keep_function
from correlation.event_query.relevance.progress import ProgressFunction, lead
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
    inputs: tuple[Input, ...]
    leads: Mapping[str, Distance]
    progress: ProgressFunction
    keeps: Mapping[str, KeepFunction]

    @property
    def satisfiable(self) -> bool:
        """Whether times exist that satisfy the relations among the positive events."""
        closures = next(it.closures for it in self.inputs if not it.negated)
        return not all(closure.contradictory for closure in closures)

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
    refuse_unbounded(inputs)
    times = [it.stamp for it in inputs if not it.negated]
    later_results = relevance_formula(results_until(times, query.type))
    leads = {it.alias: lead(it.closures, times, it.stamp) for it in inputs}
    return Relevance(
        query.type,
        inputs,
        leads,
        ProgressFunction.of_aliases((it.times.stream, leads[it.alias]) for it in inputs),
        {it.alias: keep_function(later_results, it.closures, it.stamp) for it in inputs},
    )
