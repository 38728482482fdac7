"""Event queries on streams of uncertain instants for tests: random queries, events, thresholds."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from hypothesis import assume
from hypothesis import strategies as st

from correlation.event_query.query import (
    And,
    AttributePattern,
    EventPattern,
    Formula,
    Operator,
    Query,
    Relation,
    Variable,
)
from correlation.event_query.relevance.analysis import (
    Relevance,
    analyse_relevance,
    may_end_before_it_begins,
)
from correlation.event_query.relevance.closure import StreamTimes
from correlation.resources.histogram import WHOLE_MASS, Histogram
from correlation.resources.streams import Stream
from correlation.resources.template import Template
from tests.oracle.event_queries import Event
from tests.oracle.uncertain_queries import Bucket
from tests.support.event_queries import bounded, end, formulas, near, with_times
from tests.support.histogram_slots import own_histogram
from tests.support.query_slots import draw_events, make_streams
from tests.unit.correlation.timing.histogram_strategies import described

LONGEST = 4
# Uncertain instants in two types, events that last, and exact instants.
UNCERTAIN_STREAMS = {
    "A": StreamTimes("a", 0, 0, LONGEST),
    "B": StreamTimes("b", 0, 2),
    "D": StreamTimes("a", 0, 0, LONGEST),
    "E": StreamTimes("e", 0, 0),
}
# Templates of the uncertain instants: as long as an event may be, and shorter.
TEMPLATES = (
    Template("early", described((-LONGEST, -2, "0.75"), (-2, 0, "0.25"))),
    Template("gap", described((-3, -2, "0.5"), (-2, -1, "0"), (-1, 0, "0.5"))),
    Template("even", described((-2, 0, "1"))),
)
# Forms of time that the streams of uncertain instants declare beside intervals.
DECLARED = ("histograms", "templates", "both")
_EXACT = ("B", "E")
_INSTANTS = ("A", "D")
_PLACES = 10


@dataclass(frozen=True)
class UncertainCase:
    """A bounded query with at most one positive event of an uncertain instant."""

    query: Query
    relevance: Relevance
    keyed: bool
    seed: int
    declared: str

    def streams(self) -> dict[str, Stream]:
        """Return the streams of all types, with the declared forms of time."""
        found = make_streams(UNCERTAIN_STREAMS, keyed=self.keyed)
        for name, stream in found.items():
            if stream.max_uncertainty_us:
                found[name] = replace(
                    stream,
                    histograms=self.declared != "templates",
                    templates=() if self.declared == "histograms" else TEMPLATES,
                )
        return found


@st.composite
def uncertain_cases(draw: st.DrawFn) -> UncertainCase:
    """Draw a query; if it is not bounded, relations are added."""
    positive = [f"p{i}" for i in range(draw(st.sampled_from([1, 1, 1, 2, 2, 3])))]
    negated = [f"n{i}" for i in range(draw(st.sampled_from([0, 1, 1, 1, 2, 3])))]
    types = {it: draw(st.sampled_from(_EXACT)) for it in positive}
    instant = draw(st.sampled_from([*positive, *positive, ""] if negated else positive))
    if instant:
        types[instant] = draw(st.sampled_from(_INSTANTS))
    types |= {it: draw(st.sampled_from([*_EXACT, *_INSTANTS, *_INSTANTS])) for it in negated}
    assume(any(it in _INSTANTS for it in types.values()))
    parts: list[Formula] = []
    for number, alias in enumerate([*positive, *negated]):
        others = positive[:number]
        if others:
            parts += near(draw, alias, draw(st.sampled_from(others)))
            if alias in negated and draw(st.booleans()):
                # Beside an uncertain instant, relations to the others are fixed ends.
                parts += _beside(draw, alias, draw(st.sampled_from(others)))
            if alias in negated and not draw(st.integers(0, 2)):
                parts.append(draw(formulas(*others, alias)))
    if not draw(st.integers(0, 2)):
        parts.append(draw(formulas(*positive)))
    patterns = st.lists(st.just(AttributePattern("k", Variable("K"))), max_size=1)
    has_variable = False
    events = []
    for alias in [*positive, *negated]:
        chosen = tuple(draw(patterns)) if alias in positive or has_variable else ()
        has_variable |= bool(chosen)
        events.append(EventPattern(alias, types[alias], chosen, negated=alias in negated))
    query = with_times(draw, Query("R", (), tuple(events), And(tuple(parts))))
    query = bounded(query, UNCERTAIN_STREAMS)
    assume(not may_end_before_it_begins(query, UNCERTAIN_STREAMS))
    relevance = analyse_relevance(query, UNCERTAIN_STREAMS)
    keyed, seed = draw(st.booleans()), draw(st.integers(0, 2**32))
    return UncertainCase(query, relevance, keyed, seed, draw(st.sampled_from(DECLARED)))


def _beside(draw: st.DrawFn, alias: str, other: str) -> list[Formula]:
    """Return a relation that is a one-sided bound of a negated event by another event."""
    shift = draw(st.integers(-3, 3))
    operator: Operator = draw(st.sampled_from(["<", "<=", ">", ">="]))
    return [Relation(end(alias), operator, end(other, shift))]


def draw_uncertain(
    rng: random.Random, count: int, streams: Mapping[str, Stream], *, span: int, keyed: bool
) -> tuple[list[Event], dict[int, Histogram]]:
    """Draw events, and the histograms of some; of the uncertain instants some are exact.

    The histograms are templates, or an event's own, as the streams declare.
    """
    found, shapes = [], {}
    for event in draw_events(rng, count, streams, span=span, keyed=keyed):
        stream = streams[event.stream]
        limit = stream.max_uncertainty_us
        # Exact instants of an uncertain stream are rarer.
        length = rng.choice([0, *range(limit), *[limit] * 3]) if limit else event.end - event.begin
        if stream.templates and rng.random() < 1 / 2:
            shapes[event.id] = rng.choice(stream.templates).histogram
            length = shapes[event.id].length_us
        elif stream.histograms and length > 1 and rng.random() < 1 / 3:
            shapes[event.id] = own_histogram(rng, length)
        found.append(replace(event, begin=event.end - length))
    return found, shapes


def instants_of(
    events: Iterable[Event], shapes: Mapping[int, Histogram], streams: Mapping[str, Stream]
) -> dict[int, Sequence[Bucket]]:
    """Return the buckets of the uncertain instants for the oracle."""
    found: dict[int, Sequence[Bucket]] = {}
    for it in events:
        if it.begin < it.end and not streams[it.stream].lasts:
            shape = shapes.get(it.id)
            found[it.id] = (
                [(it.begin, it.end, Fraction(1))]
                if shape is None
                else [
                    (lo, hi, Fraction(mass, WHOLE_MASS))
                    for lo, hi, mass in shape.moved(it.end).buckets
                ]
            )
    return found


def draw_threshold(rng: random.Random, found: Iterable[Fraction]) -> str:
    """Return a threshold: often a probability that occurs, if it is a decimal."""
    places = 10**_PLACES
    ties = sorted({it for it in found if it > 0 and places % it.denominator == 0})
    if ties and rng.random() < 0.6:
        tie = rng.choice(ties)
        return f"{tie.numerator * places // tie.denominator / places:.{_PLACES}f}"
    return rng.choice(["0.0000000001", "0.1", "0.3", "0.5", "0.7", "0.9", "1"])
