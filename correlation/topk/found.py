"""Findings of a block of a top-k operator, and its output: results, or a share of results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from correlation.limits import UNKNOWN_WATERMARK
from correlation.operators import Evaluation, Result, Share
from correlation.topk.cells import Key
from correlation.topk.condition import TopKCondition
from correlation.topk.listed import ListedPair, ListEvent, SetRef, list_moves
from correlation.topk.local import LocalList, Moment, SlotShare, make_share, steps_of
from correlation.topk.merging import merge_lists
from correlation.topk.results import KeyedMoves, TopKChanges, present_lists

Pairs = Mapping[Key, Sequence[ListedPair]]


class Found:
    """Changes of the lists in a block, and counts of the work done.

    Parameters
    ----------
    moment : Moment
        Times and reasons of the block.
    before : mapping of key to pairs
        The lists of cells before the block.
    is_read : bool
        Whether the block has records of the condition's streams, in any slot.

    Attributes
    ----------
    events : dict of key to list of ListEvent
        Events of each list, in order.
    arrivals : list of (SetRef, int)
        Sets that completed pairs, and Kafka's timestamps of their records, in µs.
    sets, rebuilds : int
        Numbers of sets that took effect, and of lists that were built in bulk.
    work : int64[3]
        Work of searches (`KeyedList.work`).
    """

    def __init__(self, moment: Moment, before: Pairs, *, is_read: bool) -> None:
        self.moment = moment
        self.before = before
        self.is_read = is_read
        self.events: dict[Key, list[ListEvent]] = defaultdict(list)
        self.arrivals: list[tuple[SetRef, int]] = []
        self.sets = self.rebuilds = 0
        self.work = np.zeros(3, np.int64)

    @property
    def may_change_lists(self) -> bool:
        """Whether the block may change the list of a slot; equal in all slots that evaluate it."""
        moment = self.moment
        if moment.as_of_us <= UNKNOWN_WATERMARK:
            return moment.is_lost
        is_advanced = moment.as_of_us != moment.previous_us
        # A late set changes the lists of its cells, while the progress stays.
        return is_advanced or self.is_read or moment.is_lost or bool(moment.built)

    def note(
        self, reason: str, key: Key, before: Sequence[ListedPair], after: Sequence[ListedPair]
    ) -> None:
        """Add the difference of a list that was built."""
        time_us = self.moment.as_of_us
        moves = list(list_moves(before, after, time_us, reason))
        self.events[key].append(ListEvent(reason, time_us, moves))

    def changed(self) -> dict[Key, KeyedMoves]:
        """Return the changes of the lists that changed, by their keys in order."""
        found = {}
        for key in sorted(self.events, key=_order):
            moves = [move for it in self.events[key] for move in it.moves]
            if moves:
                found[key] = KeyedMoves(key, moves)
        return found


def _order(key: Key) -> bytes:
    return key or b""


def publish_lists(condition: TopKCondition, found: Found, present: Pairs) -> Evaluation:
    """Return the changes and the lists after a block, with their number and times.

    Parameters
    ----------
    condition : TopKCondition
        The condition.
    found : Found
        What the block found.
    present : mapping of key to pairs
        The lists to write: those that changed, and those that are not known.
    """
    changes = TopKChanges(condition, [*found.changed().values()])
    results: list[Result] = [changes] if len(changes) else []
    if present:
        shown = [(key, present[key]) for key in sorted(present, key=_order)]
        results.append(present_lists(condition, found.moment.as_of_us, shown))
    arrived_us = np.array([it for _, it in found.arrivals], np.int64)
    return Evaluation(results, len(changes), (), changes.ready_us(), arrived_us)


def share_lists(condition: TopKCondition, found: Found) -> Sequence[Share]:
    """Return the share of a slot whose lists are those of cells.

    It is missing while the progress is not known, and if the block cannot change the list of any
    slot.
    """
    if not found.may_change_lists:
        return ()
    lists = [
        LocalList(
            found.before.get(key, ()),
            [*steps_of(found.events.get(key, ()), every=condition.every)],
        )
        for key in {*found.before, *found.events}
    ]
    local = merge_lists(lists, condition.k)
    entered = {pair.newer for it in local.steps for pair in it.entered}
    arrived_us = {ref: it for ref, it in found.arrivals if ref in entered}
    return [make_share(SlotShare(condition, found.moment, local, arrived_us))]
