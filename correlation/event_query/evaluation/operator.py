"""Operator that evaluates one event query over the shared buffers of a slot.

Problem. Report each combination of positive events that no negated event stops, once, as soon as no
future event can make or stop it, and never earlier.

Algorithm. The progress B of the results follows from the watermarks (relevance.progress). A block
publishes the results of time T in (R, B], where R is the bound published before: those that events
of the block complete, and those that had to wait for progress; a heartbeat is enough. The state is
R. Buffers keep the events above the keep values at B (relevance.keep), so they hold all events that
these results need (docs/proofs.md, P-QUERY-ONCE).

Late events. A late event takes part in all results that are not yet published. With a late positive
event a combination may have T <= R: it is decided at once, by the buffered events. If the query has
negated events, it is reported only if their absence is known: the buffers still hold all events
that could stop it, and B >= T. A result with a late positive event has `late`. A late negated event
does not withdraw a published result.

Beginning. A new condition begins with R = B. Of the events that arrived before it, the buffers may
have dropped some: a combination that one of them might have stopped is not reported. The same holds
after a reset and for a changed version whose window is wider. Such combinations are counted.

Exact instants. In a stream of exact instants, older events with uncertain instants may be buffered,
from before its declaration changed. They are in no combination. Whether a negated one stops a
combination is not known, as if it was dropped.

Sharing. Queries with equal positive parts share the search of a block (`sharing`).

Cost. See `search`, `views` and `sharing`. A block without due events costs O(1) per segment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import cast

import numpy as np

from correlation.event_query.comparing import round_constants
from correlation.event_query.condition import EventQueryCondition
from correlation.event_query.evaluation.alarms import EventQueryAlarms, EventsOfAlias, Written
from correlation.event_query.evaluation.compiled import compile_query
from correlation.event_query.evaluation.decider import Decided, Decider
from correlation.event_query.evaluation.release import Release
from correlation.event_query.evaluation.search import Search
from correlation.event_query.evaluation.sharing import Form, Sharing, Wish
from correlation.event_query.evaluation.views import Views
from correlation.event_query.language.writer import write_attributes, write_formula, write_term
from correlation.event_query.query import Point, Query, Term, map_points, map_terms
from correlation.event_query.relevance.cached import RELEVANCES
from correlation.event_query.relevance.closure import Distance, StreamTimes
from correlation.limits import KEEP_NOTHING, UNKNOWN_WATERMARK
from correlation.operators import Evaluation, View
from correlation.resources.streams import Stream

METRICS: Mapping[str, str] = MappingProxyType(
    {
        "query_combinations_total": "Combinations of positive events that were looked at; those "
        "of a search that queries share count for each query that decides them.",
        "query_negated_events_total": "Negated events that were looked at for combinations; those "
        "of a search that queries share count for one of them.",
        "query_decisions_total": "Combinations decided by their probability, by way of the "
        "decision: position, filter or exact.",
        "query_undecided_total": "Combinations that were not reported because events that may "
        "stop them were dropped before, may still come, or have uncertain instants in a stream "
        "that is now declared exact.",
    }
)
# Views of the segments of all slots of the process.
_VIEWS = Views()
# Keys of `View.shared`.
_SHARING, _WRITTEN = "event_query.sharing", "event_query.written"


def stream_times(stream: Stream) -> StreamTimes:
    """Return the lengths of the events of a stream for the relevance analysis."""
    if stream.lasts:
        return StreamTimes(stream.name, stream.min_length_us or 0, stream.max_length_us)
    return StreamTimes(stream.name, 0, 0, stream.max_uncertainty_us)


class EventQueryOperator:
    """Operator of an event query.

    Parameters
    ----------
    condition : EventQueryCondition
        The condition to evaluate.
    streams : mapping of name to Stream
        The streams; those of the condition have equal partitioning.

    Raises
    ------
    InvalidFieldError
        The query is not bounded.
    """

    def __init__(self, condition: EventQueryCondition, streams: Mapping[str, Stream]) -> None:
        self._condition = condition
        self._streams = {name: streams[name] for name in condition.streams}
        query, stream_of = condition.query, condition.stream_of
        self._relevance = RELEVANCES.analyse(
            query, {it.type: stream_times(streams[stream_of[it.alias]]) for it in query.events}
        )
        keyed = self._streams[condition.streams[0]].partitioning.by == "key"
        rounded = round_constants(query, {it: streams[name] for it, name in stream_of.items()})
        self._query = compile_query(rounded, self._relevance, keyed=keyed)
        self._form = Form.of_query(self._query, self._is_exact)
        self._release = Release(
            [stream_of[it.alias] for it in query.positive],
            [stream_of[it.alias] for it in query.negated],
            "" if query.result_end is None else _describe_time(query, stream_of),
            self._query.time.highest_shift_us,
        )
        # The last values: a block asks for the same several times.
        self._last_progress: tuple[tuple[int, ...], int] = ((), 0)
        self._last_keep: tuple[int, Mapping[str, int]] | None = None

    def begin(
        self,
        watermarks: Mapping[str, int],
        held_from: Mapping[str, int],  # noqa: ARG002 - the buffers of each block have it
        before: bytes,
    ) -> None:
        """See `Operator.begin`."""
        self._release.begin(self._progress(watermarks), before)

    def held(self) -> dict[str, list[int]]:
        """See `Operator.held`."""
        return self._release.held()

    def needs_timestamps(self) -> bool:
        """See `Operator.needs_timestamps`."""
        return False

    def dump(self) -> bytes:
        """See `Operator.dump`."""
        return self._release.dump()

    def keep_values(self, watermarks: Mapping[str, int]) -> Mapping[str, int]:
        """See `Operator.keep_values`."""
        progress = self._progress(watermarks)
        if self._last_keep is None or self._last_keep[0] != progress:
            # The analysis excludes its keep values: it needs events whose time is larger.
            keep = self._relevance.keep_values(progress)
            self._last_keep = progress, {name: _limit(it + 1) for name, it in keep.items()}
        return self._last_keep[1]

    def evaluate(self, view: View) -> Evaluation:
        """See `Operator.evaluate`."""
        sharing = self._sharing(view)
        progress = self._progress(view.watermarks)
        self._release.reset(progress, view.buffers)
        published = self._release.published
        search = self._search(view)
        bounds = progress, self._complete_above(view, search)
        decider = Decider.of(self._query, search, bounds, self._condition.threshold)
        wish = self._wish(view, progress)
        due = None if wish is None else sharing.due(wish, search)
        if due is None:
            seals = [self._release.seals(it.stream, view.buffers) for it in self._query.positive]
            parts = [
                decider.results(decider.undecided_before(table, seals))
                for table in search.combinations(published, max(published, progress))
            ]
        else:
            late = map(decider.results, search.late(published))
            parts = [decider.known(Decided(due)), *late]
        self._release.advance(progress, view.buffers)
        name = {"condition": self._condition.name}
        counts: list[tuple[str, Mapping[str, str], int]] = [
            ("query_combinations_total", name, search.counts.combinations),
            ("query_negated_events_total", name, search.counts.negated),
            ("query_undecided_total", name, decider.unknown),
        ]
        if decider.probabilities is not None:
            counts += [
                ("query_decisions_total", name | {"decided_by": way}, count)
                for way, count in decider.probabilities.counts.items()
            ]
        found = [part for part in parts if len(part.table)]
        if not found:
            return Evaluation(counts=counts)
        return self._report(view, search, Decided.concat(found), counts)

    def _progress(self, watermarks: Mapping[str, int]) -> int:
        """Return B, in µs."""
        known = tuple(watermarks[it] for it in self._streams)
        if known != self._last_progress[0]:
            times = {name: it - 1 for name, it in zip(self._streams, known, strict=True)}
            self._last_progress = known, _limit(self._relevance.progress.value(times))
        return self._last_progress[1]

    def _is_exact(self, stream: str) -> bool:
        """Return whether the events of a stream are exact instants."""
        it = self._streams[stream]
        return not it.lasts and not it.max_uncertainty_us

    def _wish(self, view: View, progress: int) -> Wish | None:
        """Return which combinations the query decides; None if it does not share its work."""
        if view.reset or self._release.held() or self._condition.threshold is not None:
            return None
        return Wish(self._form, self._release.published, progress)

    @staticmethod
    def _sharing(view: View) -> Sharing:
        """Return the shared work of the queries of a block."""
        found = view.shared.get(_SHARING)
        if not isinstance(found, Sharing):
            # Numbers of values stay valid for the whole block.
            _VIEWS.tidy()
            queries = [it for it in view.operators if isinstance(it, EventQueryOperator)]
            wishes = [
                it._wish(view, it._progress(view.watermarks))  # noqa: SLF001 - of the same class
                for it in queries
                if len(queries) > 1
            ]
            found = Sharing(it for it in wishes if it is not None)
            view.shared[_SHARING] = found
        return found

    def _search(self, view: View) -> Search:
        buffered = {
            name: [segment for _, segment in view.buffers[name].segments] for name in self._streams
        }
        fresh = {name: [view.fresh[name]] if name in view.fresh else [] for name in self._streams}
        return Search(self._query, buffered, fresh, _VIEWS)

    def _complete_above(self, view: View, search: Search) -> int:
        """Return a time such that the events that may stop a later result are all searched.

        By P-QUERY-KEEP, events up to the keep value at b stop no result of time T > b.
        """
        relevance = self._relevance
        found = [UNKNOWN_WATERMARK]
        for alias, target in self._query.negated:
            offset = relevance.keeps[alias].value({relevance.result: 0})
            lost = view.buffers[target.stream].forgotten_below - 1
            if target.key.only_exact:
                lost = max(lost, search.last_uncertain(target.stream))
            found.append(_limit(lost - offset))
        return max(found)

    def _report(
        self,
        view: View,
        search: Search,
        found: Decided,
        counts: Sequence[tuple[str, Mapping[str, str], int]],
    ) -> Evaluation:
        """Return the results in the order of their times."""
        order = np.argsort(self._query.time.of(found.table.times), kind="stable")
        table, probability = found.take(order)
        aliases = []
        written = cast("Written", view.shared.setdefault(_WRITTEN, {}))
        stamps = np.full(len(table), UNKNOWN_WATERMARK, np.int64)
        for place, side in enumerate(self._query.positive):
            stream = self._streams[side.stream]
            numbers, rows = table.segments[:, place], table.rows[:, place]
            segments = [*search.buffered[stream.name], *search.fresh[stream.name]]
            names = tuple(it.name for it in stream.attributes)
            aliases.append(
                EventsOfAlias(
                    side.input.alias,
                    stream.name,
                    stream.lasts,
                    names,
                    segments,
                    numbers,
                    rows,
                    written,
                )
            )
            fresh = np.flatnonzero(numbers == len(search.buffered[stream.name]))
            if len(fresh):
                arrived = view.record_timestamp_us[stream.name][rows[fresh]]
                stamps[fresh] = np.maximum(stamps[fresh], arrived)
        alarms = EventQueryAlarms(self._condition, self._query.keyed, tuple(aliases), probability)
        completed = stamps[stamps > UNKNOWN_WATERMARK]
        return Evaluation([alarms], len(alarms), counts, table.last_end(), completed)


def _describe_time(query: Query, stream_of: Mapping[str, str]) -> str:
    """Return the time of the results: equal texts mean equal times.

    Events are numbered, because aliases may be renamed; the streams in their order tell them apart.
    If a stream has several positive events, their attributes and relations do.
    """
    places = {it.alias: f"e{place}" for place, it in enumerate((*query.positive, *query.negated))}
    streams = [stream_of[it.alias] for it in query.positive]

    def numbered(term: Term) -> Term:
        return map_points(term, lambda it: Point(places.get(it.alias, it.alias), it.side))

    time = f"{write_term(numbered(query.end))} of {', '.join(streams)}"
    if len(set(streams)) == len(streams):
        return time
    patterns = "; ".join(map(write_attributes, query.positive))
    return f"{time} with {patterns} where {write_formula(map_terms(query.where, numbered))}"


def _limit(time: Distance) -> int:
    """Return a time that fits int64: from UNKNOWN_WATERMARK to KEEP_NOTHING."""
    return int(min(max(time, UNKNOWN_WATERMARK), KEEP_NOTHING))
