"""Event queries on a stream that is declared exact while older uncertain events are buffered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from correlation.engine.program import Outcome
from correlation.event_query.query import And, EventPattern, Query, Relation
from correlation.event_query.relevance.closure import StreamTimes
from tests.oracle.event_queries import Event
from tests.support.event_queries import end
from tests.support.query_slots import (
    Arrival,
    QuerySlot,
    closing_heartbeats,
    counters_of,
    make_query_block,
    make_streams,
    query_control,
    read_results,
)

# The instants of all streams are uncertain by 50 µs when the events arrive.
TYPES = {name: StreamTimes(name.lower(), 0, 0, 50) for name in ("Smoke", "Leak", "Door", "Report")}
# Keeps the events of all streams.
EARLIER = Query(
    "Alarm",
    (),
    (EventPattern("l", "Leak"), *(EventPattern(it, it, negated=True) for it in TYPES)),
    And(
        tuple(
            relation
            for it in TYPES
            for relation in (
                Relation(end("l"), "<=", end(it)),
                Relation(end(it), "<=", end("l", 1000)),
            )
        )
    ),
)


def within(first: str, second: str, us: int) -> tuple[Relation, Relation]:
    """Return the relations of an event that follows another within a time."""
    return Relation(end(first), "<=", end(second)), Relation(end(second), "<=", end(first, us))


def evaluate(
    query: Query, exact: Sequence[str], events: Sequence[Event], threshold: str | None = None
) -> Outcome:
    """Return the results of a query that is registered after some streams became exact."""
    slot = QuerySlot(make_streams(TYPES, keyed=False))
    earlier = query_control(0, EARLIER, TYPES, name="earlier", threshold="0.5")
    offsets = dict.fromkeys(slot.streams, -1)
    arrivals = []
    for it in events:
        offsets[it.stream] += 1
        arrivals.append(Arrival(it, 0, offsets[it.stream]))
    slot.advance(make_query_block(arrivals, [earlier]))
    types = {
        name: replace(it, uncertainty_us=0) if name in exact else it for name, it in TYPES.items()
    }
    slot.streams = make_streams(types, keyed=False)
    slot.restart()
    outcome = slot.advance(
        make_query_block([], [query_control(1, query, types, threshold=threshold)])
    )
    state = outcome.metrics["conditions"]["q"]
    assert (state["state"], state["detail"]) == ("running", None)
    return slot.advance(make_query_block([], heartbeats=closing_heartbeats(slot.streams)))


def test_a_query_of_exact_instants_leaves_older_uncertain_events_out() -> None:
    events = (EventPattern("s", "Smoke"), EventPattern("r", "Report", negated=True))
    query = Query("Alarm", (), events, And(within("s", "r", 100)))
    outcome = evaluate(
        query,
        ["Smoke", "Report"],
        [
            Event("smoke", 460, 500, (), 1),
            Event("smoke", 500, 500, (), 2),
            Event("report", 560, 590, (), 3),
            Event("smoke", 590, 590, (), 4),
            Event("smoke", 591, 591, (), 5),
        ],
    )
    # The report may stop the combinations up to its last possible time.
    assert read_results(outcome) == [(5,)]
    assert counters_of(outcome)["query_undecided_total"] == 2


def test_a_query_with_a_threshold_leaves_older_uncertain_positive_events_out() -> None:
    """Two positive events with uncertain instants would not be supported."""
    events = (EventPattern("a", "Leak"), EventPattern("d", "Door"))
    outcome = evaluate(
        Query("Alarm", (), events, And(within("a", "d", 50))),
        ["Door"],
        [
            Event("door", 120, 150, (), 1),
            Event("door", 150, 150, (), 2),
            Event("leak", 100, 120, (), 3),
        ],
        "0.5",
    )
    assert read_results(outcome) == [(3, 2)]


def test_a_query_with_a_threshold_does_not_decide_what_older_uncertain_events_may_stop() -> None:
    """An uncertain door makes two positive events uncertain, which is not supported."""
    events = (
        EventPattern("a", "Leak"),
        EventPattern("d", "Door"),
        EventPattern("r", "Report", negated=True),
    )
    relations = (*within("a", "d", 50), *within("d", "r", 50))
    query = Query("Alarm", (), events, And(relations))
    sent = [
        Event("report", 630, 660, (), 1),
        Event("leak", 600, 620, (), 2),
        Event("door", 620, 620, (), 3),
        Event("leak", 710, 711, (), 4),
        Event("door", 711, 711, (), 5),
    ]
    # The report is certainly within 50 µs after the first door, and more than 50 µs before the end
    # of the second combination.
    for doors, undecided in (([], 0), ([Event("door", 500, 530, (), 6)], 1)):
        outcome = evaluate(query, ["Door", "Report"], [*sent, *doors], "0.5")
        assert read_results(outcome) == [(4, 5)]
        assert counters_of(outcome)["query_undecided_total"] == undecided


def test_older_uncertain_events_count_where_the_query_can_be_evaluated_with_them() -> None:
    events = (EventPattern("a", "Leak"), EventPattern("r", "Report", negated=True))
    query = Query("Alarm", (), events, And(within("a", "r", 100)))
    sent = [Event("leak", 460, 500, (), 1), Event("report", 470, 490, (), 2)]
    outcome = evaluate(query, ["Report"], sent, "0.5")
    assert read_results(outcome) == [(1,)]
    outcome = evaluate(query, ["Report"], sent, "0.5000000001")
    assert read_results(outcome) == []
    assert counters_of(outcome)["query_undecided_total"] == 0
