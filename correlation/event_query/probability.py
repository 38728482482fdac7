"""Probability of one combination with uncertain instants, and the facts from which it follows.

Problem. For the events of a combination and any negated events, describe the decision P >= ct for
`explain`. The job decides many combinations at once (evaluation.probable); both use the same
clauses, as intervals of an instant (evaluation.spans), and the same exact integral.

Cost. As absence.exact: this is one combination.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from correlation.buffers.columns import DictionaryColumn
from correlation.event_query.absence.describe import NamedInstant, describe_absence
from correlation.event_query.absence.instants import make_table
from correlation.event_query.absence.windows import Interval
from correlation.event_query.evaluation.clauses import NO_BOUND
from correlation.event_query.evaluation.probable import relative_windows
from correlation.event_query.evaluation.spans import list_spans, pack_spans
from correlation.event_query.query import And, Query
from correlation.event_query.relevance.normal_form import disjunctive_normal_form
from correlation.event_query.relevance.split import split_formula
from correlation.explaining import ReadEvent
from correlation.resources.histogram import Histogram

_Ends = tuple[int, int, int, int]


class KnownEvent(NamedTuple):
    """An event of a combination, or a negated event.

    Attributes
    ----------
    stream, id : str
        Its stream and its id.
    begin, end : int
        Its times, or the first and the last possible time of its instant, in µs.
    time : Histogram
        Its instant; of an event that lasts, its end.
    """

    stream: str
    id: str
    begin: int
    end: int
    time: Histogram


def describe_probability(
    query: Query,
    uncertain: Collection[str],
    events: Mapping[str, KnownEvent],
    own: Collection[str],
    threshold: Decimal,
) -> dict[str, Any]:
    """Return the probability of a combination and how it is decided.

    Parameters
    ----------
    query : Query
        The parsed query, with at most one positive event with an uncertain instant.
    uncertain : collection of str
        Aliases whose instants are uncertain.
    events : mapping of alias to KnownEvent
        The positive events, and the negated events whose attributes and key match.
    own : collection of str
        Negated aliases whose event is the uncertain positive event itself.
    threshold : Decimal
        Minimum probability.

    Returns
    -------
    dict
        JSON-able, as `describe_absence`; also `instant`: the alias whose instant is uncertain, or
        null if the positive events have exact times.
    """
    return _Combination(query, uncertain, events).describe(own, threshold)


class _Combination:
    def __init__(
        self, query: Query, uncertain: Collection[str], events: Mapping[str, KnownEvent]
    ) -> None:
        self._query = query
        self._uncertain = uncertain
        self._events = events
        self._parts = split_formula(query)
        aliases = [*(it.alias for it in query.positive), *(it.alias for it in query.negated)]
        self._columns = {alias: 2 * place for place, alias in enumerate(aliases)}
        found = [it.alias for it in query.positive if it.alias in uncertain]
        self._instant = found[0] if found else None
        self._times = np.zeros((1, 2 * len(aliases)), np.int64)
        for alias, it in events.items():
            first = self._columns[alias]
            self._times[0, first : first + 2] = it.begin, it.end

    def describe(self, own: Collection[str], threshold: Decimal) -> dict[str, Any]:
        first = self._query.positive[0].alias
        positive = self._events[self._instant or first].time
        windows: dict[str, tuple[Interval, ...]] = {}
        candidates = []
        for it in self._query.negated:
            known = self._events.get(it.alias)
            if known is None:
                if it.alias in self._uncertain:
                    windows[it.alias] = self._window(it.alias, positive, positive)
                continue
            windows[it.alias] = self._window(it.alias, positive, known.time)
            same = it.alias in own
            candidates.append(NamedInstant(it.alias, known.id, known.time, same, known.stream))
        found = describe_absence(positive, windows, candidates, threshold, self._barred(positive))
        return {"instant": self._instant, **found}

    def _window(self, alias: str, positive: Histogram, known: Histogram) -> tuple[Interval, ...]:
        """Return the window of T_r - T_s of a negated event with the time T_r."""
        relations = self._parts.negated[alias]
        if alias in self._uncertain:
            if self._instant is None:
                return self._relative(self._spans(relations, alias), positive.latest_us)
            zero = np.zeros_like(self._times)
            return self._relative(self._spans(relations, alias, zero), 0)
        if self._instant is None:
            # All times are exact: the event stops the combination or not.
            stops = self._spans(relations, self._query.positive[0].alias)
            time = positive.latest_us
            held = any(lo + open_lo <= time <= hi - open_hi for lo, hi, open_lo, open_hi in stops)
            return (Interval(None, None),) if held else ()
        mirrored = [
            (-hi, -lo, open_hi, open_lo)
            for lo, hi, open_lo, open_hi in self._spans(relations, self._instant)
            if lo <= hi
        ]
        return self._relative(mirrored, -known.latest_us)

    def _barred(self, positive: Histogram) -> tuple[Interval, ...]:
        """Return the times of T_s at which a relation among the positive events does not hold."""
        if self._instant is None:
            return ()
        exact = positive.length_us == 0
        held = sorted(
            (lo + (open_lo if exact else 0), hi - (open_hi if exact else 0))
            for lo, hi, open_lo, open_hi in self._spans(self._parts.positive, self._instant)
        )
        found = []
        reached: int | None = None
        for lo, hi in held:
            if lo > hi:
                continue
            if reached is None or lo > reached:
                before = None if lo == -NO_BOUND else lo
                if before is not None:
                    found.append(Interval(reached, before, reached is not None, open_hi=True))
            reached = hi if reached is None else max(reached, hi)
        if reached is None:
            return (Interval(None, None),)
        if reached != NO_BOUND:
            found.append(Interval(reached, None, open_lo=True))
        return tuple(found)

    def _spans(self, relations: And, alias: str, times: Any = None) -> list[_Ends]:  # noqa: ANN401 - a matrix
        clauses = disjunctive_normal_form(relations, self._uncertain)
        spans = pack_spans(clauses, alias, self._columns)
        ends = list_spans(self._times if times is None else times, spans)
        return [tuple(it) for it in ends[0].tolist()]

    def _relative(self, spans: Sequence[_Ends], time_us: int) -> tuple[Interval, ...]:
        ends = np.array(spans, np.int64).reshape(1, -1, 4)
        return relative_windows(ends, np.array([time_us], np.int64)).intervals(0)


def known_event(read: ReadEvent) -> KnownEvent:
    """Return an event with its times; the record is valid."""
    event = read.event
    if event is None:
        raise TypeError("the record is not a valid event")
    if read.stream.lasts:
        time = Histogram.from_interval(event.latest, event.latest)
    else:
        time = make_table(
            [event.earliest], [event.latest], DictionaryColumn.from_list([event.shape])
        ).histogram(0)
    found = read.describe()
    return KnownEvent(found["stream"], str(found["id"]), event.earliest, event.latest, time)


def show_chance(numbers: Mapping[str, Any], name: str) -> str:
    """Return a probability as a short fraction, or with six digits."""
    exact = numbers[f"{name}_exact"]
    shown = f"{numbers[name]:.6g}"
    return shown if exact is None or exact in {"0", "1"} else f"{shown} ({exact})"
