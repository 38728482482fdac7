"""Queries that share the search of a block have the results that they have alone."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from correlation.buffers.columns import Int64s
from correlation.engine.blocks import Control, Outcome
from correlation.engine.heartbeats import RESET, Heartbeat
from correlation.event_query.evaluation import sharing
from correlation.event_query.evaluation.nearest import Anchor
from correlation.event_query.evaluation.sharing import Sharing, _Combinations
from correlation.event_query.query import (
    And,
    AttributePattern,
    Comparison,
    EventPattern,
    Formula,
    Operator,
    Query,
    Relation,
    Variable,
)
from correlation.event_query.relevance.analysis import Relevance, analyse_relevance
from tests.oracle.event_queries import results, time_of
from tests.support.event_queries import SMALL_STREAMS, bounded, end, judged, queries
from tests.support.mutations import assert_caught
from tests.support.query_slots import (
    QuerySlot,
    closing_heartbeats,
    delayed,
    draw_events,
    make_query_block,
    make_streams,
    order_of_arrival,
    query_control,
    read_results,
    true_heartbeat,
    watermarks_of,
)

SPAN, COUNT = 24, 40
_K = (AttributePattern("k", Variable("K")),)
_SHIFTS = st.integers(-3, 3)
Found = list[list[tuple[int, ...]]]


@dataclass(frozen=True)
class Case:
    """Queries in the order in which they are registered, and a seed of their events."""

    queries: tuple[Query, ...]
    relevances: tuple[Relevance, ...]
    seed: int


@st.composite
def absences(draw: st.DrawFn) -> Query:
    """Draw a query whose negated event has one range of times around a positive event."""
    positive = [EventPattern("p0", draw(st.sampled_from(["A", "C"])), _K)]
    low, high = sorted((draw(_SHIFTS), draw(_SHIFTS)))
    parts: list[Formula] = []
    if draw(st.booleans()):
        positive.append(EventPattern("p1", "A", draw(st.sampled_from([(), _K]))))
        parts += [
            Relation(end("p0"), "<=", end("p1")),
            Relation(end("p1"), "<=", end("p0", draw(st.integers(0, 3)))),
        ]
    other = draw(st.sampled_from(positive)).alias
    parts += [
        Relation(end("n0"), draw(st.sampled_from(["<", "<="])), end(other, high)),
        Relation(end(other, low), draw(st.sampled_from(["<", "<="])), end("n0")),
    ]
    kind = draw(st.sampled_from(["A", "A", "A", "B"]))
    negated = EventPattern("n0", kind, draw(st.sampled_from([(), _K])), negated=True)
    return Query("R", (), (*positive, negated), And(tuple(parts)))


BASES = absences() | queries()


@st.composite
def cases(draw: st.DrawFn, bases: st.SearchStrategy[Query] = BASES) -> Case:
    """Draw queries: copies, and some that differ in their negated events, ranges or filters."""
    base = bounded(draw(bases), SMALL_STREAMS)
    found = [base]
    for _ in range(draw(st.integers(1, 4))):
        query = draw(st.sampled_from(found))
        if draw(st.integers(0, 4)):
            query = _narrowed(draw, query)
        if not draw(st.integers(0, 3)):
            query = _filtered(draw, query)
        found.append(bounded(query, SMALL_STREAMS))
    if not draw(st.integers(0, 3)):
        found.append(bounded(draw(absences()), SMALL_STREAMS))
    found = draw(st.permutations(found))
    relevances = tuple(analyse_relevance(it, SMALL_STREAMS) for it in found)
    return Case(tuple(found), relevances, draw(st.integers(0, 2**32)))


def _narrowed(draw: st.DrawFn, query: Query) -> Query:
    """Return a query with a further relation of a negated event."""
    if not query.negated:
        return query
    alias = draw(st.sampled_from(query.negated)).alias
    other = draw(st.sampled_from(query.positive)).alias
    operators: list[Operator] = ["<", "<=", ">", ">="]
    operator = draw(st.sampled_from(operators))
    relation = Relation(end(alias), operator, end(other, draw(_SHIFTS)))
    return replace(query, where=And((query.where, relation)))


def _filtered(draw: st.DrawFn, query: Query) -> Query:
    """Return a query with a further comparison."""
    place = draw(st.integers(0, len(query.events) - 1))
    comparison = Comparison(draw(st.sampled_from(["<=", ">=", "="])), draw(st.integers(0, 2)))
    event = query.events[place]
    attributes = (*event.attributes, AttributePattern("n", comparison))
    events = list(query.events)
    events[place] = replace(event, attributes=attributes)
    return replace(query, events=tuple(events))


def run(case: Case, *, orderly: bool, gain: float = 0, rows: int = 2**20) -> list[Found]:
    """Run queries over events; return the results of each block and query.

    If orderly, no event is late, and the results of each block are compared with the judge's.
    Otherwise events are late, watermarks are reset, and queries are paused and changed.
    """
    rng = random.Random(case.seed)  # noqa: S311 - a reproducible shuffle, no secret
    streams = make_streams(SMALL_STREAMS, keyed=False)
    events = draw_events(rng, COUNT, streams, span=SPAN, keyed=False)
    rest = order_of_arrival(rng, events)
    if not orderly:
        rest, _ = delayed(rng, rest)
    names = [f"q{place}" for place in range(len(case.queries))]
    controls = [
        query_control(place, query, SMALL_STREAMS, name=name)
        for place, (name, query) in enumerate(zip(names, case.queries, strict=True))
    ]
    expected = [
        {tuple(it.id for it in found): time_of(asked, found) for found in results(asked, events)}
        for asked in (judged(it, SMALL_STREAMS) for it in (case.queries if orderly else ()))
    ]
    found: list[Found] = []
    published = [Counter[tuple[int, ...]]() for _ in names]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sharing, "_GAIN", gain)
        patch.setattr(sharing, "SHARED_ROWS", rows)
        slot = QuerySlot(streams)
        slot.advance(make_query_block([], controls))
        offset = len(controls)
        while rest:
            size = rng.randint(1, 10)
            taken, rest = rest[:size], rest[size:]
            beats = [true_heartbeat(rng, name, rest) for name in streams if rng.random() < 0.4]
            changed: list[Control] = []
            if not orderly:
                beats += _reset(rng, list(streams))
                changed = _changed(rng, case, offset)
                offset += len(changed)
            outcome = slot.advance(make_query_block(taken, changed, beats))
            found.append(_results(outcome, names))
            if orderly:
                for place, wanted in enumerate(expected):
                    published[place].update(found[-1][place])
                    progress = {it: mark - 1 for it, mark in watermarks_of(outcome).items()}
                    bound = case.relevances[place].progress.value(progress)
                    assert published[place] == Counter(
                        ids for ids, time in wanted.items() if time <= bound
                    )
            if rng.random() < 0.3:
                slot.restart()
        outcome = slot.advance(make_query_block([], heartbeats=closing_heartbeats(streams)))
        found.append(_results(outcome, names))
    for place, wanted in enumerate(expected):
        published[place].update(found[-1][place])
        assert published[place] == Counter(wanted.keys())
    return found


def _results(outcome: Outcome, names: list[str]) -> Found:
    return [sorted(read_results(outcome, name)) for name in names]


def _reset(rng: random.Random, streams: list[str]) -> list[Heartbeat]:
    """Return a reset of a stream, or nothing."""
    if rng.random() < 0.8:
        return []
    return [Heartbeat(rng.choice(streams), None, RESET, None)]


def _changed(rng: random.Random, case: Case, offset: int) -> list[Control]:
    """Return a new version of a query, perhaps paused, or nothing."""
    if rng.random() < 0.7:
        return []
    place = rng.randrange(len(case.queries))
    query = case.queries[place if rng.random() < 0.5 else rng.randrange(len(case.queries))]
    paused = rng.random() < 0.3
    name = f"q{place}"
    return [query_control(offset, query, SMALL_STREAMS, offset + 2, name, paused=paused)]


@given(cases())
def test_p_query_shared_results_are_the_judges_as_soon_as_they_are_final(case: Case) -> None:
    run(case, orderly=True)


@given(cases(), st.sampled_from([0, 3, 30, 2**20]))
def test_p_query_shared_results_are_those_of_queries_alone(case: Case, rows: int) -> None:
    alone = run(case, orderly=False, gain=float("inf"))
    assert run(case, orderly=False, rows=rows) == alone


def _shifted(side: str) -> tuple[object, str, object]:
    right = getattr(Anchor, side)

    def wrong(it: Anchor, column: Callable[[int], Int64s]) -> Int64s | None:
        limits: Int64s | None = right(it, column)
        return None if limits is None else limits + 1

    return Anchor, side, wrong


@pytest.mark.parametrize(
    ("owner", "name", "wrong"),
    [
        # The range of a negated event is moved by one microsecond, if its nearest event decides.
        _shifted("_from"),
        _shifted("_until"),
        # No event stops a combination, if the searches of queries are equal.
        (_Combinations, "_all_stopped", lambda it, *_: np.zeros(len(it), np.bool_)),
    ],
)
def test_a_mutation_of_what_queries_share_is_caught(
    owner: type, name: str, wrong: Callable[..., object]
) -> None:
    # Only queries whose negated event has one range use a nearest event.
    chosen = cases(absences() if owner is Anchor else BASES)
    assert_caught(chosen, partial(run, orderly=True), owner, name, wrong)


def test_shared_combinations_are_released_with_their_last_query() -> None:
    released: list[int] = []
    right = Sharing.due

    def watched(it: Sharing, *args: object) -> object:
        found = right(it, *args)  # type: ignore[arg-type]
        released.append(it._free)  # noqa: SLF001 - the bound of the memory is the claim
        return found

    near = (Relation(end("p0"), "<=", end("n0")), Relation(end("n0"), "<=", end("p0", 3)))
    events = (EventPattern("p0", "A", _K), EventPattern("n0", "A", _K, negated=True))
    query = Query("R", (), events, And(near))
    case = Case((query,) * 3, (analyse_relevance(query, SMALL_STREAMS),) * 3, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sharing, "due", watched)
        run(case, orderly=True, rows=1000)
    assert min(released) < 1000
    assert released[2::3] == [1000] * (len(released) // 3)
