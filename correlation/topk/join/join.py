"""The continuous top-k join of one key: insert sets, expire sets, read the list.

Problem. Sets arrive in order of time; a set is valid while its age is at most the window. At every
moment the list holds the k most similar pairs of valid sets, exactly.

Definitions. Sets have numbers in the order in which they were inserted. `stock` defines pairs, their
order and the stock. An event is the expiry of all sets of one time, or the insertion of a set.

Algorithm. See `evaluation` for insertion and expiry, `rebuild` for bulk construction.

References. Mann, Augsten & Jensen, "SWOOP: Top-k Similarity Joins over Set Streams", 2017.
Cost. See `search` and `stock`; memory O(tokens of the valid sets + stock).
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
from correlation.topk.join.search import (
    BAR,
    MET_BY,
    PLACE,
    SIGNATURE,
    SIZE_BITS,
    sign_tokens_kernel,
)
from correlation.topk.join.state import (
    DONE,
    EVENTS,
    FIRST,
    LOG,
    LOG_SIZE,
    NEXT,
    SEEN,
    SETS,
    STOCK_SIZE,
    TOKENS,
    TOKENS_END,
    TOP_SIZE,
    Block,
    Shape,
    grow,
    grow_order,
    grow_tokens,
    make_state,
)
from correlation.topk.similarities import Similarity, key_table

Int64s = NDArray[np.int64]

# Numbers are reduced when they reach this limit, so that they fit int32.
NUMBER_LIMIT = 2**30


class Pairs(NamedTuple):
    """Pairs of sets as columns: key int64[n], older int64[n], younger int64[n]."""

    key: Int64s
    older: Int64s
    younger: Int64s


class Changes(NamedTuple):
    """Changes of the list as columns of equal length, in the order of their events.

    Parameters
    ----------
    event : int64[n]
        Number of the event.
    time_us : int64[n]
        Time of the event: that of the inserted set, or the last moment at which the sets were valid.
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
        table, key = key_table(similarity), similarity.key
        self._shape = Shape(k, window_us, minimum_key, sides, shortest, every, table, key)
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
        """Sets met, sets whose overlap was counted, and candidates since the beginning, int64[3]."""
        return self._state.candidates.work.copy()

    @property
    def nbytes(self) -> int:
        """Memory of the arrays, in bytes, without the table of keys that all joins share."""
        *parts, totals = self._state
        return int(totals.nbytes + sum(array.nbytes for part in parts for array in part))

    def list_pairs(self) -> Pairs:
        """Return the list, best pair first."""
        return self._pairs(min(self._shape.k, self.stock_size))

    def list_stock(self) -> Pairs:
        """Return the stock in the order of pairs."""
        return self._pairs(self.stock_size)

    def _pairs(self, size: int) -> Pairs:
        key, older, younger = self._state.stock[:3]
        return self._numbered(key[:size], older[:size], younger[:size])

    def _numbered(self, key: Int64s, older: NDArray[np.int32], younger: NDArray[np.int32]) -> Pairs:
        base = np.int64(self._base)
        return Pairs(key.copy(), older + base, younger + base)

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
            at, wanted, room = evaluate_block_kernel(self._state, self._shape, block, at, until_us)
            if wanted == DONE:
                return
            self._state = grow(self._state, wanted, room)

    def rebuild(self, block: Block) -> None:
        """Replace all sets, and build the stock in bulk; no change is logged.

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
        totals[NEXT], totals[TOKENS_END] = count, block.offsets[-1]
        while True:
            wanted, room = rebuild_stock_kernel(self._state, self._shape)
            if wanted == DONE:
                break
            self._state = grow(self._state, wanted, room)
        top, stock = self._state.top, self._state.stock
        size = min(self._shape.k, self.stock_size)
        for column, now in zip(top, stock[:3], strict=True):
            column[:size] = now[:size]
        totals[TOP_SIZE], totals[SEEN] = size, count

    def log_changes(self, time_us: int) -> None:
        """Log the changes of the list since they were logged last.

        Parameters
        ----------
        time_us : int
            Time of the changes, in µs.
        """
        totals = self._state.totals
        size = min(self._shape.k, self.stock_size)
        room = int(totals[LOG_SIZE]) + size + int(totals[TOP_SIZE])
        if room > len(self._state.log.key):
            self._state = grow(self._state, LOG, room)
        totals[EVENTS] += 1
        totals[LOG_SIZE] = log_changes_kernel(
            *self._state.stock[:3],
            size,
            *self._state.top,
            totals[TOP_SIZE],
            0,
            totals[FIRST],
            totals[SEEN],
            totals[EVENTS],
            time_us,
            *self._state.log,
            totals[LOG_SIZE],
        )
        totals[TOP_SIZE], totals[SEEN] = size, totals[NEXT]

    def take_changes(self) -> Changes:
        """Return the logged changes, and empty the log."""
        log, size = self._state.log, self._state.totals[LOG_SIZE]
        self._state.totals[LOG_SIZE] = 0
        event, time_us, reason, entered, *pair = (column[:size] for column in log)
        return Changes(
            event.copy(), time_us.copy(), reason.copy(), entered.copy(), self._numbered(*pair)
        )

    def _prepare(self, block: Block) -> None:
        """Make room for the tokens and the largest set of a block."""
        if not len(block.tokens):
            return
        tokens = int(block.tokens.max()) + 1
        self._state = grow_tokens(self._state, tokens, self._shape.sides)
        self._state = grow_order(self._state, int(np.diff(block.offsets).max()))

    def _reduce_numbers(self) -> None:
        """Subtract a number from the numbers of all sets."""
        state, totals = self._state, self._state.totals
        by = int(totals[FIRST]) & -len(state.sets.rows)
        n = totals[STOCK_SIZE]
        for column in (*state.stock[1:3], *state.stock[4:6]):
            column[:n] -= by
        for part in (state.top[1:], state.log[-2:]):
            for column in part:
                column -= by
        lists = state.lists.lists
        used = lists[lists[:, SIZE] > 0]
        starts, sizes = used[:, START] + used[:, FRONT], used[:, SIZE]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        state.lists.numbers[np.repeat(starts, sizes) + within] -= by
        state.sets.rows[:, MET_BY] = -1
        state.sets.token_mark[:] = -1
        for it in (FIRST, NEXT, SEEN):
            totals[it] -= by
        self._base += by


def _sign_sets(block: Block) -> Int64s:
    """Return the signature of each set of a block."""
    if not len(block.tokens):
        return np.zeros(0, np.int64)
    bits = np.empty(len(block.tokens), np.int64)
    sign_tokens_kernel(block.tokens, bits)
    return np.bitwise_or.reduceat(bits, block.offsets[:-1])
