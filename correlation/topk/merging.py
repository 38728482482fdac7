"""Merge of local lists into the list of all cells.

Problem. Cells join disjoint sets of pairs, and each maintains its k best pairs. Find the k best
pairs of all cells, and their changes.

Algorithm. A pair that is among the k best of all cells is among the k best of its cell, so the list
is the first k pairs of all local lists, at every moment (docs/proofs.md, P-TOPK-MERGE). The local
lists before a block are merged once. The steps of the block are applied in order, those of the same
event together, and the first k pairs before and after them are compared.

Only the ranks from the first to the last pair that left or entered are compared, and one step at a
time.

Cost. O(n log n + c n + m) for n pairs of the local lists, c changes and m ranks that are compared;
memory O(n + m), of which m is for the result.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from correlation.operators import Evaluation, Result
from correlation.topk.condition import TopKCondition
from correlation.topk.listed import ListedPair, Move, SetRef, list_moves
from correlation.topk.local import (
    ADVANCED,
    BUILT,
    NET,
    LocalList,
    Moment,
    Order,
    SlotShare,
    Step,
    is_expiry,
)
from correlation.topk.results import (
    CHANGES_METRIC,
    KeyedMoves,
    TopKChanges,
    last_value,
    present_lists,
)


class _Change(NamedTuple):
    """The ranks that a step changed, from `first_rank` on, before and after it."""

    order: Order
    time_us: int
    first_rank: int
    before: list[ListedPair]
    after: list[ListedPair]


_Place = tuple[int, int, int, ListedPair]


class _Pool:
    """All pairs of local lists, in the order of pairs, each once.

    Pairs of an event may be in several cells if an earlier version buffered one of its records: it
    hashed events by their offsets.
    """

    def __init__(self, lists: Sequence[LocalList]) -> None:
        present = [pair for it in lists for pair in it.before]
        entering = [pair for it in lists for step in it.steps for pair in step.entered]
        sets = {ref[:3] for pair in present + entering for ref in (pair.older, pair.newer)}
        # Number of each set in the order of sets.
        self._numbers = {name: number for number, name in enumerate(sorted(sets))}
        self._copies = Counter(present)
        self._pairs = sorted(map(self._place, self._copies))

    def _place(self, pair: ListedPair) -> _Place:
        """Return a pair as a tuple in whose order pairs are listed."""
        return -pair.key, -self._number(pair.older), self._number(pair.newer), pair

    def _number(self, ref: SetRef) -> int:
        return self._numbers[ref[:3]]

    def apply(
        self, steps: Iterable[Step], k: int
    ) -> tuple[int, list[ListedPair], list[ListedPair]]:
        """Apply steps of the same event.

        Returns
        -------
        int, list of ListedPair, list of ListedPair
            The first rank up to `k` that may have changed, from 0, and the pairs of the ranks that
            may have changed, before and after; empty if no rank has.
        """
        gone, new = self._count_copies(steps)
        first, last = self._affected(gone, new, k)
        before = self._at(first, last)
        for place in gone:
            del self._pairs[bisect_left(self._pairs, place)]
        for place in new:
            insort(self._pairs, place)
        return first, before, self._at(first, last)

    def _count_copies(self, steps: Iterable[Step]) -> tuple[list[_Place], list[_Place]]:
        """Count the copies of pairs; return the pairs to remove, and those to add."""
        present: dict[ListedPair, bool] = {}
        for step in steps:
            for pair in step.left:
                present.setdefault(pair, True)
                self._copies[pair] -= 1
            for pair in step.entered:
                present.setdefault(pair, bool(self._copies[pair]))
                self._copies[pair] += 1
        gone = [it for it, was in present.items() if was and not self._copies[it]]
        new = [it for it, was in present.items() if not was and self._copies[it]]
        return [*map(self._place, gone)], [*map(self._place, new)]

    def _affected(self, gone: Sequence[_Place], new: Sequence[_Place], k: int) -> tuple[int, int]:
        """Return the range of ranks, from 0 and up to `k`, that a change of the pairs affects."""
        places = [*gone, *new]
        if not places:
            return k, k
        first = min(k, bisect_left(self._pairs, min(places)))
        if len(gone) != len(new):
            return first, k
        # As many pairs leave as enter: the ranks behind the last of them stay.
        return first, min(k, bisect_left(self._pairs, max(places)) + 1)

    def _at(self, first: int, last: int) -> list[ListedPair]:
        return [pair for *_, pair in self._pairs[first:last]]

    def best(self, k: int) -> list[ListedPair]:
        """Return the first k pairs."""
        return self._at(0, k)


def _follow(pool: _Pool, lists: Sequence[LocalList], k: int) -> Iterator[_Change]:
    """Apply the steps of local lists to the pool; yield those that change the first k pairs."""
    steps = sorted((step for it in lists for step in it.steps), key=attrgetter("order"))
    for order, group in groupby(steps, attrgetter("order")):
        together = list(group)
        first, before, after = pool.apply(together, k)
        if before != after:
            yield _Change(order, together[0].time_us, first + 1, before, after)


def merge_lists(lists: Sequence[LocalList], k: int) -> LocalList:
    """Merge the lists of the cells of a slot.

    Parameters
    ----------
    lists : sequence of LocalList
        Lists of disjoint sets of pairs, each with the k best pairs at every step.
    k : int
        Length of the merged list.
    """
    pool = _Pool(lists)
    before = pool.best(k)
    changes = _follow(pool, lists, k)
    return LocalList(before, [Step(it.order, it.time_us, *_differences(it)) for it in changes])


def _differences(change: _Change) -> tuple[list[ListedPair], list[ListedPair]]:
    """Return the pairs that left the list, and the pairs that entered it."""
    before, after = set(change.before), set(change.after)
    left = [it for it in change.before if it not in after]
    return left, [it for it in change.after if it not in before]


def merge_shares(blobs: Sequence[bytes]) -> Evaluation:
    """Merge the shares of all slots in a block; see `ConditionKind.merge_shares`."""
    shares = [SlotShare.from_bytes(it) for it in blobs]
    condition, moment = shares[0].condition, shares[0].moment
    lists = [it.local for it in shares]
    if any(it.moment.is_late for it in shares):
        moment = moment._replace(is_late=True)
        lists = [_net_list(it, moment.as_of_us) for it in lists]
    pool = _Pool(lists)
    moves: list[Move] = []
    for change in _follow(pool, lists, condition.k):
        moves += _describe_change(condition, moment, change)
    results: list[Result] = []
    present = pool.best(condition.k)
    if moves:
        results.append(TopKChanges(condition, [KeyedMoves(None, moves)]))
    if moves or moment.is_lost:
        results.append(present_lists(condition, moment.as_of_us, [(None, present)]))
    arrived_us = {ref: it for share in shares for ref, it in share.arrived_us.items()}
    arrivals = [
        arrived_us[it.pair.newer]
        for it in moves
        if it.change == "entered" and it.pair.newer in arrived_us
    ]
    # A list that is withdrawn has no response time: its pairs leave because the condition ends.
    ready_us = [it.time_us for it in moves if (it.change, it.reason) != ("left", "condition")]
    return Evaluation(
        results,
        len(moves),
        [(CHANGES_METRIC, {"condition": condition.name}, len(moves))],
        np.array(ready_us, np.int64),
        np.array(arrivals, np.int64),
        last_value(condition, present[condition.k - 1 : condition.k]),
    )


def join_shares(slots: Sequence[Sequence[bytes]]) -> list[bytes]:
    """Return the shares in consecutive blocks as one each; see `ConditionKind.join_shares`.

    If every event is reported, the joined share has all steps. If lists were built in between, or
    sets came late, it has the net change: the steps of different blocks have no common order.
    """
    found = [[SlotShare.from_bytes(it) for it in blobs] for blobs in slots]
    moments = [it.moment for shares in found for it in shares]
    built = next((it.built for it in reversed(moments) if it.built), "")
    is_late = any(it.is_late for it in moments)
    moment = Moment(
        max(it.as_of_us for it in moments),
        min(it.previous_us for it in moments),
        built,
        is_late,
        is_lost=any(it.is_lost for it in moments),
        is_net=bool(built) or is_late or not found[0][-1].condition.every,
    )
    # Lists that are withdrawn or built at the end have one reason for all changes.
    last = [step for shares in found for step in shares[-1].local.steps]
    is_built = bool(last) and all(it.order[0] == BUILT for it in last)
    order: Order = (BUILT if is_built else ADVANCED, *NET)
    joined = []
    for shares in found:
        before = shares[0].local.before
        steps = [step for it in shares for step in it.local.steps]
        if moment.is_net:
            steps = [_net_step(before, _after(shares[-1].local), order, moment.as_of_us)]
        arrived_us = {ref: it for share in shares for ref, it in share.arrived_us.items()}
        local = LocalList(before, steps)
        joined.append(SlotShare(shares[-1].condition, moment, local, arrived_us).to_bytes())
    return joined


def _after(local: LocalList) -> set[ListedPair]:
    """Return the pairs of a list after its steps."""
    after = {*local.before}
    for step in local.steps:
        after = after.difference(step.left).union(step.entered)
    return after


def _net_step(
    before: Iterable[ListedPair], after: Iterable[ListedPair], order: Order, time_us: int
) -> Step:
    """Return the change from some pairs to others as a step."""
    first, last = {*before}, {*after}
    return Step(order, time_us, [*(first - last)], [*(last - first)])


def _net_list(local: LocalList, as_of_us: int) -> LocalList:
    """Return a local list in which all sets of the block take effect in one step.

    A set that came late changes lists of the past, so that the list is reported as of the end of
    the block alone.
    """
    built = [it for it in local.steps if it.order[0] == BUILT]
    before = _after(local._replace(steps=built))
    return LocalList(
        local.before, [*built, _net_step(before, _after(local), (ADVANCED, *NET), as_of_us)]
    )


def _describe_change(condition: TopKCondition, moment: Moment, change: _Change) -> Iterator[Move]:
    """Yield the changes of a step with their reasons."""
    reasons: dict[ListedPair, str] = {}
    if change.order[0] == BUILT:
        reason = moment.built
    elif moment.is_late:
        reason = "set"
    elif condition.every and not moment.is_net:
        reason = "expiry" if is_expiry(change.order) else "set"
    else:
        left, entered = _differences(change)
        valid_from_us = moment.as_of_us - condition.window_us
        for it in left:
            reasons[it] = "expiry" if it.older.time_us < valid_from_us else "set"
        for it in entered:
            reasons[it] = "set" if it.newer.time_us > moment.previous_us else "expiry"
        reason = "set" if "set" in reasons.values() else "expiry"
    return list_moves(
        change.before, change.after, change.time_us, reason, reasons, first_rank=change.first_rank
    )
