"""The operator `base` of the source: all pairs of valid sets are kept.

Algorithm (SWOOP, section 3, Algorithms 1 to 3). The stock has all pairs that share a token, in the
order of pairs. When the index time advances, the stock is scanned for pairs of expired sets. A new
set is paired with every valid set.

References. Mann, Augsten & Jensen, "SWOOP: Top-k Similarity Joins over Set Streams", 2017.
Cost. O(w²) memory and O(w²) per set for windows of w sets.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from benchmarks.swoop.sorted_stock import (
    Found,
    Stock,
    drop_expired_kernel,
    grow_stock,
    list_stock,
    make_found,
    make_stock,
    merge_found_kernel,
)
from benchmarks.swoop.window import (
    Int64s,
    Operator,
    count_overlap_kernel,
    find_key_kernel,
    mark_tokens_kernel,
)
from correlation.topk.join.join import Pairs
from correlation.topk.join.state import Block
from correlation.topk.similarities import Key, Similarity


class Base(Operator):
    """The operator `base`; parameters as in `Operator`."""

    name = "base"

    def __init__(self, stream: Block, k: int, window_us: int, similarity: Similarity) -> None:
        super().__init__(stream, k, window_us, similarity)
        self._stock = make_stock(0)
        self._found = make_found(len(stream.time_us))
        self._mark = np.full(int(stream.tokens.max()) + 1, -1, np.int64)
        self._first = self._n = 0

    def fill(self, count: int) -> None:
        """Find all pairs, and sort them."""
        pairs = make_stock(count * (count - 1) // 2)
        n = _find_all_kernel(self.stream, count, self.table, self.similarity.key, pairs, self._mark)
        # The pairs are found by descending older and ascending newer set.
        order = np.argsort(-pairs.key[:n], kind="stable")
        self._stock = make_stock(n + n // 8 + count)
        np.take(pairs.key[:n], order, out=self._stock.key[:n])
        np.take(pairs.older[:n], order, out=self._stock.older[:n])
        np.take(pairs.newer[:n], order, out=self._stock.newer[:n])
        self._n, self.next = n, count

    def insert(self, count: int) -> None:
        """Insert sets."""
        for new in range(self.next, self.next + count):
            room = self._n + new - self._first
            if room > len(self._stock.key):
                self._stock = grow_stock(self._stock, room + room // 4)
            self._first, self._n = insert_kernel(
                self.stream, new, self.window_us, self.table, self.similarity.key,
                self._stock, self._found, self._mark, self._first, self._n,
            )  # fmt: skip
        self.next += count

    def list_pairs(self) -> Pairs:
        """Return the first k pairs of the stock."""
        return list_stock(self._stock, min(self.k, self._n))

    @property
    def stock_size(self) -> int:
        """Number of pairs of valid sets that share a token."""
        return self._n

    @property
    def nbytes(self) -> int:
        """Memory of the stock, in bytes."""
        return sum(column.nbytes for column in self._stock)


@njit(cache=True)
def _find_all_kernel(
    stream: Block, count: int, table: Int64s, key: Key, pairs: Stock, token_mark: Int64s
) -> int:
    """Find all pairs of the first sets that share a token; return their number."""
    n = 0
    for older in range(count - 1, -1, -1):
        mark_tokens_kernel(stream, older, token_mark, older)
        size = stream.offsets[older + 1] - stream.offsets[older]
        for newer in range(older + 1, count):
            overlap = count_overlap_kernel(stream, newer, token_mark, older)
            if overlap > 0:
                other = stream.offsets[newer + 1] - stream.offsets[newer]
                pairs.key[n] = find_key_kernel(table, key, overlap, size, other)
                pairs.older[n], pairs.newer[n] = older, newer
                n += 1
    return n


@njit(cache=True)
def advance_kernel(
    stream: Block, begin_us: int, stock: Stock, first: int, n: int
) -> tuple[int, int]:
    """Set the index time (Algorithm 1); return the first valid set and the size of the stock."""
    before = first
    while stream.time_us[first] < begin_us:
        first += 1
    if first > before:
        n = drop_expired_kernel(stock, n, first)
    return first, n


@njit(cache=True)
def get_candidates_kernel(
    stream: Block, new: int, first: int, table: Int64s, key: Key, found: Found, token_mark: Int64s
) -> int:
    """Find all valid sets that share a token with a new set (Algorithm 3); return their number."""
    m = 0
    mark_tokens_kernel(stream, new, token_mark, new)
    size = stream.offsets[new + 1] - stream.offsets[new]
    for older in range(new - 1, first - 1, -1):
        overlap = count_overlap_kernel(stream, older, token_mark, new)
        if overlap > 0:
            other = stream.offsets[older + 1] - stream.offsets[older]
            found.key[m] = find_key_kernel(table, key, overlap, size, other)
            found.older[m] = older
            m += 1
    return m


@njit(cache=True)
def insert_kernel(
    stream: Block,
    new: int,
    window_us: int,
    table: Int64s,
    key: Key,
    stock: Stock,
    found: Found,
    token_mark: Int64s,
    first: int,
    n: int,
) -> tuple[int, int]:
    """Insert a set (Algorithm 2); return the first valid set and the size of the stock."""
    first, n = advance_kernel(stream, stream.time_us[new] - window_us, stock, first, n)
    m = get_candidates_kernel(stream, new, first, table, key, found, token_mark)
    return first, merge_found_kernel(stock, n, found, m, new)
