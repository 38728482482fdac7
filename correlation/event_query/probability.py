"""Probability of one combination with uncertain instants, and the facts from which it follows.

Problem. For the events of a combination and any negated events, describe the decision P >= ct for
`explain`. The job decides many combinations at once (evaluation.probable); both use the same
clauses, as intervals of an instant (evaluation.spans) or boxes of two (evaluation.boxes), and the
same exact integral.

Cost. As absence.exact: this is one combination.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from correlation.buffers.columns import DictionaryColumn, Int64s
from correlation.event_query.absence.describe import NamedInstant, describe_absence, may_stop
from correlation.event_query.absence.instants import make_table
from correlation.event_query.absence.windows import Interval, Window
from correlation.event_query.evaluation.boxes import (
    box_windows,
    list_boxes,
    pack_boxes,
    relative_windows,
)
from correlation.event_query.evaluation.clauses import NO_BOUND
from correlation.event_query.evaluation.spans import Spans, list_spans, pack_spans
from correlation.event_query.meaning import Times, holds
from correlation.event_query.query import Query
from correlation.event_query.relevance.normal_form import Clause, disjunctive_normal_form
from correlation.event_query.relevance.split import split_formula
from correlation.explaining import ReadEvent
from correlation.resources.histogram import Histogram

_Ends = tuple[int, int, int, int]


class KnownEvent(NamedTuple):
    """An event of a combination, or a negated event.

    Attributes
    ----------
    id : str
        Its id.
    begin, end : int
        Its times, or the first and the last possible time of its instant, in µs.
    time : Histogram
        Its instant; of an event that lasts, its end.
    identity : hashable
        Equal for entries that are one event.
    """

    id: str
    begin: int
    end: int
    time: Histogram
    identity: Hashable


class NegatedEvent(NamedTuple):
    """A negated event whose attributes and key match a combination."""

    alias: str
    event: KnownEvent


class Probability:
    """The probability of a combination.

    Parameters
    ----------
    query : Query
        The parsed query, with at most one positive event with an uncertain instant.
    uncertain : collection of str
        Aliases whose instants are uncertain.
    positive : mapping of alias to KnownEvent
        The positive events.
    """

    def __init__(
        self, query: Query, uncertain: Collection[str], positive: Mapping[str, KnownEvent]
    ) -> None:
        self._query = query
        self._uncertain = uncertain
        self._positive = positive
        self._parts = split_formula(query)
        self._packed: dict[tuple[str | None, str], Spans] = {}
        self._windows: dict[str, Window] = {}
        aliases = [*(it.alias for it in query.positive), *(it.alias for it in query.negated)]
        self._columns = {alias: 2 * place for place, alias in enumerate(aliases)}
        found = [it.alias for it in query.positive if it.alias in uncertain]
        self._instant = found[0] if found else None
        self._uncertain_event = positive[found[0]] if found else None
        self._time = positive[self._instant or query.positive[0].alias].time
        self._times = np.zeros((1, 2 * len(aliases)), np.int64)
        for alias, it in positive.items():
            first = self._columns[alias]
            self._times[0, first : first + 2] = it.begin, it.end

    def describe(self, negated: Sequence[NegatedEvent], threshold: Decimal) -> dict[str, Any]:
        """Return the probability and how it is decided.

        Parameters
        ----------
        negated : sequence of NegatedEvent
            The negated events whose attributes and key match.
        threshold : Decimal
            Minimum probability.

        Returns
        -------
        dict
            JSON-able, as `describe_absence`; also `instant`: the alias whose instant is uncertain,
            or null if the positive events have exact times. The windows of an alias are those of
            all its events.
        """
        candidates = [self._candidate(it) for it in negated]
        windows: dict[str, Window] = {}
        for it in self._query.negated:
            mine = [found.window or () for found in candidates if found.alias == it.alias]
            if mine:
                windows[it.alias] = tuple(dict.fromkeys(chain.from_iterable(mine)))
            elif it.alias in self._uncertain:
                windows[it.alias] = self._window(it.alias, None)
        found = describe_absence(self._time, windows, candidates, threshold, self._barred())
        return {"instant": self._instant, **found}

    def is_reduced_by(self, negated: NegatedEvent) -> bool:
        """Return whether a negated event alone stops the combination with a chance above 0."""
        return may_stop(self._time, self._candidate(negated))

    def _candidate(self, negated: NegatedEvent) -> NamedInstant:
        alias, event = negated
        own = self._uncertain_event is not None and (
            event.identity == self._uncertain_event.identity
        )
        window = self._window(alias, event)
        return NamedInstant(alias, event.id, event.time, own, event.identity, window)

    def _window(self, alias: str, event: KnownEvent | None) -> Window:
        """Return the window of T_r - T_s of a negated event; None: of an uncertain instant."""
        if alias in self._uncertain:
            if self._instant is None:
                return self._relative(self._spans(alias, alias, self._times), self._time.latest_us)
            if alias not in self._windows:
                aliases = alias, self._instant
                boxes = pack_boxes(self._clauses(alias), aliases, self._columns)
                self._windows[alias] = box_windows(list_boxes(self._times, boxes)).intervals(0)
            return self._windows[alias]
        if event is None:
            raise TypeError("the window of exact times depends on the event")
        if self._instant is None:
            # All times are exact: the event stops the combination or not.
            known = {**self._positive, alias: event}
            times_of = {name: Times(it.begin, it.end) for name, it in known.items()}
            stops = holds(self._parts.negated[alias], times_of)
            return (Interval(None, None),) if stops else ()
        times = self._times.copy()
        first = self._columns[alias]
        times[0, first : first + 2] = event.begin, event.end
        mirrored = [
            (-hi, -lo, open_hi, open_lo)
            for lo, hi, open_lo, open_hi in self._spans(alias, self._instant, times)
            if lo <= hi
        ]
        return self._relative(mirrored, -event.time.latest_us)

    def _barred(self) -> tuple[Interval, ...]:
        """Return the times of T_s at which a relation among the positive events does not hold."""
        if self._instant is None:
            return ()
        exact = self._time.length_us == 0
        held = sorted(
            (lo + (open_lo if exact else 0), hi - (open_hi if exact else 0))
            for lo, hi, open_lo, open_hi in self._spans(None, self._instant, self._times)
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

    def _spans(self, negated: str | None, alias: str, times: Int64s) -> list[_Ends]:
        """Return the times of an alias at which relations hold.

        They are those of a negated event; None: those among the positive events.
        """
        if (negated, alias) not in self._packed:
            self._packed[negated, alias] = pack_spans(self._clauses(negated), alias, self._columns)
        ends = list_spans(times, self._packed[negated, alias])
        return [tuple(it) for it in ends[0].tolist()]

    def _clauses(self, negated: str | None) -> tuple[Clause, ...]:
        """Return the clauses of a negated event; None: of the positive events."""
        relations = self._parts.positive if negated is None else self._parts.negated[negated]
        return disjunctive_normal_form(relations, self._uncertain)

    def _relative(self, spans: Sequence[_Ends], time_us: int) -> Window:
        ends = np.array(spans, np.int64).reshape(1, -1, 4)
        return relative_windows(ends, np.array([time_us], np.int64)).intervals(0)


def known_event(read: ReadEvent, identity: Hashable) -> KnownEvent:
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
    return KnownEvent(str(read.describe()["id"]), event.earliest, event.latest, time, identity)


def show_chance(numbers: Mapping[str, Any], name: str) -> str:
    """Return a probability as a short fraction, or with six digits."""
    exact = numbers[f"{name}_exact"]
    shown = f"{numbers[name]:.6g}"
    return shown if exact is None or exact in {"0", "1"} else f"{shown} ({exact})"
