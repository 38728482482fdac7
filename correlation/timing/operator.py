"""Operator that evaluates one timing condition over the shared buffers of a slot.

The events of a block, of either stream, are base events. Base events of A meet all events of B;
base events of B meet the events of A of earlier blocks. Every pair is therefore evaluated once,
in the block that completes it. Keep values: LL10's invalidation, PTJ Theorem 4 (docs/proofs.md,
P-KEEP).

Memory. A burst may have very many pairs. Those for which the block has no room (`View.room`) are
searched in parts of bounded size, counted, and dropped; each part is searched once more when its
records are written, which costs far less than writing them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, MutableMapping
from functools import partial
from types import MappingProxyType
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from correlation.buffers.columns import Int64s
from correlation.buffers.segment import Segment
from correlation.operators import Evaluation, View, join_evaluations
from correlation.resources.streams import Stream
from correlation.room import Room
from correlation.timing.alarms import AttributeNames, PairBatch, PairsFoundAgain
from correlation.timing.conditions import TimingCondition
from correlation.timing.histograms.algorithms import correlate_histograms
from correlation.timing.histograms.classes import side_of
from correlation.timing.histograms.reach import stream_reach
from correlation.timing.histograms.rows import satisfied_rows
from correlation.timing.histograms.windows import share_book
from correlation.timing.intervals.algorithms import ALGORITHMS
from correlation.timing.intervals.choosing import AUTO, choose_algorithm, choose_by_events
from correlation.timing.intervals.meetings import (
    count_in_reach,
    find_meetings,
    matched_groups,
    may_meet,
    split_groups,
)
from correlation.timing.intervals.pairs import DECIDED_BY, Pairs, ProbeCounts, Side

# Pairs in reach of a part of a search, unless a single base event has more.
_PART_PAIRS = 1_000_000


class Search(NamedTuple):
    """Base events, the target segment, the groups to search, and whether the base is of A.

    `origins` has, by the id of a segment of chosen events, the whole segment and the rows in it.
    """

    base: Segment
    target: Segment
    groups: NDArray[np.int64]
    base_is_a: bool
    origins: Mapping[int, tuple[Segment, Int64s]] = MappingProxyType({})


class _Part(NamedTuple):
    """A search, or a part of one, and whether its pairs are kept until they are written."""

    search: Search
    is_first: bool
    is_kept: bool


class _Times(NamedTuple):
    """Times of pairs, in µs, and how many pairs have each; None: one."""

    us: Int64s
    counts: Int64s | None


class _Found(NamedTuple):
    pairs: PairBatch | PairsFoundAgain
    decided: Int64s
    ready: _Times
    record_timestamps: _Times


class Met(NamedTuple):
    """Pairs of a block's events with one segment, and the algorithm that found them."""

    pairs: PairBatch
    probes: ProbeCounts
    algorithm: str


