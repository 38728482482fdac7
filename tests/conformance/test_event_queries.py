"""Event queries in a program against the declarative meaning, for all blocks and restarts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.engine.program import Outcome
from correlation.event_query.evaluation import interning, operator, search
from correlation.event_query.evaluation.operator import EventQueryOperator
from correlation.event_query.evaluation.views import Views
from correlation.event_query.query import (
    AttributePattern,
    Comparison,
    Query,
    Variable,
)
from correlation.event_query.relevance.analysis import Relevance, analyse_relevance
from tests.oracle.event_queries import results, times_of
from tests.support.event_queries import SMALL_STREAMS, bounded, queries
from tests.support.mutations import assert_caught
from tests.support.query_slots import (
    Arrival,
    QuerySlot,
    closing_heartbeats,
    draw_events,
    judged_with_key,
    make_query_block,
    make_streams,
    order_of_arrival,
    query_control,
    true_heartbeat,
    watermarks_of,
)
from tests.support.slots import read_alarms

SPAN = 14
Found = Counter[tuple[int, ...]]


@dataclass(frozen=True)
class Case:
    """A bounded query and its analysis."""

    query: Query
    relevance: Relevance
    keyed: bool
    seed: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a query with patterns; if it is not bounded, relations are added."""
    query = draw(queries())
    bound: set[str] = set()
    events = []
    for event in sorted(query.events, key=lambda it: it.negated):
        names = ["K", "L"] if not event.negated else sorted(bound)
        variables = st.builds(Variable, st.sampled_from(names)) if names else st.nothing()
        constants = st.sampled_from([0, 1, 2]) | st.just(1)
        order = st.builds(Comparison, st.sampled_from(["<", "<=", ">", ">=", "="]), constants)
        text = st.builds(Comparison, st.just("="), st.sampled_from(["x", "y"]))
        patterns = draw(
            st.lists(
                st.builds(AttributePattern, st.sampled_from(["k", "m"]), variables | text)
                | st.builds(AttributePattern, st.just("n"), order),
                # Negated events without patterns stop almost every combination.
                min_size=1 if event.negated and draw(st.integers(0, 3)) else 0,
                max_size=2,
            )
        )
        bound |= {it.pattern.name for it in patterns if isinstance(it.pattern, Variable)}
        events.append(replace(event, attributes=tuple(patterns)))
    query = replace(query, events=tuple(events))
    query = bounded(query, SMALL_STREAMS)
    relevance = analyse_relevance(query, SMALL_STREAMS)
    return Case(query, relevance, draw(st.booleans()), draw(st.integers(0, 2**32)))


def run(case: Case, count: int = 24, *, checked: bool = True) -> Found:
    """Run a query over events, and compare the results of each block with the judge's."""
    rng = random.Random(case.seed)  # noqa: S311 - a reproducible shuffle, no secret
    streams = make_streams(SMALL_STREAMS, keyed=case.keyed)
    used = {it.times.stream for it in case.relevance.inputs}
    events = draw_events(rng, count, {it: streams[it] for it in used}, span=SPAN, keyed=case.keyed)
    asked = judged_with_key(case.query, SMALL_STREAMS, keyed=case.keyed)
    expected = {
        tuple(it.id for it in found): times_of(asked, found) for found in results(asked, events)
    }
    slot = QuerySlot(streams)
    slot.advance(make_query_block([], [query_control(0, case.query, SMALL_STREAMS)]))
    rest, found = order_of_arrival(rng, events), Counter[tuple[int, ...]]()
    while rest:
        taken, rest = take_block(rng, rest)
        beats = [true_heartbeat(rng, rng.choice(sorted(used)), rest)]
        block = make_query_block(taken, heartbeats=beats if rng.random() < 0.4 else [])
        outcome = slot.advance(block)
        found.update(read_timed(outcome, expected, checked=checked))
        progress = {name: mark - 1 for name, mark in watermarks_of(outcome).items()}
        bound = case.relevance.progress.value(progress)
        if checked:
            assert found == Counter(ids for ids, (_, time) in expected.items() if time <= bound)
            assert_nothing_is_kept_too_long(slot, case.relevance.keep_values(bound))
        if rng.random() < 0.3:
            slot.restart()
    outcome = slot.advance(make_query_block([], heartbeats=closing_heartbeats(streams)))
    found.update(read_timed(outcome, expected, checked=checked))
    if checked:
        assert found == Counter(expected.keys())
        assert not any(
            value for name, _, value in outcome.metrics["gauges"] if name == "buffered_events"
        )
    return found


