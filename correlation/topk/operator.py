"""Operator that maintains the lists of a top-k condition over the shared buffers of a slot.

Problem. Report the changes of the lists as sets take effect and expire. Neither the division into
blocks nor the order of arrival may change a list.

Algorithm. The progress P is the minimum of the watermarks, minus 1: all sets up to P have arrived,
except late ones. A block inserts the sets of time T in (R, P], where R is the progress of the block
before, in their order, and expires sets up to P. A list is therefore a function of the sets up to
P. Sets that come late, but are still valid, change the past: their lists are built again in bulk.

Grids. With several groups, each cell has a list (`cells`), and the slot returns its share of the
list of all cells (`local`). The shares of all slots are merged after the block, and the changes of
the merged list are counted (`merging`).

State. P, the first time that takes part, and a digest of the declarations that decide what a set
is. After a restart the lists are built in bulk from the buffers, which keep the sets that are valid
at P. If the digest differs, the published lists are not known, and are withdrawn.

Beginning. A new condition lists the sets of times from which on the buffers hold all events.

Cost. See `join`. A block costs O(1) for each list without new and expired sets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from types import MappingProxyType

from correlation.limits import TIME_LIMIT_US, UNKNOWN_WATERMARK
from correlation.operators import Evaluation, View
from correlation.reporting import Gauge
from correlation.resources.streams import Stream
from correlation.topk.cells import Division, Key
from correlation.topk.condition import TopKCondition, bind_where
from correlation.topk.found import Found, Pairs, publish_lists, share_lists
from correlation.topk.gathering import Part, Range, Sets, gather_sets
from correlation.topk.listed import KeyedList, ListedPair
from correlation.topk.local import Moment
from correlation.topk.results import CHANGES_METRIC, LAST_VALUE_METRIC, last_value
from correlation.topk.stored import (
    StoredState,
    buffered_parts,
    digest_declarations,
    list_keys_of,
)

METRICS: Mapping[str, str] = MappingProxyType(
    {
        CHANGES_METRIC: "Pairs that entered a list, left it or moved in it.",
        "topk_sets_total": "Sets that took effect.",
        "topk_precandidates_total": "Sets that searches met in the inverted lists.",
        "topk_verified_total": "Sets whose overlap with a new set was counted.",
        "topk_candidates_total": "Pairs that searches passed to the stock.",
        "topk_rebuilds_total": "Lists built in bulk: of new conditions, after a restart or reset, "
        "and because a set came late.",
    }
)
GAUGES: Mapping[str, Gauge] = MappingProxyType(
    {
        "topk_stock_pairs": Gauge("Pairs that are in a list, or may be later."),
        "topk_valid_sets": Gauge("Sets in the window."),
        "topk_lists": Gauge("Lists with valid sets."),
        LAST_VALUE_METRIC: Gauge(
            "Similarity, or distance, of the last pair of a full list; with a list for each key, "
            "the minimum over the full lists.",
            "min",
        ),
    }
)
# A time before that of any event.
_BEFORE_ALL_US = -TIME_LIMIT_US - 1


class TopKOperator:
    """Operator of a top-k condition.

    Parameters
    ----------
    condition : TopKCondition
        The condition to evaluate.
    streams : mapping of name to Stream
        The streams in force, which `check_streams` accepts.

    Raises
    ------
    InvalidFieldError
        A filter does not fit the attributes of its stream.
    """

    def __init__(self, condition: TopKCondition, streams: Mapping[str, Stream]) -> None:
        self._condition = condition
        self._where = bind_where(condition, streams)
        groups = streams[condition.a].partitioning.groups
        self._division = Division(condition.per_key, groups, condition.crossed)
        self._digest = digest_declarations(condition, streams)
        # None: nothing has taken effect.
        self._state: StoredState | None = None
        # State of the operator before, until its lists are built again.
        self._before: StoredState | None = None
        self._since_us = UNKNOWN_WATERMARK
        # Progress when the condition began; unknown after a reset.
        self._begun_us = UNKNOWN_WATERMARK
        self._lists: dict[Key, KeyedList] = {}
        # Heap of the time of the oldest valid set, and the key; a list may have older entries.
        self._oldest: list[tuple[int, bytes]] = []

    def begin(
        self,
        watermarks: Mapping[str, int],
        held_from: Mapping[str, int],
        before: bytes,
    ) -> None:
        """See `Operator.begin`."""
        self._begun_us = min(watermarks[name] for name in self._condition.streams) - 1
        self._since_us = max(held_from[name] for name in self._condition.streams)
        if before:
            self._before = StoredState.from_bytes(before)

    def held(self) -> dict[str, list[int]]:
        """See `Operator.held`."""
        return {}

    def needs_timestamps(self) -> bool:
        """See `Operator.needs_timestamps`."""
        return False

    def dump(self) -> bytes:
        """See `Operator.dump`."""
        state = self._state or self._before
        return b"" if state is None else state.to_bytes()

    def keep_values(self, watermarks: Mapping[str, int]) -> dict[str, int]:
        """See `Operator.keep_values`."""
        as_of_us = min(watermarks[name] for name in self._condition.streams) - 1
        state = self._state or self._before
        if state is not None:
            as_of_us = min(as_of_us, state.as_of_us)
        keep = max(as_of_us - self._condition.window_us, UNKNOWN_WATERMARK)
        return dict.fromkeys(self._condition.streams, keep)

    def evaluate(self, view: View) -> Evaluation:
        """See `Operator.evaluate`."""
        condition = self._condition
        buffered = buffered_parts(condition, view.buffers)
        fresh = [
            Part(side, view.fresh[name], view.record_timestamp_us[name])
            for side, name in enumerate(condition.streams)
            if name in view.fresh
        ]
        lost = self._restore(buffered)
        before = self._pairs() if self._division.has_cells else {}
        read = any(name in view.read for name in condition.streams)
        found = Found(Moment(is_lost=bool(lost)), before, is_read=read)
        state, as_of_us = self._state, self._progress(view)
        is_reset = any(name in view.reset for name in condition.streams)
        if state is not None and (as_of_us is None or is_reset):
            lowest = [view.buffers[name].forgotten_below for name in condition.streams]
            self._since_us = max(self._since_us, *lowest)
            # A slot that restarts before the progress is known again does not know it either.
            self._begun_us = UNKNOWN_WATERMARK
            self._begin_lists(found, as_of_us, [*buffered, *fresh], "reset")
        elif as_of_us is not None:
            if state is None:
                self._begin_lists(found, self._find_start(as_of_us), buffered, "condition")
            self._advance(found, as_of_us, buffered, fresh)
        return self._report(found, lost)

    def _pairs(self) -> Pairs:
        """Return the lists by name."""
        return {key: it.pairs for key, it in self._lists.items()}

    def _state_at(self, as_of_us: int) -> StoredState:
        groups = self._division.groups
        return StoredState(
            as_of_us, self._since_us, self._digest, self._where.to_document(), groups
        )

    def _find_start(self, as_of_us: int) -> int:
        """Return the time up to which the sets take effect at once when the condition begins.

        It is the progress before the first block, or a time before all events if the progress was
        not known; all later sets take effect one after the other.
        """
        if self._begun_us <= UNKNOWN_WATERMARK:
            return _BEFORE_ALL_US
        return min(self._begun_us, as_of_us)

    def _progress(self, view: View) -> int | None:
        """Return P, in µs; None: the watermark of a stream is not known."""
        names = self._condition.streams
        watermark = min(view.watermarks[name] for name in names)
        if watermark <= UNKNOWN_WATERMARK:
            return None
        before = UNKNOWN_WATERMARK if self._state is None else self._state.as_of_us
        if any(name in view.reset for name in names):
            before = UNKNOWN_WATERMARK
        if watermark > TIME_LIMIT_US:
            # All streams are closed: time passes no more after their last event.
            return max(before, *(view.max_latest[name] for name in names))
        return max(before, watermark - 1)

    def _restore(self, buffered: Sequence[Part]) -> list[Key]:
        """Build the lists of the operator before; return the keys of lists that are not known."""
        before, self._before = self._before, None
        if before is None:
            return []
        if before.digest == self._digest:
            self._state, self._since_us = before, before.since_us
            self._build_lists(buffered, before)
            return []
        return list_keys_of(self._condition, buffered, before)

    def _build_lists(self, parts: Sequence[Part], state: StoredState) -> int:
        """Build all lists in bulk; return their number."""
        self._lists, self._oldest = {}, []
        for key, sets in self._gather(parts, state.window(self._condition)):
            self._rebuild(key, sets)
        return len(self._lists)

    def _rebuild(self, key: Key, sets: Sets) -> None:
        found = self._list(key)
        found.rebuild(sets)
        self._settle(key, found)

    def _listed(self, key: Key) -> Sequence[ListedPair]:
        """Return the pairs of a list, best pair first."""
        return self._lists[key].pairs if key in self._lists else ()

    def _list(self, key: Key) -> KeyedList:
        """Return a list, which is empty if it is new."""
        found = self._lists.get(key)
        if found is None:
            crossed = self._division.is_crossed(key)
            found = self._lists[key] = KeyedList(self._condition, crossed=crossed)
        return found

    def _gather(self, parts: Sequence[Part], within: Range) -> list[tuple[Key, Sets]]:
        return list(gather_sets(parts, within, self._where, self._division))

    def _settle(self, key: Key, found: KeyedList) -> None:
        """Note when the oldest set of a list expires; remove a list without sets."""
        oldest_us = found.oldest_us
        if oldest_us is None:
            del self._lists[key]
        else:
            heappush(self._oldest, (oldest_us, key or b""))

    def _begin_lists(
        self, found: Found, as_of_us: int | None, parts: Sequence[Part], reason: str
    ) -> None:
        """Build all lists as of a time, and compare them with those before.

        Parameters
        ----------
        found : Found
            Receives the changes.
        as_of_us : int or None
            Time up to which sets have taken effect, in µs; None: no set has.
        parts : sequence of Part
            Events.
        reason : str
            Reason of the changes.
        """
        before = self._pairs()
        last, self._state = self._state, None
        self._lists, self._oldest = {}, []
        if as_of_us is not None:
            last = self._state = self._state_at(as_of_us)
            found.rebuilds += self._build_lists(parts, self._state)
        reached_us = UNKNOWN_WATERMARK if last is None else last.as_of_us
        found.moment = found.moment._replace(as_of_us=reached_us, built=reason)
        for key in {*before, *self._lists}:
            found.note(reason, key, before.get(key, ()), self._listed(key))

    def _advance(
        self, found: Found, as_of_us: int, buffered: Sequence[Part], fresh: Sequence[Part]
    ) -> None:
        """Insert the sets up to the new progress, and expire older sets."""
        state = self._state
        if state is None:
            return
        condition, parts = self._condition, [*buffered, *fresh]
        self._state = self._state_at(as_of_us)
        window = self._state.window(condition)
        late = {key for key, _ in self._gather(fresh, Range(window.low, state.as_of_us))}
        found.moment = found.moment._replace(
            as_of_us=as_of_us, previous_us=state.as_of_us, is_late=bool(late)
        )
        if late:
            for key, sets in self._gather(parts, window):
                if key not in late:
                    continue
                before = self._listed(key)
                self._rebuild(key, sets)
                found.note("set", key, before, self._listed(key))
                found.rebuilds += 1
        news = Range(max(state.as_of_us + 1, self._since_us), as_of_us)
        for key, sets in self._gather(parts, news):
            found.sets += len(sets)
            if key not in late:
                self._insert(key, sets, as_of_us, found)
        while self._oldest and self._oldest[0][0] < as_of_us - condition.window_us:
            _, name = heappop(self._oldest)
            key = None if self._division.is_single else name
            if key in self._lists:
                self._insert(key, None, as_of_us, found)

    def _insert(self, key: Key, sets: Sets | None, as_of_us: int, found: Found) -> None:
        listed = self._list(key)
        before = listed.work
        found.events[key] += listed.insert(sets, as_of_us)
        found.arrivals += listed.arrivals
        found.work += listed.work - before
        self._settle(key, listed)

    def _report(self, found: Found, lost: Sequence[Key]) -> Evaluation:
        """Return the results of a block."""
        condition, lists = self._condition, [*self._lists.values()]
        if self._division.has_cells:
            evaluation = Evaluation(shares=share_lists(condition, found))
        else:
            present = {key: self._listed(key) for key in {*lost, *found.changed()}}
            evaluation = publish_lists(condition, found, present)
        name = {"condition": condition.name}
        met, verified, candidates = found.work.tolist()
        counts = {
            CHANGES_METRIC: evaluation.alarms,
            "topk_sets_total": found.sets,
            "topk_precandidates_total": met,
            "topk_verified_total": verified,
            "topk_candidates_total": candidates,
            "topk_rebuilds_total": found.rebuilds,
        }
        gauges: dict[str, float] = {
            "topk_stock_pairs": sum(it.stock_size for it in lists),
            "topk_valid_sets": sum(it.valid_sets for it in lists),
            "topk_lists": len(lists),
        }
        if not self._division.has_cells:
            gauges |= last_value(condition, [it.last for it in lists])
        labelled = [(metric, name, count) for metric, count in counts.items()]
        return replace(evaluation, counts=labelled, gauges=gauges)
