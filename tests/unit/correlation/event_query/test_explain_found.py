"""Explanations with all events of the negated aliases against the oracle's probabilities."""

from __future__ import annotations

import random
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from hypothesis import given, settings

from correlation.event_query.condition import EventQueryCondition
from correlation.event_query.explain import explain_combination, find_stopping
from correlation.explaining import GivenRecord, Place
from tests.oracle.uncertain_queries import probabilities
from tests.support.query_slots import KEY, judged_with_key
from tests.support.uncertain_queries import (
    TEMPLATES,
    UNCERTAIN_STREAMS,
    UncertainCase,
    draw_threshold,
    draw_uncertain,
    instants_of,
    uncertain_cases,
)

if TYPE_CHECKING:
    from correlation.resources.histogram import Histogram
    from tests.oracle.event_queries import Event

COUNT, SPAN, LATER = 8, 9, 100


NAMES = {it.histogram: it.name for it in TEMPLATES}


def as_record(it: Event, shape: Histogram | None) -> GivenRecord:
    attributes = dict(it.attributes)
    value = {
        "id": str(it.id),
        "key": attributes.pop(KEY, "0"),
        "attributes": attributes,
        **times_of(it, shape),
    }
    return GivenRecord(value, place=Place(it.stream, 0, it.id), form="event")


def times_of(it: Event, shape: Histogram | None) -> dict[str, object]:
    """Return the fields of an event's time; those of a template name it."""
    if shape is not None:
        if shape in NAMES:
            return {"detected": it.end, "template": NAMES[shape]}
        return {"histogram": shape.moved(it.end).to_buckets()}
    if it.stream == UNCERTAIN_STREAMS["B"].stream:
        return {"begin": it.begin, "end": it.end}
    return {"earliest": it.begin, "latest": it.end}


@given(uncertain_cases())
@settings(max_examples=40)
def test_explanations_with_all_events_are_the_judges(case: UncertainCase) -> None:
    rng = random.Random(case.seed)  # noqa: S311 - a reproducible draw, no secret
    streams = case.streams()
    used = {it.times.stream for it in case.relevance.inputs}
    chosen = {it: streams[it] for it in used}
    drawn, shapes = draw_uncertain(rng, COUNT, chosen, span=SPAN, keyed=case.keyed)
    # Times before 1970 are refused.
    events = [replace(it, begin=it.begin + LATER, end=it.end + LATER) for it in drawn]
    known = probabilities(
        judged_with_key(case.query, UNCERTAIN_STREAMS, keyed=case.keyed),
        events,
        instants_of(events, shapes, streams),
    )
    threshold = draw_threshold(rng, known.values())
    types = {it.type: UNCERTAIN_STREAMS[it.type].stream for it in case.query.events}
    condition = EventQueryCondition("q", 1, case.query, types, threshold=Decimal(threshold))
    for combination, expected in known.items():
        asked = {
            it.alias: as_record(event, shapes.get(event.id))
            for it, event in zip(case.query.positive, combination, strict=True)
        }
        tests = find_stopping(condition, streams, asked)
        found = {
            alias: [
                record
                for it in events
                if it.stream == condition.stream_of[alias]
                and test(record := as_record(it, shapes.get(it.id)))
            ]
            for alias, test in tests.items()
        }
        answer = explain_combination(condition, streams, asked, found)
        assert (answer["verdict"] == "satisfied") == (expected >= Fraction(threshold))
        if tests:
            assert answer["absence"]["probability"] == float(expected)
