"""The list of one key: its join, its dictionary of tokens, and the sets that results name.

The dictionary numbers the tokens of the valid sets. A token that no valid set contains is
forgotten, and its number is used again.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from correlation.buffers.columns import BytesColumn, Int64s, SetsColumn
from correlation.limits import UNKNOWN_WATERMARK
from correlation.topk.condition import TopKCondition
from correlation.topk.gathering import Sets
from correlation.topk.join.changes import EXPIRY
from correlation.topk.join.join import Changes, Pairs, TopKJoin
from correlation.topk.join.state import Block, Int32s

# A dictionary with fewer tokens is not searched for tokens to forget.
_FEW_TOKENS = 1024


class SetRef(NamedTuple):
    """A set of a list: time in µs, side (0: stream A, 1: B), id, number of tokens.

    The first three fields are the order of sets.
    """

    time_us: int
    side: int
    id: bytes
    size: int


class ListedPair(NamedTuple):
    """A pair of a list: its key, its overlap and its sets."""

    key: int
    overlap: int
    older: SetRef
    newer: SetRef


class Move(NamedTuple):
    """A change of a list.

    Parameters
    ----------
    change : str
        entered, left or moved.
    rank : int
        Rank from 1; that before the change if the pair left.
    pair : ListedPair
        The pair.
    reason : str
        set, expiry, condition or reset.
    time_us : int
        Time of the event that caused the change, in µs.
    """

    change: str
    rank: int
    pair: ListedPair
    reason: str
    time_us: int


class ListEvent(NamedTuple):
    """Changes of a list by one event.

    Parameters
    ----------
    reason : str
        set, expiry, condition or reset; of the net change of a batch: set, if a set caused a
        change.
    time_us : int
        Time of the event, in µs.
    moves : sequence of Move
        The changes: pairs that left, then pairs that entered or moved.
    """

    reason: str
    time_us: int
    moves: Sequence[Move]


def list_moves(
    before: Sequence[ListedPair],
    after: Sequence[ListedPair],
    time_us: int,
    reason: str,
    reasons: Mapping[ListedPair, str] | None = None,
    *,
    first_rank: int = 1,
) -> Iterator[Move]:
    """Yield the changes between two lists: pairs that left, then pairs that entered or moved.

    Parameters
    ----------
    before, after : sequence of ListedPair
        The lists, or the same ranks of both, best pair first.
    time_us : int
        Time of the changes, in µs.
    reason : str
        Reason of the changes that `reasons` does not have.
    reasons : mapping of pair to str or None
        Reasons of pairs that entered or left.
    first_rank : int
        Rank of the first pair.
    """
    given = reasons or {}
    old = {pair: rank for rank, pair in enumerate(before, start=first_rank)}
    new = set(after)
    for pair, rank in old.items():
        if pair not in new:
            yield Move("left", rank, pair, given.get(pair, reason), time_us)
    for rank, pair in enumerate(after, start=first_rank):
        if pair not in old:
            yield Move("entered", rank, pair, given.get(pair, reason), time_us)
        elif old[pair] != rank:
            yield Move("moved", rank, pair, reason, time_us)


class _Batch(NamedTuple):
    """Facts of sets that were inserted together, for results."""

    time_us: Int64s
    side: NDArray[np.int8]
    id: BytesColumn
    size: Int64s


class _Dictionary:
    """Numbers of tokens, from 0."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._names: list[bytes] = []
        self._free: list[int] = []
        self._search_at = _FEW_TOKENS

    def encode(self, tokens: SetsColumn) -> Int32s:
        """Return the number of each token of the sets; new tokens get new numbers."""
        numbers = np.array([self._number(it) for it in tokens.values.to_list()], np.int32)
        return numbers[tokens.codes]

    def _number(self, name: bytes) -> int:
        found = self._numbers.get(name)
        if found is None:
            if self._free:
                found = self._free.pop()
                self._names[found] = name
            else:
                found = len(self._names)
                self._names.append(name)
            self._numbers[name] = found
        return found

    def forget_unused(self, join: TopKJoin) -> None:
        """Forget the tokens that no valid set contains, once the tokens have doubled in number."""
        if len(self._numbers) < self._search_at:
            return
        unused = join.list_unused_tokens()
        freed = {*self._free}
        for number in unused[unused < len(self._names)].tolist():
            if number not in freed:
                del self._numbers[self._names[number]]
                self._free.append(number)
        self._search_at = max(2 * len(self._numbers), _FEW_TOKENS)


