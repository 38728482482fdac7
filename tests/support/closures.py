"""Closures of single clauses, for tests of relevance analysis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from correlation.event_query.relevance.closure import Closure, StreamTimes, close_clauses
from correlation.event_query.relevance.normal_form import Atom, Clause
from correlation.event_query.relevance.work import Work

TRUE_CLAUSE: Clause = ()


def close_clause(clause: Iterable[Atom], events: Mapping[str, StreamTimes]) -> Closure:
    """Return the closure of one clause over the points of some events."""
    (closure,) = close_clauses([tuple(clause)], events, Work())
    return closure