class TimingOperator:
    """Operator of a timing condition; its only state is a cache of computed s-windows.

    Parameters
    ----------
    condition : TimingCondition
        The condition to evaluate.
    streams : mapping of name to Stream
        The streams, which declare the lengths and shapes of their events.
    """

    def __init__(self, condition: TimingCondition, streams: Mapping[str, Stream]) -> None:
        a, b = streams[condition.a], streams[condition.b]
        self._condition = condition
        self._keyed = a.partitioning.by == "key"
        self._attributes = AttributeNames.of(a, b)
        lengths_a, lengths_b = (
            (a.min_uncertainty_us, a.max_uncertainty_us),
            (b.min_uncertainty_us, b.max_uncertainty_us),
        )
        self._algorithm = choose_algorithm(
            condition.algorithm, condition.window, lengths_a, lengths_b
        ).algorithm
        self._self_correlation = condition.a == condition.b
        self._reach = self._min_s, self._max_s = stream_reach(condition.window, a, b)
        self._book = share_book(condition.window, a, b)

    def keep_values(self, watermarks: Mapping[str, int]) -> dict[str, int]:
        """See `Operator.keep_values`."""
        condition = self._condition
        keep_a = watermarks[condition.b] - self._max_s
        keep_b = watermarks[condition.a] + self._min_s
        if self._self_correlation:
            return {condition.a: min(keep_a, keep_b)}
        return {condition.a: keep_a, condition.b: keep_b}

    def held(self) -> dict[str, list[int]]:
        """See `Operator.held`."""
        return {}

    def needs_timestamps(self) -> bool:
        """See `Operator.needs_timestamps`."""
        return False

    def dump(self) -> bytes:
        """See `Operator.dump`."""
        return b""

    def begin(
        self, watermarks: Mapping[str, int], held_from: Mapping[str, int], before: bytes
    ) -> None:
        """See `Operator.begin`."""

    def evaluate(self, view: View) -> Evaluation:
        """See `Operator.evaluate`."""
        self._book.advance(view.cache)
        return self._find_pairs(view, self._searches(view))

    def _find_pairs(self, view: View, searches_of_block: Iterable[Search]) -> Evaluation:
        """Run the searches one by one and summarise their pairs."""
        counts = ProbeCounts(0, 0, 0)
        searches: Counter[str] = Counter()
        found: list[_Found] = []
        left, limited = self._condition.max_pairs, False
        parts = (part for search in searches_of_block for part in self._divide(search, view.room))
        for part in parts:
            # Other conditions can use only the results of a search that was not divided.
            met = self._meet(part.search, view.shared if part.is_kept else {})
            counts = ProbeCounts(*(old + new for old, new in zip(counts, met.probes, strict=True)))
            searches[met.algorithm] += part.is_first
            pairs = self._reported(met.pairs, view.fresh)
            most = left
            if left is not None:
                limited = len(pairs) > left
                pairs = pairs.select(slice(left))
                left -= len(pairs)
            if len(pairs) and view.room.take(len(pairs)):
                found.append(self._keep(view, pairs))
            elif len(pairs):
                found.append(self._leave(view, pairs, part.search, most))
            if limited:
                break
        return self._summarise(found, counts, searches, limited=limited)

    def _divide(self, search: Search, room: Room) -> Iterator[_Part]:
        """Yield a search whose pairs may be kept, or else its parts.

        Parameters
        ----------
        search : Search
            The search.
        room : Room
            Room for pairs that are kept.
        """
        base, target, groups, base_is_a, _ = search
        reach = self._reach_from(base_is_a=base_is_a)
        if count_in_reach(base.latest, target.latest, groups, reach, room.left) <= room.left:
            yield _Part(search, is_first=True, is_kept=True)
            return
        parts = split_groups(base.latest, target.latest, groups, reach, _PART_PAIRS)
        for number, some in enumerate(parts):
            yield _Part(search._replace(groups=some), is_first=not number, is_kept=False)

    def _reported(self, pairs: PairBatch, fresh: Mapping[str, Segment]) -> PairBatch:
        """Return the pairs that are reported: of a self-correlation, each in one order."""
        if not self._self_correlation:
            return pairs
        return pairs.select(self._is_reported(pairs, fresh[self._condition.b]))

    def _keep(self, view: View, pairs: PairBatch) -> _Found:
        decided = np.bincount(pairs.decided_by, minlength=len(DECIDED_BY))
        stamps = self._timestamps_us(view, pairs)
        return _Found(pairs, decided, _Times(pairs.ready_us(), None), _Times(stamps, None))

    def _leave(self, view: View, pairs: PairBatch, search: Search, most: int | None) -> _Found:
        """Return the numbers of pairs, of which only the search remains."""
        _, decided, ready, stamps = self._keep(view, pairs)
        # Many pairs have few times, as each is that of an event.
        times = [_Times(*np.unique(it.us, return_counts=True)) for it in (ready, stamps)]
        again = partial(self._find_again, search, dict(view.fresh), most)
        return _Found(PairsFoundAgain(self._condition, again), decided, *times)

    def _find_again(
        self, search: Search, fresh: Mapping[str, Segment], most: int | None
    ) -> PairBatch:
        return self._reported(self._meet(search, {}).pairs, fresh).select(slice(most))

    def _reach_from(self, *, base_is_a: bool) -> tuple[int, int]:
        """Return the min and max of max_target - max_base."""
        return self._reach if base_is_a else (-self._max_s, -self._min_s)

    def _searches(self, view: View) -> Iterator[Search]:
        """Yield the searches of a block; skip segments without a target near any base event."""
        for base, target, base_is_a in self._segments(view):
            groups = self._groups(view, base, target, base_is_a=base_is_a)
            if len(groups):
                yield Search(base, target, groups, base_is_a)

    def _segments(self, view: View) -> Iterator[tuple[Segment, Segment, bool]]:
        """Yield base, target, and whether the base is of A, for segments that may have pairs."""
        condition = self._condition
        fresh_a, fresh_b = view.fresh.get(condition.a), view.fresh.get(condition.b)
        if fresh_a is not None:
            targets = [segment for _, segment in view.buffers[condition.b].segments]
            if fresh_b is not None:
                targets.append(fresh_b)
            for target in targets:
                if may_meet(fresh_a, target, self._reach):
                    yield fresh_a, target, True
        if fresh_b is not None:
            for _, target in view.buffers[condition.a].segments:
                if may_meet(target, fresh_b, self._reach):
                    yield fresh_b, target, False

    def _groups(
        self, view: View, base: Segment, target: Segment, *, base_is_a: bool
    ) -> NDArray[np.int64]:
        """Return the groups to search: all for `simple`, otherwise those within reach."""
        crossed = not self._keyed
        if self._algorithm == "simple":
            return matched_groups(view.shared, base, target, crossed=crossed)
        reach = self._reach_from(base_is_a=base_is_a)
        return find_meetings(view.shared, base, target, reach, crossed=crossed)

    def _meet(self, search: Search, shared: MutableMapping[Hashable, object]) -> Met:
        base, target, _, base_is_a, _ = search
        condition = self._condition
        # Conditions with equal windows and algorithms have one search.
        place = ("pairs", id(base), id(target), base_is_a, condition.window, condition.algorithm)
        if place not in shared:
            shared[place] = self._search(search)
        pairs, algorithm = cast("tuple[Pairs, str]", shared[place])
        sides = [(base, pairs.base_index), (target, pairs.target_index)]
        (a, a_rows), (b, b_rows) = sides if base_is_a else sides[::-1]
        batch = PairBatch(
            self._condition,
            self._keyed,
            a,
            b,
            a_rows,
            b_rows,
            pairs.decided_by,
            self._attributes,
        )
        return Met(batch, pairs.counts, algorithm)

    def _search(self, search: Search) -> tuple[Pairs, str]:
        """Find the pairs of two segments; return the algorithm too."""
        base, target, groups, base_is_a, _ = search
        if base.shape is None and target.shape is None:
            return self._correlate(base, target, groups, base_is_a=base_is_a)
        return correlate_histograms(
            self._condition.algorithm,
            side_of(base),
            side_of(target),
            groups,
            self._book,
            base_is_a=base_is_a,
            exclude_same=base is target,
        )

    def _correlate(
        self, base: Segment, target: Segment, groups: Int64s, *, base_is_a: bool
    ) -> tuple[Pairs, str]:
        """Find the pairs of two segments whose events are all intervals."""
        window = self._condition.window if base_is_a else self._condition.window.mirrored()
        events = (
            Side(base.earliest, base.latest),
            Side(target.earliest, target.latest),
            groups,
            window,
        )
        lengths = (target.min_uncertainty, target.max_uncertainty)
        algorithm = self._algorithm
        if algorithm == AUTO:
            algorithm = choose_by_events(*events, lengths)
        pairs = ALGORITHMS[algorithm](*events, exclude_same=base is target, target_lengths=lengths)
        return pairs, algorithm

    def _is_reported(self, pairs: PairBatch, fresh: Segment) -> NDArray[np.bool_]:
        """Choose one of the two orders in which a pair of a self-correlation may be found.

        The order with the earlier event as A (by latest, earliest, id) is reported. The other
        order is reported only if the first one is not satisfied.
        """
        a, b = pairs.a, pairs.b
        latest_a, latest_b = a.latest[pairs.a_rows], b.latest[pairs.b_rows]
        earliest_a, earliest_b = a.earliest[pairs.a_rows], b.earliest[pairs.b_rows]
        forward = (latest_a < latest_b) | ((latest_a == latest_b) & (earliest_a < earliest_b))
        for i in np.flatnonzero((latest_a == latest_b) & (earliest_a == earliest_b)):
            row_a, row_b = int(pairs.a_rows[i]), int(pairs.b_rows[i])
            id_a, id_b = a.id[row_a], b.id[row_b]
            # Equal ids: the order of arrival decides, and within a block the order of the rows.
            earlier = row_a < row_b if a is b else b is fresh
            forward[i] = id_a < id_b or (id_a == id_b and earlier)
        backward = np.flatnonzero(~forward)
        reported = np.ones(len(pairs), np.bool_)
        reported[backward] = ~self._is_satisfied_swapped(pairs, backward)
        return reported

    def _is_satisfied_swapped(self, pairs: PairBatch, places: Int64s) -> NDArray[np.bool_]:
        """Return whether the condition also holds with A and B of these pairs swapped."""
        a_rows, b_rows = pairs.a_rows[places], pairs.b_rows[places]
        return satisfied_rows(pairs.b, b_rows, pairs.a, a_rows, self._condition.window)

    def _timestamps_us(self, view: View, pairs: PairBatch) -> Int64s:
        """Return Kafka's timestamp of the fresh record of each pair, or the later of two."""
        condition = self._condition
        fresh_a, fresh_b = view.fresh.get(condition.a), view.fresh.get(condition.b)
        stamps = []
        if pairs.a is fresh_a:
            stamps.append(view.record_timestamp_us[condition.a][pairs.a_rows])
        if pairs.b is fresh_b:
            stamps.append(view.record_timestamp_us[condition.b][pairs.b_rows])
        return np.maximum(stamps[0], stamps[-1])

    def _summarise(
        self,
        found: list[_Found],
        probes: ProbeCounts,
        searches: Mapping[str, int],
        *,
        limited: bool = False,
    ) -> Evaluation:
        name = {"condition": self._condition.name}
        has_limit = self._condition.max_pairs is not None
        decided = sum((it.decided for it in found), np.zeros(len(DECIDED_BY), np.int64))
        counted = [
            *(
                ("pairs_total", name | {"decided_by": way}, int(count))
                for way, count in zip(DECIDED_BY, decided, strict=True)
            ),
            ("probe_region_events_total", name, probes.probe_region),
            ("lookup_hits_total", name, probes.lookup_hits),
            ("pair_evaluations_total", name, probes.evaluations),
            *([("limited_blocks_total", name, int(limited))] if has_limit else []),
            *(
                ("searches_total", name | {"algorithm": algorithm}, count)
                for algorithm, count in searches.items()
            ),
        ]
        parts = [
            Evaluation(
                [it.pairs],
                int(it.decided.sum()),
                ready_us=it.ready.us,
                record_timestamp_us=it.record_timestamps.us,
                ready_counts=it.ready.counts,
                record_counts=it.record_timestamps.counts,
            )
            for it in found
        ]
        return join_evaluations([Evaluation(counts=counted), *parts])
