"""Event queries on uncertain instants in a program against the oracle's exact probabilities."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings

from correlation.buffers.columns import Int64s
from correlation.event_query.absence.barring import Barred
from correlation.event_query.absence.position import Negated
from correlation.event_query.absence.windows import Windows
from correlation.event_query.evaluation import clauses, operator, probable, search
from correlation.event_query.evaluation.boxes import box_windows
from correlation.event_query.evaluation.clauses import NO_BOUND, Columns, column_of
from correlation.event_query.evaluation.operator import EventQueryOperator
from correlation.event_query.evaluation.probable import Probabilities
from correlation.event_query.evaluation.search import Located
from correlation.event_query.evaluation.tables import Table
from correlation.event_query.query import And, EventPattern, Query, Relation
from correlation.event_query.relevance import inputs
from correlation.event_query.relevance.cached import RelevanceCache
from correlation.event_query.relevance.normal_form import Node, NormalForms
from correlation.event_query.relevance.work import Work
from tests.conformance.test_event_queries import keep_values_plus, progress_plus, take_block
from tests.oracle.event_queries import Event, JudgedQuery, times_of
from tests.oracle.uncertain_queries import probabilities
from tests.support.event_queries import end
from tests.support.query_slots import (
    Arrival,
    QuerySlot,
    closing_heartbeats,
    judged_with_key,
    make_query_block,
    make_streams,
    order_of_arrival,
    query_control,
    true_heartbeat,
    watermarks_of,
)
from tests.support.slots import read_alarms
from tests.support.uncertain_queries import (
    UNCERTAIN_STREAMS,
    UncertainCase,
    draw_threshold,
    draw_uncertain,
    instants_of,
    uncertain_cases,
)

SPAN = 9
COUNT = 14
# Bound of the error of a reported probability: absence.filter.
ERROR = 2.0**-36
Ids = tuple[int, ...]


@dataclass(frozen=True)
class World:
    """Events in their order of arrival, a threshold, and all probabilities."""

    events: list[Event]
    expected: dict[Ids, tuple[tuple[int, int], Fraction]]
    threshold: str


def run(case: UncertainCase, count: int = COUNT, *, checked: bool = True) -> Counter[Ids]:
    """Run a query over events, and compare the results of each block with the judge's."""
    rng = random.Random(case.seed)  # noqa: S311 - a reproducible shuffle, no secret
    streams = case.streams()
    used = {it.times.stream for it in case.relevance.inputs}
    chosen = {it: streams[it] for it in used}
    events, shapes = draw_uncertain(rng, count, chosen, span=SPAN, keyed=case.keyed)
    asked = judged_with_key(case.query, UNCERTAIN_STREAMS, keyed=case.keyed)
    instants = instants_of(events, shapes, streams)
    known = probabilities(asked, events, instants)
    threshold = draw_threshold(rng, known.values())
    expected = {
        tuple(it.id for it in found): (span_of(asked, found, instants), value)
        for found, value in known.items()
        if value >= Fraction(threshold)
    }
    slot = QuerySlot(streams)
    control = query_control(0, case.query, UNCERTAIN_STREAMS, threshold=threshold)
    slot.advance(make_query_block([], [control]))
    rest = [replace(it, shape=shapes.get(it.event.id)) for it in order_of_arrival(rng, events)]
    found = Counter[Ids]()
    while rest:
        taken, rest = take_block(rng, rest)
        beats = [true_heartbeat(rng, rng.choice(sorted(used)), rest)]
        block = make_query_block(taken, heartbeats=beats if rng.random() < 0.4 else [])
        outcome = slot.advance(block)
        found.update(read(outcome, expected, checked=checked))
        progress = {name: mark - 1 for name, mark in watermarks_of(outcome).items()}
        bound = case.relevance.progress.value(progress)
        if checked:
            assert found == Counter(
                ids for ids, ((_, time), _) in expected.items() if time <= bound
            )
        if rng.random() < 0.3:
            slot.restart()
    outcome = slot.advance(make_query_block([], heartbeats=closing_heartbeats(streams)))
    found.update(read(outcome, expected, checked=checked))
    if checked:
        assert found == Counter(expected.keys())
    return found


def span_of(
    query: JudgedQuery, found: tuple[Event, ...], instants: Collection[int]
) -> tuple[int, int]:
    """Return the first possible begin and the last possible end of a result."""
    first = [replace(it, end=it.begin) if it.id in instants else it for it in found]
    last = [replace(it, begin=it.end) if it.id in instants else it for it in found]
    return times_of(query, first)[0], times_of(query, last)[1]


def read(
    outcome: Any,  # noqa: ANN401 - outcome of a block
    expected: dict[Ids, tuple[tuple[int, int], Fraction]],
    *,
    checked: bool,
) -> list[Ids]:
    """Return the ids of the events of each result, and compare the probabilities."""
    found = []
    for alarm in read_alarms(outcome):
        ids = tuple(int(event["id"]) for event in alarm["events"].values())
        found.append(ids)
        if checked:
            assert ids in expected
            assert (alarm["begin"], alarm["end"]) == expected[ids][0]
            assert alarm["probability"] == pytest.approx(float(expected[ids][1]), abs=ERROR)
            assert alarm["probability"] >= alarm["threshold"] - ERROR
    return found


