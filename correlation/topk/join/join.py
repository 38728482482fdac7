"""The continuous top-k join of one key: insert sets, expire sets, read the list.

Problem. Sets arrive in order of time; a set is valid while its age is at most the window. At every
moment the list holds the k most similar pairs of valid sets, exactly.

Definitions. Sets have numbers in the order in which they were inserted. `stock` defines pairs,
their order and the stock. An event is the expiry of all sets of one time, or the insertion of a
set.

Algorithm. See `evaluation` for insertion and expiry, `rebuild` for bulk construction.

References. Mann, Augsten & Jensen, "SWOOP: Top-k Similarity Joins over Set Streams", 2017.
Cost. See `search`, `stock` and `insertion`; memory O(tokens of the valid sets + stock + valid
sets), where the stock has at most k pairs for each valid set.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from correlation.topk.join.changes import log_changes_kernel
from correlation.topk.join.evaluation import evaluate_block_kernel
from correlation.topk.join.lists import FRONT, SIZE, START
from correlation.topk.join.rebuild import rebuild_stock_kernel
from correlation.topk.join.search import sign_tokens_kernel
from correlation.topk.join.state import (
    BAR,
    DONE,
    EVENTS,
    FIRST,
    LOG,
    LOG_SIZE,
    MET_BY,
    NEXT,
    PLACE,
    SEEN,
    SETS,
    SIGNATURE,
    SIZE_BITS,
    STOCK_SIZE,
    TOKENS,
    TOKENS_END,
    TOP_SIZE,
    Block,
    Keys,
    Shape,
    grow,
    grow_order,
    grow_tokens,
    make_state,
)
from correlation.topk.join.stock import PairColumns, StockColumns
from correlation.topk.similarities import Similarity, first_class_key, key_table

Int64s = NDArray[np.int64]

# Numbers are reduced when they reach this limit, so that they fit int32.
NUMBER_LIMIT = 2**30


class Pairs(NamedTuple):
    """Pairs of sets as columns: key int64[n], older int64[n], newer int64[n]."""

    key: Int64s
    older: Int64s
    newer: Int64s


class Changes(NamedTuple):
    """Changes of the list as columns of equal length, in the order of their events.

    Parameters
    ----------
    event : int64[n]
        Number of the event.
    time_us : int64[n]
        Time of the event: that of the inserted set, or the last at which expired sets were valid.
    reason : int8[n]
        `changes.SET`: a set was inserted; `changes.EXPIRY`: sets expired.
    entered : bool[n]
        Whether the pair entered the list, otherwise it left.
    pairs : Pairs
        The pairs.
    """

    event: Int64s
    time_us: Int64s
    reason: NDArray[np.int8]
    entered: NDArray[np.bool_]
    pairs: Pairs


class TopKJoin:
    """The join of one key.

    Parameters
    ----------
    k : int
        Length of the list, 1 or more.
    window_us : int
        Age up to which a set is valid, in µs; 0 or more.
    similarity : Similarity
        The similarity.
    minimum : Fraction or None
        Minimum similarity, or maximum distance, of a pair; None: no limit.
    crossed : bool
        Whether pairs are of sets of different streams; otherwise every set has the stream 0.
    shortest : bool
        Whether the shortest inverted list is read first, otherwise that of the newest token.
    every : bool
        Whether the changes of every event are logged; otherwise only `log_changes` logs them.
    """

    def __init__(
        self,
        k: int,
        window_us: int,
        similarity: Similarity,
        *,
        minimum: Fraction | None = None,
        crossed: bool = False,
        shortest: bool = True,
        every: bool = False,
    ) -> None:
        minimum_key = 0 if minimum is None else max(similarity.minimum_key(minimum), 0)
        sides = 2 if crossed else 1
        self._shape = Shape(k, window_us, minimum_key, sides, shortest, every)
        self._keys = Keys(key_table(similarity), first_class_key(similarity))
        self._state = make_state(k)
        # Number of a set minus its number in the arrays.
        self._base = 0

    @property
    def first(self) -> int:
        """Number of the oldest valid set."""
        return self._base + int(self._state.totals[FIRST])

    @property
    def next(self) -> int:
        """Number of the next set."""
        return self._base + int(self._state.totals[NEXT])

    @property
    def stock_size(self) -> int:
        """Number of pairs in the stock."""
        return int(self._state.totals[STOCK_SIZE])

    @property
    def work(self) -> Int64s:
        """Numbers of sets met, of sets whose overlap was counted, and of candidates: int64[3]."""
        return self._state.work.done.copy()

    @property
    def nbytes(self) -> int:
        """Memory of the arrays, in bytes, without the table of keys that all joins share."""
        return _count_bytes(self._state)

    @property
    def stock_nbytes(self) -> int:
        """Memory of the arrays of the stock, in bytes: part of `nbytes`."""
        return _count_bytes(self._state.stock)

    def list_pairs(self) -> Pairs:
        """Return the list, best pair first."""
        return self._numbered(self._state.stock.pairs, min(self._shape.k, self.stock_size))

    def _numbered(self, pairs: PairColumns | StockColumns, size: int) -> Pairs:
        """Return a copy of the first pairs, with the numbers of sets since the beginning."""
        base = np.int64(self._base)
        key, older, newer = (it[:size] for it in (pairs.key, pairs.older, pairs.newer))
        return Pairs(key.astype(np.int64), older + base, newer + base)

    def list_unused_tokens(self) -> Int64s:
        """Return the tokens that no valid set contains, and tokens that were never used."""
        sizes = self._state.lists.lists[:, SIZE].reshape(-1, self._shape.sides)
        return np.flatnonzero(sizes.sum(axis=1) == 0)

    def insert(self, block: Block, until_us: int) -> None:
        """Insert sets, and expire the sets that are no longer valid at a time.

        Parameters
        ----------
        block : Block
            Sets in their order, none without tokens; not older than the sets before.
        until_us : int
            Time up to which sets expire, in µs; not before the last set's time.
        """
        if self._state.totals[NEXT] >= NUMBER_LIMIT:
            self._reduce_numbers()
        self._prepare(block)
        at = 0
        while True:
            at, wanted, room = evaluate_block_kernel(
                self._state, self._shape, self._keys, block, at, until_us
            )
            if wanted == DONE:
                return
            self._state = grow(self._state, wanted, room)

    def rebuild(self, block: Block) -> None:
        """Replace all sets, and build the stock in bulk; the log becomes empty.

        Parameters
        ----------
        block : Block
            The valid sets in their order, none without tokens. Their numbers begin at `next`.
        """
        self._base = self.next
        self._state.totals[:] = 0
        self._prepare(block)
        count = len(block.time_us)
        if count > len(self._state.sets.rows):
            self._state = grow(self._state, SETS, count)
        if block.offsets[-1] > len(self._state.sets.tokens):
            self._state = grow(self._state, TOKENS, int(block.offsets[-1]))
        sets, totals = self._state.sets, self._state.totals
        sets.tokens[: block.offsets[-1]] = block.tokens
        sizes = np.diff(block.offsets)
        sets.rows[:count, PLACE] = (block.offsets[:-1] << SIZE_BITS) | sizes
        sets.rows[:count, BAR] = self._shape.minimum_key
        sets.rows[:count, SIGNATURE] = _sign_sets(block)
        sets.time_us[:count], sets.side[:count] = block.time_us, block.side
        _, firsts, of_time, sizes_of_times = np.unique(
            block.time_us, return_index=True, return_inverse=True, return_counts=True
        )
        sets.time_first[:count] = firsts[of_time]
        sets.time_last[firsts] = firsts + sizes_of_times - 1
        totals[NEXT], totals[TOKENS_END] = count, block.offsets[-1]
        while True:
            wanted, room = rebuild_stock_kernel(self._state, self._shape, self._keys)
            if wanted == DONE:
                break
            self._state = grow(self._state, wanted, room)
        size = min(self._shape.k, self.stock_size)
        top, now = self._state.top, self._state.stock.pairs
        top.key[:size], top.older[:size] = now.key[:size], now.older[:size]
        top.newer[:size] = now.newer[:size]
        totals[TOP_SIZE], totals[SEEN] = size, count

    def log_changes(self, time_us: int) -> None:
        """Log the changes of the list since they were logged last.

        Parameters
        ----------
        time_us : int
            Time of the changes, in µs.
        """
        totals = self._state.totals
        room = int(totals[LOG_SIZE]) + 2 * self._shape.k
        if room > len(self._state.log.event):
            self._state = grow(self._state, LOG, room)
        totals[EVENTS] += 1
        state, k = self._state, self._shape.k
        log_changes_kernel(state.stock.pairs, state.top, state.log, totals, k, 0, time_us)
        totals[SEEN] = totals[NEXT]

    def take_changes(self) -> Changes:
        """Return the logged changes, and empty the log."""
        log, size = self._state.log, int(self._state.totals[LOG_SIZE])
        self._state.totals[LOG_SIZE] = 0
        return Changes(
            log.event[:size].copy(),
            log.time_us[:size].copy(),
            log.reason[:size].copy(),
            log.entered[:size].copy(),
            self._numbered(log.pairs, size),
        )

    def _prepare(self, block: Block) -> None:
        """Make room for the tokens and the largest set of a block."""
        if not len(block.tokens):
            return
        tokens = int(block.tokens.max()) + 1
        self._state = grow_tokens(self._state, tokens, self._shape.sides)
        self._state = grow_order(self._state, int(np.diff(block.offsets).max()))

    def _reduce_numbers(self) -> None:
        """Subtract a number from the numbers of all sets, so that they stay in their rows."""
        state, totals = self._state, self._state.totals
        by = int(totals[FIRST]) & -len(state.sets.rows)
        for pairs in (state.stock.pairs, state.stock.ends, state.top, state.log.pairs):
            pairs.older[:] -= by
            pairs.newer[:] -= by
        sets, stock = state.sets, state.stock
        for numbers in (stock.pairs.end, stock.ends.end, sets.time_first, sets.time_last):
            numbers[:] -= by
        lists = state.lists.lists
        used = lists[lists[:, SIZE] > 0]
        starts, sizes = used[:, START] + used[:, FRONT], used[:, SIZE]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        state.lists.numbers[np.repeat(starts, sizes) + within] -= by
        sets.rows[:, MET_BY] = -1
        sets.token_mark[:] = -1
        totals[[FIRST, NEXT, SEEN]] -= by
        self._base += by


def _count_bytes(part: NDArray[np.generic] | tuple[object, ...]) -> int:
    """Return the memory of arrays in tuples of tuples, in bytes."""
    if isinstance(part, np.ndarray):
        return part.nbytes
    return sum(_count_bytes(it) for it in part if isinstance(it, np.ndarray | tuple))


def _sign_sets(block: Block) -> Int64s:
    """Return the signature of each set of a block."""
    if not len(block.tokens):
        return np.zeros(0, np.int64)
    bits = np.empty(len(block.tokens), np.int64)
    sign_tokens_kernel(block.tokens, bits)
    return np.bitwise_or.reduceat(bits, block.offsets[:-1])
