"""Operator that reports the best B of each event of A, or each event of A without a B.

Problem. Both results depend on all B events, including future ones. An event of A is therefore
reported when it is *final*: max_A + max_s < W_B, so that no future B can satisfy the condition
with it.

Algorithm. A block releases the buffered events of A that become final with it, and those of its
own events of A that are already final (late events, or events of a stream that lags behind B).
Released events are base events; their targets are all B in the buffers and in the block. The state
is the time up to which events were released. Every event of A is released exactly once, when its
result can no longer change, and with all B that could be in the result (docs/proofs.md, P-FINAL).

Keep values. An event of A is kept until it is released. An event of B is kept while it can satisfy
the condition with a waiting or future event of A: min(W_A, W_B - max_s) + min_s.

Cost. One scan of the buffered events of A, and the search of the released events.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from correlation.buffers.columns import Int64s
from correlation.buffers.filtering import matches_rows
from correlation.buffers.segment import Segment, match_groups
from correlation.errors import UnknownRecordVersionError
from correlation.limits import UNKNOWN_WATERMARK
from correlation.operators import Evaluation, Result, View
from correlation.resources.streams import Stream
from correlation.timing.alarms import AttributeNames, PairBatch, UnmatchedBatch
from correlation.timing.conditions import BEST, TimingCondition
from correlation.timing.histograms.final import HistogramTargets, find_histogram_targets
from correlation.timing.histograms.reach import stream_reach
from correlation.timing.histograms.windows import share_book
from correlation.timing.intervals.best import NONE, Targets, compare_targets, find_best
from correlation.timing.intervals.meetings import may_meet
from correlation.timing.intervals.pairs import DECIDED_BY, PROBE, Side
from correlation.timing.intervals.unmatched import mark_matched
from correlation.timing.released import (
    Due,
    choose_targets,
    has_within,
    list_segments,
    move_origins,
)

_VERSION = 2
# Version 1 had no sealed segments.
_READ_VERSIONS = (1, _VERSION)


@dataclass(frozen=True, slots=True)
class _Leaders:
    """The best target so far of each released event: row `rows[i]` of segment `places[i]`."""

    places: Int64s
    rows: Int64s
    earliest: Int64s
    latest: Int64s

    @classmethod
    def none(cls, size: int) -> _Leaders:
        """Return leaders without a target."""
        return cls(*(np.full(size, NONE, np.int64) for _ in range(4)))

    def replace(self, chosen: Int64s, place: int, target: Segment, rows: Int64s) -> None:
        """Replace the targets of the chosen events."""
        self.places[chosen] = place
        self.rows[chosen] = rows
        self.earliest[chosen] = target.earliest[rows]
        self.latest[chosen] = target.latest[rows]


class FinalOperator:
    """Operator of a timing condition that reports the best B of every A, or every A without a B.

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
        self._where = condition.bind_where(streams)
        self._attributes = AttributeNames.of(a, b)
        self._keyed = a.partitioning.by == "key"
        self._reach = self._min_s, self._max_s = stream_reach(condition.window, a, b)
        self._book = share_book(condition.window, a, b)
        # Events of A before this were released, or were final before the condition was registered.
        self._released_below = UNKNOWN_WATERMARK
        # The buffers have held every B from this time on since the condition was registered.
        self._held_from = UNKNOWN_WATERMARK
        # By segment of A from before a reset: events of the segment before this were released.
        self._sealed: dict[int, int] = {}

    def begin(
        self, watermarks: Mapping[str, int], held_from: Mapping[str, int], before: bytes
    ) -> None:
        """See `Operator.begin`."""
        held = held_from[self._condition.b]
        state = _read_state(before)
        if state is None or state["streams"] != [self._condition.a, self._condition.b]:
            self._released_below, self._held_from = self._final_below(watermarks), held
            return
        self._released_below, self._held_from = state["released_below"], state["held_from"]
        self._sealed = dict(state.get("sealed", ()))
        if self._min_s < state["min_s"]:
            # Events of B that only the wider window needs may have been dropped.
            self._held_from = max(self._held_from, held)

    def held(self) -> dict[str, list[int]]:
        """See `Operator.held`."""
        return {self._condition.a: list(self._sealed)}

    def needs_timestamps(self) -> bool:
        """See `Operator.needs_timestamps`."""
        return False

    def dump(self) -> bytes:
        """See `Operator.dump`."""
        state = {
            "v": _VERSION,
            "streams": [self._condition.a, self._condition.b],
            "released_below": self._released_below,
            "held_from": self._held_from,
            "min_s": self._min_s,
            "sealed": list(self._sealed.items()),
        }
        return json.dumps(state).encode()

    def _final_below(self, watermarks: Mapping[str, int]) -> int:
        """Return the time before which events of A are final, by `latest`."""
        return watermarks[self._condition.b] - self._max_s

    def keep_values(self, watermarks: Mapping[str, int]) -> dict[str, int]:
        """See `Operator.keep_values`."""
        condition = self._condition
        keep_a = self._final_below(watermarks)
        keep_b = min(watermarks[condition.a], keep_a) + self._min_s
        if condition.a == condition.b:
            return {condition.a: min(keep_a, keep_b)}
        return {condition.a: keep_a, condition.b: keep_b}

    def evaluate(self, view: View) -> Evaluation:
        """See `Operator.evaluate`."""
        self._book.advance(view.cache)
        final_below = self._final_below(view.watermarks)
        self._take_resets(view, final_below)
        due = self._take_due(view, final_below)
        self._released_below = max(self._released_below, final_below)
        self._unseal(view)
        if due is None:
            return self._summarise([], np.zeros(0, np.int64), 0, 0)
        targets = list_segments(view, self._condition.b)
        if self._where.b is not None:
            if self._condition.a == self._condition.b:
                due = move_origins(due, targets, self._where.b)
            targets = choose_targets(targets, self._where.b)
        if any(segment.shape is not None for segment in (due.segment, *targets)):
            return self._report_histograms(due, targets, final_below)
        if self._condition.emit == BEST:
            return self._report_best(due, targets)
        return self._report_unmatched(due, targets, final_below)

    def _take_resets(self, view: View, final_below: int) -> None:
        """Move the release bound back after a reset, except for segments already buffered."""
        condition = self._condition
        if condition.a not in view.reset and condition.b not in view.reset:
            return
        # Keep values followed the watermarks before the reset: B below this may be dropped.
        self._held_from = max(self._held_from, view.buffers[condition.b].forgotten_below)
        if final_below < self._released_below:
            for number, _ in view.buffers[condition.a].segments:
                self._sealed[number] = self._first_due(number)
            self._released_below = final_below

    def _unseal(self, view: View) -> None:
        """Remove the bounds of segments that the common release bound has reached again."""
        self._sealed = {
            number: self._sealed[number]
            for number, segment in view.buffers[self._condition.a].segments
            if number in self._sealed
            and has_within(segment, self._released_below, self._sealed[number])
        }

    def _first_due(self, number: int) -> int:
        """Return the time before which a buffered segment's events of A were released."""
        return max(self._released_below, self._sealed.get(number, UNKNOWN_WATERMARK))

    def _take_due(self, view: View, final_below: int) -> Due | None:
        """Return the events of A that this block releases, or None."""
        found = []
        buffered = view.buffers[self._condition.a].segments
        for place, segment in enumerate(list_segments(view, self._condition.a)):
            if place < len(buffered):
                first, end = self._first_due(buffered[place][0]), final_below
            else:
                # The block's own events: none of them was released before.
                first, end = segment.min_latest, max(self._released_below, final_below)
            if segment.min_latest < end and segment.max_latest >= first:
                rows = np.flatnonzero((segment.latest >= first) & (segment.latest < end))
                if self._where.a is not None:
                    rows = rows[matches_rows(segment, rows, self._where.a)]
                if len(rows):
                    found.append((place, segment, rows))
        if not found:
            return None
        joined, order = Segment.join([segment.take(rows) for _, segment, rows in found])
        places = [np.full(len(rows), place, np.int64) for place, _, rows in found]
        rows = np.concatenate([rows for _, _, rows in found])
        return Due(joined, np.concatenate(places)[order], rows[order])

    def _left_out(self, due: Due, place: int) -> Int64s:
        """Return the row of each released event in a segment of B; NONE if it is not there."""
        if self._condition.a != self._condition.b:
            return np.full(len(due.segment), NONE, np.int64)
        return np.where(due.places == place, due.rows, NONE)

    def _report_best(self, due: Due, targets: Sequence[Segment]) -> Evaluation:
        leaders = _Leaders.none(len(due.segment))
        searches = looked_at = 0
        for place, target in enumerate(targets):
            if not may_meet(due.segment, target, self._reach):
                continue
            found = find_best(
                due.side,
                Targets(Side(target.earliest, target.latest), target.id, target.late),
                match_groups(due.segment, target),
                self._condition.window,
                left_out=self._left_out(due, place),
                target_lengths=(target.min_uncertainty, target.max_uncertainty),
            )
            searches += 1
            looked_at += found.looked_at
            self._prefer(due, leaders, targets, place, found.rows)
        results = []
        for place in np.unique(leaders.places[leaders.places != NONE]).tolist():
            chosen = np.flatnonzero(leaders.places == place)
            ways = np.full(len(chosen), PROBE, np.uint8)
            rows = leaders.rows[chosen]
            results.append(
                PairBatch(
                    self._condition,
                    self._keyed,
                    due.segment,
                    targets[place],
                    chosen,
                    rows,
                    ways,
                    self._attributes,
                )
            )
        matched = leaders.places != NONE
        ready = np.maximum(due.segment.latest, leaders.latest)[matched]
        return self._summarise(results, ready, searches, looked_at)

    def _prefer(
        self,
        due: Due,
        leaders: _Leaders,
        targets: Sequence[Segment],
        place: int,
        rows: Int64s,
    ) -> None:
        """Update the leaders with the better targets of one more segment."""
        target = targets[place]
        first = np.flatnonzero((rows != NONE) & (leaders.places == NONE))
        rivals = np.flatnonzero((rows != NONE) & (leaders.places != NONE))
        leaders.replace(first, place, target, rows[first])
        mine = rows[rivals]
        order = compare_targets(
            Side(due.segment.earliest[rivals], due.segment.latest[rivals]),
            Side(target.earliest[mine], target.latest[mine]),
            Side(leaders.earliest[rivals], leaders.latest[rivals]),
            self._condition.window,
        )
        for k in np.flatnonzero(order == 0).tolist():
            leading = targets[leaders.places[rivals[k]]]
            order[k] = -1 if _name(target, mine[k]) < _name(leading, leaders.rows[rivals[k]]) else 1
        better = order < 0
        leaders.replace(rivals[better], place, target, mine[better])

    def _report_unmatched(
        self, due: Due, targets: Sequence[Segment], final_below: int
    ) -> Evaluation:
        matched = ~self._is_known(due, final_below)
        searches = decided = 0
        for place, target in enumerate(targets):
            if matched.all() or not may_meet(due.segment, target, self._reach):
                continue
            searches += 1
            decided += mark_matched(
                due.side,
                Side(target.earliest, target.latest),
                match_groups(due.segment, target),
                self._condition.window,
                matched,
                left_out=self._left_out(due, place),
                target_lengths=(target.min_uncertainty, target.max_uncertainty),
            )
        return self._summarise_unmatched(due, matched, searches, decided)

    def _is_known(self, due: Due, final_below: int) -> NDArray[np.bool_]:
        """Mark the events for which all possible B were buffered and no further B can arrive."""
        latest = due.segment.latest
        return (latest >= self._held_from - self._min_s) & (latest < final_below)

    def _summarise_unmatched(
        self, due: Due, matched: NDArray[np.bool_], searches: int, decided: int
    ) -> Evaluation:
        rows = np.flatnonzero(~matched)
        results = []
        if len(rows):
            results.append(
                UnmatchedBatch(self._condition, self._keyed, due.segment, rows, self._attributes)
            )
        return self._summarise(results, due.segment.latest[rows], searches, decided)

    def _report_histograms(
        self, due: Due, targets: Sequence[Segment], final_below: int
    ) -> Evaluation:
        """Report on events of which some are histograms."""
        own = (due.places, due.rows) if self._condition.a == self._condition.b else None
        found = find_histogram_targets(due.segment, targets, own, self._reach, self._book)
        searches = int(found is not None)
        if self._condition.emit == BEST:
            return self._report_best_histograms(due, found, searches)
        matched = ~self._is_known(due, final_below)
        decided = 0 if found is None else found.mark_matched(matched)
        return self._summarise_unmatched(due, matched, searches, decided)

    def _report_best_histograms(
        self, due: Due, found: HistogramTargets | None, searches: int
    ) -> Evaluation:
        if found is None:
            return self._summarise([], np.zeros(0, np.int64), 0, 0)
        rows, target_rows, looked_at = found.find_best()
        if not len(rows):
            return self._summarise([], np.zeros(0, np.int64), searches, looked_at)
        ways = np.full(len(rows), PROBE, np.uint8)
        batch = PairBatch(
            self._condition,
            self._keyed,
            due.segment,
            found.segment,
            rows,
            target_rows,
            ways,
            self._attributes,
        )
        return self._summarise([batch], batch.ready_us(), searches, looked_at)

    def _summarise(
        self, results: Sequence[Result], ready_us: NDArray[np.int64], searches: int, looked_at: int
    ) -> Evaluation:
        name = {"condition": self._condition.name}
        emit = self._condition.emit
        pairs = len(ready_us) if emit == BEST else 0
        return Evaluation(
            results=results,
            alarms=len(ready_us),
            counts=[
                ("pairs_total", name | {"decided_by": DECIDED_BY[PROBE]}, pairs),
                ("probe_region_events_total", name, looked_at),
                ("pair_evaluations_total", name, looked_at),
                ("searches_total", name | {"algorithm": emit}, searches),
            ],
            ready_us=ready_us,
        )


def _name(segment: Segment, row: int) -> tuple[bytes, bool]:
    """Return the sort key of events at the same time: by id, then punctual before late."""
    return segment.id[row], bool(segment.late[row])


def _read_state(dumped: bytes) -> dict[str, Any] | None:
    """Read the state that `dump` wrote; None if it is empty or of another operator."""
    if not dumped.startswith(b"{"):
        return None
    state: dict[str, Any] = json.loads(dumped)
    if state.get("v") not in _READ_VERSIONS:
        raise UnknownRecordVersionError(
            f"the operator state has version {state.get('v')!r}; this software reads {_VERSION}"
        )
    return state