def read_timed(
    outcome: Outcome, expected: Mapping[tuple[int, ...], tuple[int, int]], *, checked: bool
) -> list[tuple[int, ...]]:
    """Return the ids of the events of each result, and compare its begin and end."""
    found = []
    for alarm in read_alarms(outcome):
        ids = tuple(int(event["id"]) for event in alarm["events"].values())
        found.append(ids)
        if checked:
            assert (alarm["begin"], alarm["end"]) == expected.get(ids)
    return found


def take_block(rng: random.Random, rest: list[Arrival]) -> tuple[list[Arrival], list[Arrival]]:
    """Take the events of a block; partitions are not read equally far."""
    place = (rest[0].event.stream, rest[0].partition)
    skip = rng.random() < 0.4
    free = [it for it in rest if not skip or (it.event.stream, it.partition) != place]
    taken = (free or rest)[: rng.randint(1, 8)]
    return taken, [it for it in rest if it not in taken]


def assert_nothing_is_kept_too_long(slot: QuerySlot, keep: dict[str, float]) -> None:
    """Check that most events of each segment are above the keep value of their stream."""
    for name, buffer in slot.program._buffers.items():  # noqa: SLF001 - its content is the claim
        for _, segment in buffer.segments:
            needed = int((segment.latest > keep.get(name, 2**62)).sum())
            assert 2 * needed > len(segment)


@given(cases())
def test_p_query_once_results_are_the_judges_as_soon_as_they_are_final(case: Case) -> None:
    run(case)


@given(cases())
def test_p_query_once_results_do_not_depend_on_the_size_of_tables_or_on_epochs(case: Case) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "CAPACITY", 3)
        patch.setattr(interning, "_MIN_SIZE", 4)
        patch.setattr(operator, "_VIEWS", Views())
        run(case)


@given(cases())
def test_p_query_once_results_are_equal_without_garbage_collection(case: Case) -> None:
    with_collection = run(case, checked=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EventQueryOperator, "keep_values", keep_values_plus(-(2**40)))
        assert run(case, checked=False) == with_collection


def progress_plus(us: int) -> Callable[[EventQueryOperator, Mapping[str, int]], int]:
    """Return a wrong method: a progress that is too large by some µs."""
    right = EventQueryOperator._progress  # noqa: SLF001 - the method that is mutated
    return lambda it, marks: right(it, marks) + us


def keep_values_plus(us: int) -> Callable[[EventQueryOperator, Mapping[str, int]], dict[str, int]]:
    """Return a wrong method: keep values that are too large by some µs."""
    right = EventQueryOperator.keep_values
    return lambda it, marks: {name: value + us for name, value in right(it, marks).items()}


@pytest.mark.parametrize(
    ("owner", "name", "wrong"),
    [
        # Each keep value keeps one microsecond too little.
        (EventQueryOperator, "keep_values", keep_values_plus(1)),
        # Each keep value keeps one microsecond too much.
        (EventQueryOperator, "keep_values", keep_values_plus(-1)),
        # Results are published one microsecond before they are final.
        (EventQueryOperator, "_progress", progress_plus(1)),
    ],
)
def test_a_mutation_of_one_microsecond_is_caught(
    owner: type, name: str, wrong: Callable[..., object]
) -> None:
    assert_caught(cases(), run, owner, name, wrong)
