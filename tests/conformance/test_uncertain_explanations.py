"""Explained probabilities of combinations with uncertain instants against the oracle's."""

from __future__ import annotations

import random
from decimal import Decimal

from hypothesis import given

from correlation.event_query.probability import KnownEvent, NegatedEvent, Probability
from correlation.resources.histogram import Histogram
from tests.oracle.event_queries import Event, bind, candidates
from tests.oracle.uncertain_queries import probabilities
from tests.support.query_slots import judged_with_key
from tests.support.uncertain_queries import (
    UNCERTAIN_STREAMS,
    UncertainCase,
    draw_uncertain,
    instants_of,
    uncertain_cases,
)

SPAN, COUNT = 9, 8


@given(uncertain_cases())
def test_p_query_uncertain_explained_probabilities_are_the_judges(case: UncertainCase) -> None:
    rng = random.Random(case.seed)  # noqa: S311 - a reproducible choice, no secret
    streams = case.streams()
    chosen = {it.times.stream: streams[it.times.stream] for it in case.relevance.inputs}
    events, shapes = draw_uncertain(rng, COUNT, chosen, span=SPAN, keyed=case.keyed)
    asked = judged_with_key(case.query, UNCERTAIN_STREAMS, keyed=case.keyed)
    instants = instants_of(events, shapes, streams)
    uncertain = {it.alias for it in case.relevance.inputs if it.times.uncertain}

    def known(event: Event) -> KnownEvent:
        time = Histogram.from_interval(event.end, event.end)
        if event.id in instants:
            time = Histogram.from_interval(event.begin, event.end)
        if event.id in shapes:
            time = shapes[event.id].moved(event.end)
        return KnownEvent(str(event.id), event.begin, event.end, time, event.id)

    for found, expected in probabilities(asked, events, instants).items():
        positive = {it.alias: event for it, event in zip(asked.positive, found, strict=True)}
        negated = [
            NegatedEvent(pattern.alias, known(event))
            for pattern in asked.negated
            for event in candidates(pattern, events)
            if bind([*asked.positive, pattern], {**positive, pattern.alias: event}) is not None
        ]
        explained = Probability(
            case.query, uncertain, {alias: known(event) for alias, event in positive.items()}
        ).describe(negated, Decimal("0.5"))
        # Relations among exact times are another step of an explanation.
        if expected or uncertain & positive.keys():
            assert explained["probability"] == float(expected)