@given(uncertain_cases())
def test_p_query_uncertain_results_are_the_judges_as_soon_as_they_are_final(
    case: UncertainCase,
) -> None:
    run(case)


@given(uncertain_cases())
def test_p_query_uncertain_results_do_not_depend_on_the_size_of_tables(case: UncertainCase) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "CAPACITY", 3)
        patch.setattr(probable, "CANDIDATES", 1)
        run(case)


@given(uncertain_cases())
def test_p_query_uncertain_results_are_equal_without_garbage_collection(
    case: UncertainCase,
) -> None:
    with_collection = run(case, checked=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EventQueryOperator, "keep_values", keep_values_plus(-(2**40)))
        assert run(case, checked=False) == with_collection


def test_an_event_of_two_negated_aliases_has_one_instant() -> None:
    # x is within 2 us before p, y within 2 us after it: an event from 0 to 4 us is one of both.
    query = Query(
        "R",
        (),
        (
            EventPattern("p", "E"),
            EventPattern("x", "A", negated=True),
            EventPattern("y", "D", negated=True),
        ),
        And(
            (
                Relation(end("x"), "<=", end("p")),
                Relation(end("p", -2), "<=", end("x")),
                Relation(end("p"), "<=", end("y")),
                Relation(end("y"), "<=", end("p", 2)),
            )
        ),
    )
    for others, expected in (([(0, 4)], []), ([(0, 2), (2, 4)], []), ([(1, 5)], [0.25])):
        streams = make_streams(UNCERTAIN_STREAMS, keyed=False)
        slot = QuerySlot(streams)
        control = query_control(0, query, UNCERTAIN_STREAMS, threshold="0.0000000001")
        arrivals = [Arrival(Event("e", 2, 2, (), 0), 0)]
        arrivals += [
            Arrival(Event("a", *it, (), number + 1), 0, number) for number, it in enumerate(others)
        ]
        slot.advance(make_query_block([], [control]))
        slot.advance(make_query_block(arrivals))
        outcome = slot.advance(make_query_block([], heartbeats=closing_heartbeats(streams)))
        assert [it["probability"] for it in read_alarms(outcome)] == expected


def whole_microseconds(
    work: Work,
    uncertain: Collection[str] = (),  # noqa: ARG001 - the argument that the mutation ignores
) -> NormalForms:
    """Return wrong normal forms: a strict relation of an uncertain instant has c - 1."""
    return NormalForms(work)


def with_own_event(
    it: Probabilities,
    table: Table,  # noqa: ARG001 - as the method
    located: Located,
    windows: Windows,
    gone: object,  # noqa: ARG001 - as the method
    barred: object,  # noqa: ARG001 - as the method
) -> Iterator[Negated]:
    """Yield wrong candidates: the positive event itself is one of them."""
    instants = located.view.instants(it.search.views, located.segment)
    yield Negated(instants, located.begin, located.end, windows)


def exchanged(point: Node, columns: Columns, uncertain: Collection[str], *, latest: bool) -> int:
    """Return a wrong column: the first and the last possible time are exchanged."""
    return column_of(point, columns, uncertain, latest=not latest)


def without_own_stops(windows: Windows, rows: Int64s, exact: object) -> Barred:  # noqa: ARG001 - as the function
    """Return wrong times: a positive event between fixed ends does not stop itself."""
    return Barred(*(np.zeros(0, np.int64),) * 3)


def without_fixed_ends(ends: Int64s) -> Windows:
    """Return wrong windows: relations to events with exact times are ignored."""
    return box_windows(ends)._replace(cuts=None)


def fixed_ends_plus(by: int) -> Callable[[Int64s], Windows]:
    """Return a wrong `box_windows`: the fixed ends of negated events are moved."""

    def windows(ends: Int64s) -> Windows:
        moved = ends.copy()
        finite = np.abs(ends[:, :, 1, :2]) < NO_BOUND
        moved[:, :, 1, :2] += np.where(finite, by, 0)
        return box_windows(moved)

    return windows


@pytest.mark.parametrize(
    ("owner", "name", "wrong"),
    [
        (inputs, "NormalForms", whole_microseconds),
        (Probabilities, "_negated", with_own_event),
        (clauses, "column_of", exchanged),
        (probable, "box_windows", without_fixed_ends),
        (probable, "box_windows", fixed_ends_plus(1)),
        (probable, "box_windows", fixed_ends_plus(-1)),
        (probable, "list_own_stops", without_own_stops),
        # Each keep value keeps one microsecond too little.
        (EventQueryOperator, "keep_values", keep_values_plus(1)),
        # Results are published one microsecond before they are final.
        (EventQueryOperator, "_progress", progress_plus(1)),
    ],
    ids=[
        *("strict", "own event", "exchanged", "no fixed ends", "fixed ends + 1", "fixed ends - 1"),
        *("no own stops", "keep values", "progress"),
    ],
)
def test_a_mutation_is_caught(owner: object, name: str, wrong: Callable[..., object]) -> None:
    def fails(case: UncertainCase) -> bool:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, name, wrong)
            # Analyses of the mutation are not kept.
            patch.setattr(operator, "RELEVANCES", RelevanceCache())
            try:
                run(case)
            except AssertionError:
                return True
        return False

    once = settings(max_examples=2000, phases=[Phase.generate], database=None)
    find(uncertain_cases(), fails, settings=once)
