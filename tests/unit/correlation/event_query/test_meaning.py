"""Progress and keep values of random queries against the declarative meaning (P-QUERY-…)."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import Phase, assume, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from correlation.errors import InvalidFieldError
from correlation.event_query.query import And, Query, Relation, Shifted
from correlation.event_query.relevance.analysis import Relevance, analyse_relevance
from correlation.event_query.relevance.unbounded import UnboundedQueryError
from tests.oracle.event_queries import Event, results, time_of
from tests.support.event_queries import SMALL_STREAMS, events, judged, queries

Case = tuple[Query, Relevance, dict[str, int], list[Event], list[Event]]
STREAMS = sorted({times.stream for times in SMALL_STREAMS.values()})


def mend(query: Query, error: InvalidFieldError) -> Query:
    """Return the query with the relations that its refusal names, with a constant of 2 µs."""
    parts = [query.where]
    for problem in error.problems:
        # Otherwise there are too many clauses.
        assume(isinstance(problem, UnboundedQueryError))
        assert isinstance(problem, UnboundedQueryError)
        parts += [Relation(p, "<=", Shifted(v, 2)) for p, v in problem.missing]
    return replace(query, where=And(tuple(parts)))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a query, mended if it is refused, with progress, events read, and future events."""
    query = draw(queries())
    try:
        relevance = analyse_relevance(query, SMALL_STREAMS)
    except InvalidFieldError as error:
        query = mend(query, error)
        relevance = analyse_relevance(query, SMALL_STREAMS)
    progress = {stream: draw(st.integers(0, 4)) for stream in STREAMS}
    present, future = draw(events(relevance, progress))
    return query, relevance, progress, present, future


def early(case: Case, slack: int = 0) -> bool:
    """Return whether a result changes that was final `slack` µs above the progress."""
    query, relevance, progress, present, future = case
    bound = relevance.progress.value(progress) + slack
    asked = judged(query, SMALL_STREAMS)
    before, after = (
        {it for it in results(asked, read) if time_of(asked, it) <= bound}
        for read in (present, present + future)
    )
    return before != after


def forgets(case: Case, slack: int = 0) -> bool:
    """Return whether a later result changes if events up to keep value + `slack` are dropped."""
    query, relevance, progress, present, future = case
    bound = relevance.progress.value(progress)
    keep = relevance.keep_values(bound)
    kept = [it for it in present if it.stream not in keep or it.end > keep[it.stream] + slack]
    asked = judged(query, SMALL_STREAMS)
    whole, rest = (
        {it for it in results(asked, read) if time_of(asked, it) > bound}
        for read in (present + future, kept + future)
    )
    return whole != rest


@given(cases())
def test_p_query_progress_no_future_event_changes_a_final_result(case: Case) -> None:
    assert not early(case)


@given(cases())
def test_p_query_keep_no_dropped_event_changes_a_later_result(case: Case) -> None:
    assert not forgets(case)


def exists(wanted: object, examples: int = 20_000) -> bool:
    """Return whether Hypothesis finds a case."""
    once = settings(max_examples=examples, phases=[Phase.generate], database=None)
    try:
        find(cases(), wanted, settings=once)  # type: ignore[arg-type]
    except NoSuchExample:
        return False
    return True


def test_p_query_progress_of_one_microsecond_more_is_caught() -> None:
    assert exists(lambda case: early(case, slack=1))


def test_p_query_keep_of_one_microsecond_too_little_is_caught() -> None:
    assert exists(lambda case: forgets(case, slack=1))