class KeyedList:
    """The list of one key.

    Parameters
    ----------
    condition : TopKCondition
        The condition.
    crossed : bool
        Whether pairs are of sets of both halves of the list.
    """

    def __init__(self, condition: TopKCondition, *, crossed: bool) -> None:
        self._condition = condition
        self._join = TopKJoin(
            condition.k,
            condition.window_us,
            condition.similarity,
            minimum=condition.minimum,
            crossed=crossed,
            shortest=condition.shortest,
            every=condition.every,
        )
        self._dictionary = _Dictionary()
        # Batches of sets that results may name, and the number of the first set of each.
        self._batches: list[_Batch] = []
        self._firsts: list[int] = []
        # Sets of the last block that completed pairs, one for each pair, and Kafka's timestamps of
        # their records, in µs.
        self.arrivals: list[tuple[SetRef, int]] = []
        # The list in the join's numbers, and as results name it.
        self._order: list[tuple[int, int, int]] = []
        self._named: dict[tuple[int, int, int], ListedPair] = {}

    @property
    def pairs(self) -> list[ListedPair]:
        """The list, best pair first."""
        return [self._named[it] for it in self._order]

    @property
    def last(self) -> ListedPair | None:
        """The last pair; None if the list has fewer than k pairs."""
        return self._named[self._order[-1]] if len(self._order) == self._condition.k else None

    @property
    def stock_size(self) -> int:
        """Number of pairs in the stock."""
        return self._join.stock_size

    @property
    def valid_sets(self) -> int:
        """Number of valid sets."""
        return self._join.next - self._join.first

    @property
    def work(self) -> Int64s:
        """Numbers of sets met, of sets whose overlap was counted, and of candidates so far."""
        return self._join.work

    @property
    def oldest_us(self) -> int | None:
        """Time of the oldest valid set, in µs; None if no set is valid."""
        if not self.valid_sets:
            return None
        batch, row = self._find(self._join.first)
        return int(batch.time_us[row])

    def insert(self, sets: Sets | None, until_us: int) -> list[ListEvent]:
        """Insert sets, and expire the sets that are no longer valid at a time.

        Parameters
        ----------
        sets : Sets or None
            Sets in their order, not before the sets so far; None: no sets.
        until_us : int
            Time up to which sets take effect and expire, in µs.

        Returns
        -------
        list of ListEvent
            Changes of the list, in order.
        """
        fresh = self._join.next
        block = _NO_SETS if sets is None else self._remember(sets)
        self._join.insert(block, until_us)
        if not self._condition.every:
            self._join.log_changes(until_us)
        changes = self._join.take_changes()
        events = list(self._follow(changes))
        self.arrivals = []
        if sets is not None:
            completed = changes.pairs.newer[changes.entered & (changes.pairs.newer >= fresh)]
            arrived = sets.arrived_us[completed - fresh]
            self.arrivals = [
                (self._ref(number), arrived_us)
                for number, arrived_us in zip(completed.tolist(), arrived.tolist(), strict=True)
                if arrived_us > UNKNOWN_WATERMARK
            ]
        self._dictionary.forget_unused(self._join)
        while self._firsts[1:] and self._firsts[1] <= self._join.first:
            del self._firsts[0], self._batches[0]
        return events

    def rebuild(self, sets: Sets | None) -> None:
        """Replace all sets by the valid sets, in their order, and build the list in bulk."""
        self._dictionary = _Dictionary()
        self._batches, self._firsts = [], []
        self._join.rebuild(_NO_SETS if sets is None else self._remember(sets))
        listed = self._join.list_pairs()
        self._order = list(_places(listed))
        self._named = {place: self._name(place) for place in self._order}

    def _remember(self, sets: Sets) -> Block:
        offsets = sets.tokens.offsets
        self._batches.append(_Batch(sets.time_us, sets.side, sets.id, np.diff(offsets)))
        self._firsts.append(self._join.next)
        tokens = self._dictionary.encode(sets.tokens)
        return Block(sets.time_us, sets.half, offsets, tokens)

    def _follow(self, changes: Changes) -> Iterator[ListEvent]:
        """Apply logged changes to the list, event by event.

        The cost of an event is that of the ranks between its first and its last change, beside
        moves of memory.
        """
        places = list(_places(changes.pairs))
        is_entered = changes.entered.tolist()
        reasons = ["expiry" if it == EXPIRY else "set" for it in changes.reason.tolist()]
        rows = range(len(places))
        events = changes.event.tolist()
        for _, group in groupby(rows, events.__getitem__):
            of_event = list(group)
            changed = [places[row] for row in of_event]
            given = {self._name(places[row]): reasons[row] for row in of_event}
            order, first, last = self._order, min(changed), max(changed)
            begin, end, size = bisect_left(order, first), bisect_right(order, last), len(order)
            entered = sum(is_entered[row] for row in of_event)
            # Pairs behind the last changed one keep their ranks if the list keeps its length.
            if 2 * entered != len(of_event):
                end = size
            before = [self._named[it] for it in order[begin:end]]
            for row in of_event:
                place = places[row]
                if is_entered[row]:
                    insort(order, place)
                    self._named[place] = self._name(place)
                else:
                    del order[bisect_left(order, place)], self._named[place]
            after = [self._named[it] for it in order[begin : end + len(order) - size]]
            reason = "set" if "set" in given.values() else "expiry"
            time_us = int(changes.time_us[of_event[0]])
            moves = list(list_moves(before, after, time_us, reason, given, first_rank=begin + 1))
            yield ListEvent(reason, time_us, moves)

    def _name(self, place: tuple[int, int, int]) -> ListedPair:
        found = self._named.get(place)
        if found is not None:
            return found
        older, newer = self._ref(-place[1]), self._ref(place[2])
        overlap = self._condition.similarity.overlap_needed(-place[0], older.size, newer.size)
        return ListedPair(-place[0], overlap or 0, older, newer)

    def _find(self, number: int) -> tuple[_Batch, int]:
        """Return the batch of a set, and its row."""
        at = bisect_right(self._firsts, number) - 1
        return self._batches[at], number - self._firsts[at]

    def _ref(self, number: int) -> SetRef:
        batch, row = self._find(number)
        return SetRef(
            int(batch.time_us[row]),
            int(batch.side[row]),
            batch.id[row],
            int(batch.size[row]),
        )


_NO_SETS = Block(
    np.zeros(0, np.int64), np.zeros(0, np.int8), np.zeros(1, np.int64), np.zeros(0, np.int32)
)


def _places(pairs: Pairs) -> Iterator[tuple[int, int, int]]:
    """Yield the pairs as tuples in whose order they are listed."""
    columns = (-pairs.key).tolist(), (-pairs.older).tolist(), pairs.newer.tolist()
    return zip(*columns, strict=True)
