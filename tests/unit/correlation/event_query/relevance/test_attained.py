"""Leads and keep offsets are attained: for each, a combination that needs it exists.

Every event of a query has its own stream here. The combination is a solution of a clause, and the
oracle decides whether it is a result.
"""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from correlation.errors import InvalidFieldError
from correlation.event_query.query import Query, value_at
from correlation.event_query.relevance.analysis import Relevance, analyse_relevance
from correlation.event_query.relevance.closure import Closure, StreamTimes
from correlation.event_query.relevance.inputs import Input
from tests.oracle.event_queries import Event, results, time_of
from tests.support.event_queries import Times, events_at, judged, queries, solution

LENGTHS = st.sampled_from([(0, 0), (0, 2), (1, 3), (0, None)])
FAR = 60


@st.composite
def bounded_queries(draw: st.DrawFn) -> tuple[Query, dict[str, StreamTimes], Relevance]:
    """Draw a query with a stream per alias."""
    query = draw(queries())
    query = replace(query, events=tuple(replace(it, type=it.alias) for it in query.events))
    types = {it.alias: StreamTimes(it.alias, *draw(LENGTHS)) for it in query.events}
    try:
        relevance = analyse_relevance(query, types)
    except InvalidFieldError:
        assume(condition=False)
    assume(relevance.satisfiable)
    return query, types, relevance


@given(bounded_queries())
def test_p_query_progress_lead_is_attained(
    drawn: tuple[Query, dict[str, StreamTimes], Relevance],
) -> None:
    query, types, relevance = drawn
    asked = judged(query, types)
    for it in relevance.inputs:
        lead = relevance.leads[it.alias]
        found = [
            found
            for closure in it.closures
            if not closure.contradictory
            and (found := solution(closure, it.stamp, 1, highest=False, within=FAR))
            and value_at(query.end, found.__getitem__) - 1 == lead
        ]
        assert bool(found) == (lead < math.inf)
        for times in found[:1]:
            # Nothing of this stream is read: its progress is 0, and the event ends at 1.
            read = events_at(relevance.inputs, times)
            before, after = results(asked, others(read, it)), results(asked, read)
            assert {time_of(asked, result) for result in before ^ after} == {lead + 1}


@given(bounded_queries())
def test_p_query_keep_offset_is_attained(
    drawn: tuple[Query, dict[str, StreamTimes], Relevance],
) -> None:
    query, types, relevance = drawn
    asked = judged(query, types)
    keep = relevance.keep_values(0)
    for it in relevance.inputs:
        found = [
            found
            for closure in it.closures
            if not closure.contradictory
            and keep[it.alias] < math.inf
            and (found := _highest(closure, it, int(keep[it.alias]) + 1))
            and value_at(query.end, found.__getitem__) == 1
        ]
        assert bool(found) == (keep[it.alias] < math.inf)
        for times in found[:1]:
            # The result is later than 0, and is lost or false without the event just kept.
            read = events_at(relevance.inputs, times)
            whole, rest = results(asked, read), results(asked, others(read, it))
            assert [time_of(asked, result) > 0 for result in whole ^ rest] == [True]


def _highest(closure: Closure, it: Input, at: int) -> Times:
    return solution(closure, it.stamp, at, highest=True, within=FAR)


def others(read: list[Event], it: Input) -> list[Event]:
    return [event for event in read if event.stream != it.alias]
