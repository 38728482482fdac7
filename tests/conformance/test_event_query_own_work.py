"""The work of an event query does not depend on the events that other queries keep."""

from __future__ import annotations

import random
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from correlation.engine.blocks import Block, Control
from correlation.event_query.evaluation.clauses import NO_BOUND
from correlation.event_query.evaluation.compiled import Target
from correlation.event_query.evaluation.search import Bounds, Search
from correlation.event_query.evaluation.tables import Table
from correlation.event_query.query import (
    And,
    AttributePattern,
    Comparison,
    EventPattern,
    Query,
    Relation,
)
from tests.support.event_queries import SMALL_STREAMS, bounded, end, queries
from tests.support.mutations import assert_caught
from tests.support.query_slots import (
    QuerySlot,
    closing_heartbeats,
    counters_of,
    draw_events,
    make_query_block,
    make_streams,
    order_of_arrival,
    query_control,
)

COUNT, SPAN, BLOCK = 60, 80, 6
FAR = 1000
# A query of no combinations that keeps the events of all streams.
WIDE = Query(
    "Wide",
    (),
    (
        EventPattern("w", "A", (AttributePattern("k", Comparison("=", "none")),)),
        EventPattern("b", "B", negated=True),
        EventPattern("c", "C", negated=True),
    ),
    And(
        tuple(
            relation
            for it in "bc"
            for relation in (
                Relation(end(it), "<=", end("w", FAR)),
                Relation(end("w"), "<=", end(it, FAR)),
            )
        )
    ),
)


def read_blocks(blocks: list[Block], controls: list[Control]) -> tuple[list[int], int]:
    """Return the combinations that query q looked at in each block, and the events buffered."""
    slot = QuerySlot(make_streams(SMALL_STREAMS, keyed=False))
    slot.advance(make_query_block([], controls))
    looked_at, buffered = [], 0
    for block in blocks:
        outcome = slot.advance(block)
        looked_at.append(counters_of(outcome).get("query_combinations_total", 0))
        gauges = outcome.metrics["gauges"]
        buffered += sum(value for name, _, value in gauges if name == "buffered_events")
    return looked_at, buffered


def run(case: tuple[Query, int]) -> None:
    """Compare the numbers of a query alone with those beside the wide query."""
    query, seed = case
    rng = random.Random(seed)  # noqa: S311 - a reproducible shuffle, no secret
    streams = make_streams(SMALL_STREAMS, keyed=False)
    rest = order_of_arrival(rng, draw_events(rng, COUNT, streams, span=SPAN, keyed=False))
    blocks = [make_query_block(rest[at : at + BLOCK]) for at in range(0, COUNT, BLOCK)]
    blocks.append(make_query_block([], heartbeats=closing_heartbeats(streams)))
    narrow = query_control(0, query, SMALL_STREAMS)
    wide = query_control(1, WIDE, SMALL_STREAMS, name="wide")
    alone, kept = read_blocks(blocks, [narrow])
    beside, kept_beside = read_blocks(blocks, [narrow, wide])
    assert kept < kept_beside
    assert beside == alone


CASES = st.tuples(queries().map(lambda it: bounded(it, SMALL_STREAMS)), st.integers(0, 2**32))


@given(CASES)
def test_a_query_looks_at_as_many_combinations_beside_a_query_that_keeps_more(
    case: tuple[Query, int],
) -> None:
    run(case)


def test_a_search_that_begins_with_all_buffered_events_is_caught() -> None:
    right = Search._begin  # noqa: SLF001 - the method that is mutated

    def wrong(it: Search, pivot: Target, bounds: Bounds, *, late: bool) -> Iterator[Table]:
        return right(it, pivot, (-NO_BOUND, bounds[1]), late=late)

    assert_caught(CASES, run, Search, "_begin", wrong)
