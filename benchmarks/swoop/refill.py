"""A straightforward operator with inverted lists, whose stock is computed when it runs dry.

Problem. Without a skyband, an operator keeps the k best pairs and some spare ones: all pairs that
are not worse than the last one. Pairs of expired sets leave. New pairs enter if they are better
than the last pair. When fewer than k pairs remain, the best pairs of the window are computed from
scratch.

Algorithm. One threshold, the key of the last pair when the stock was cut, bounds the search for a
new set: inverted lists are read as long as the positional upper bound (SWOOP, Theorem 5.1) reaches
it, the shortest list first; the sizes and signatures of two sets exclude more. The computation from
scratch is the same search for each valid set, from the oldest, with a threshold that rises.

The inverted lists cost nothing to maintain: the lists of the whole stream are stored one after the
other in advance, and two pointers bound the valid part of each.

References. Mann, Augsten & Jensen, "SWOOP: Top-k Similarity Joins over Set Streams", 2017, for
lists and bounds (section 5); Yi, Yu, Yang, Xia & Chen, "Efficient Maintenance of Materialized Top-k
Views", 2003, for a stock that is computed when it runs dry.
Cost. A search per set, and a search for each valid set whenever the stock runs dry.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from benchmarks.swoop.sorted_stock import (
    Found,
    Stock,
    drop_expired_kernel,
    list_stock,
    make_found,
    make_stock,
    merge_found_kernel,
)
from benchmarks.swoop.window import (
    Int32s,
    Int64s,
    Operator,
    count_overlap_kernel,
    find_key_kernel,
    mark_tokens_kernel,
)
from correlation.topk.join.join import Pairs
from correlation.topk.join.search import count_bits_kernel, sign_tokens_kernel
from correlation.topk.join.state import Block
from correlation.topk.similarities import Key, Similarity

# Elements of the array of totals: first valid set, size of the stock, number of searches, number of
# computations from scratch, sets met, and sets whose overlap was counted.
FIRST, SIZE, SEARCHES, REFILLS, MET, COUNTED = range(6)
# Threshold while the stock has all pairs.
_ALL = -1


class Index(NamedTuple):
    """Inverted lists of a whole stream, and what a search reads and marks.

    Parameters
    ----------
    numbers : int32[m]
        For each token, the sets that contain it, oldest first.
    front, end : int64[tokens], int64[tokens]
        Positions of the first valid set of each token, and after its last one.
    signature : int64[n]
        Signatures of the sets.
    met, token_mark : int64[n], int64[tokens]
        The last search that met a set, and that marked a token.
    order, weight : int32[s], int64[s]
        Work space: tokens of a set, and the lengths of their lists.
    """

    numbers: Int32s
    front: Int64s
    end: Int64s
    signature: Int64s
    met: Int64s
    token_mark: Int64s
    order: Int32s
    weight: Int64s


class Kept(NamedTuple):
    """The pairs that the operator keeps.

    Parameters
    ----------
    stock : Stock
        The pairs, with room for the candidates of a set.
    ends : int32[n]
        For each set, the number of pairs of which it is the older one.
    last : int64[2]
        Key and older set of the last pair when the stock was cut; _ALL: the stock has all pairs.
    found : Found
        Work space: candidates of a set.
    """

    stock: Stock
    ends: Int32s
    last: Int64s
    found: Found


def make_index(stream: Block) -> Index:
    """Return the inverted lists of a stream; no set is valid yet."""
    count, tokens = len(stream.time_us), int(stream.tokens.max()) + 1
    sizes = np.diff(stream.offsets)
    by_token = np.argsort(stream.tokens, kind="stable")
    numbers = np.repeat(np.arange(count, dtype=np.int32), sizes)[by_token]
    starts = np.searchsorted(stream.tokens[by_token], np.arange(tokens))
    bits = np.empty(len(stream.tokens), np.int64)
    sign_tokens_kernel(stream.tokens, bits)
    longest = int(sizes.max())
    return Index(
        numbers,
        starts,
        starts.copy(),
        np.bitwise_or.reduceat(bits, stream.offsets[:-1]),
        np.full(count, -1, np.int64),
        np.full(tokens, -1, np.int64),
        np.empty(longest, np.int32),
        np.empty(longest, np.int64),
    )


class Refill(Operator):
    """The operator.

    Parameters
    ----------
    stream, k, window_us, similarity
        As in `Operator`.
    spare : int or None
        Number of pairs beyond the list that the stock has when it is full; None: k.
    """

    name = "refill"

    def __init__(
        self,
        stream: Block,
        k: int,
        window_us: int,
        similarity: Similarity,
        *,
        spare: int | None = None,
    ) -> None:
        super().__init__(stream, k, window_us, similarity)
        count = len(stream.time_us)
        self._capacity = k + (k if spare is None else spare)
        self._index = make_index(stream)
        self._kept = Kept(
            make_stock(self._capacity + count),
            np.zeros(count, np.int32),
            np.full(2, _ALL, np.int64),
            make_found(count),
        )
        # Ends of the lists during the computation from scratch.
        self._visited = np.empty_like(self._index.end)
        self.totals = np.zeros(6, np.int64)

    def fill(self, count: int) -> None:
        """Compute the stock from scratch."""
        tokens = self.stream.tokens[: self.stream.offsets[count]]
        sizes = np.bincount(tokens, minlength=len(self._index.end))
        self._index.end[:] = self._index.front + sizes
        refill_kernel(
            self.stream, count, self.table, self.similarity.key, self._capacity,
            self._index, self._visited, self._kept, self.totals,
        )  # fmt: skip
        self.next = count
        self.totals[SEARCHES + 1 :] = 0

    def insert(self, count: int) -> None:
        """Insert sets."""
        insert_kernel(
            self.stream, self.next, self.next + count, self.window_us,
            self.table, self.similarity.key, self.k, self._capacity,
            self._index, self._visited, self._kept, self.totals,
        )  # fmt: skip
        self.next += count

    def list_pairs(self) -> Pairs:
        """Return the first k pairs of the stock."""
        return list_stock(self._kept.stock, min(self.k, self.stock_size))

    @property
    def stock_size(self) -> int:
        """Number of pairs kept."""
        return int(self.totals[SIZE])

    @property
    def nbytes(self) -> int:
        """Memory of a full stock, in bytes."""
        return sum(column.itemsize for column in self._kept.stock) * self._capacity


@njit(cache=True)
def _order_tokens_kernel(stream: Block, number: int, index: Index, end: Int64s) -> int:
    """Order the tokens of a set, shortest list first; return their number."""
    begin = stream.offsets[number]
    size: int = stream.offsets[number + 1] - begin
    order, weight = index.order, index.weight
    for place in range(size):
        token = stream.tokens[begin + place]
        mine = end[token] - index.front[token]
        at = place
        while at > 0 and weight[at - 1] > mine:
            order[at], weight[at] = order[at - 1], weight[at - 1]
            at -= 1
        order[at], weight[at] = token, mine
    return size


@njit(cache=True)
def search_kernel(
    stream: Block,
    new: int,
    table: Int64s,
    key: Key,
    index: Index,
    end: Int64s,
    last_key: int,
    last_older: int,
    found: Found,
    totals: Int64s,
) -> int:
    """Find the pairs of a set that are better than a pair.

    Parameters
    ----------
    stream, new, table, key
        The set, and what its pairs are compared by.
    index : Index
        The inverted lists.
    end : int64[tokens]
        Ends of the lists.
    last_key, last_older : int
        Key and older set of the pair; _ALL: all pairs are better.
    found : Found
        Output: the pairs, in no order.
    totals : int64[6]
        Counters, increased.

    Returns
    -------
    int
        Number of pairs found.
    """
    mark = totals[SEARCHES]
    totals[SEARCHES] += 1
    mark_tokens_kernel(stream, new, index.token_mark, mark)
    size = _order_tokens_kernel(stream, new, index, end)
    signature = index.signature[new]
    m, met, counted = 0, 0, 0
    for place in range(size):
        rest = size - place
        if find_key_kernel(table, key, rest, size, rest) < last_key:
            break
        token = index.order[place]
        for at in range(end[token] - 1, index.front[token] - 1, -1):
            older = index.numbers[np.uint64(at)]
            if index.met[older] == mark:
                continue
            index.met[older] = mark
            met += 1
            other = stream.offsets[older + 1] - stream.offsets[older]
            lacking = count_bits_kernel(signature & ~index.signature[older])
            possible = min(rest, other, size - lacking)
            if find_key_kernel(table, key, possible, size, other) < last_key:
                continue
            counted += 1
            overlap = count_overlap_kernel(stream, older, index.token_mark, mark)
            reached = find_key_kernel(table, key, overlap, size, other)
            if reached > last_key or (reached == last_key and older > last_older):
                found.key[m], found.older[m] = reached, older
                m += 1
    totals[MET] += met
    totals[COUNTED] += counted
    return m


@njit(cache=True)
def _keep_found_kernel(kept: Kept, m: int, new: int, capacity: int, totals: Int64s) -> None:
    """Merge the pairs found into the stock, and cut it to its capacity."""
    stock, found = kept.stock, kept.found
    order = np.argsort(-found.older[:m], kind="mergesort")
    found.key[:m] = found.key[:m][order]
    found.older[:m] = found.older[:m][order]
    for place in range(m):
        kept.ends[found.older[place]] += 1
    n = merge_found_kernel(stock, totals[SIZE], found, m, new)
    if n > capacity:
        for at in range(capacity, n):
            kept.ends[stock.older[at]] -= 1
        n = capacity
        kept.last[0], kept.last[1] = stock.key[n - 1], stock.older[n - 1]
    totals[SIZE] = n


@njit(cache=True)
def refill_kernel(
    stream: Block,
    new: int,
    table: Int64s,
    key: Key,
    capacity: int,
    index: Index,
    visited: Int64s,
    kept: Kept,
    totals: Int64s,
) -> None:
    """Compute the best pairs of the valid sets before a position from scratch."""
    visited[:] = index.front
    kept.ends[:] = 0
    kept.last[:] = _ALL
    totals[SIZE] = 0
    totals[REFILLS] += 1
    for number in range(totals[FIRST], new):
        m = search_kernel(
            stream, number, table, key, index, visited,
            kept.last[0], kept.last[1], kept.found, totals,
        )  # fmt: skip
        if m > 0:
            _keep_found_kernel(kept, m, number, capacity, totals)
        for at in range(stream.offsets[number], stream.offsets[number + 1]):
            visited[stream.tokens[at]] += 1


@njit(cache=True)
def insert_kernel(
    stream: Block,
    begin: int,
    end: int,
    window_us: int,
    table: Int64s,
    key: Key,
    k: int,
    capacity: int,
    index: Index,
    visited: Int64s,
    kept: Kept,
    totals: Int64s,
) -> None:
    """Insert sets.

    Parameters
    ----------
    stream : Block
        The stream.
    begin, end : int
        Positions of the first set and after the last set.
    window_us : int
        Age up to which a set is valid, in µs.
    table, key
        Keys of small sets, and of all sets.
    k, capacity : int
        Length of the list, and size of a full stock.
    index, visited, kept, totals
        State of the operator; changed.
    """
    for new in range(begin, end):
        first, expired = totals[FIRST], 0
        while stream.time_us[first] < stream.time_us[new] - window_us:
            for at in range(stream.offsets[first], stream.offsets[first + 1]):
                index.front[stream.tokens[at]] += 1
            expired += kept.ends[first]
            first += 1
        totals[FIRST] = first
        if expired > 0:
            totals[SIZE] = drop_expired_kernel(kept.stock, totals[SIZE], first)
        m = search_kernel(
            stream, new, table, key, index, index.end,
            kept.last[0], kept.last[1], kept.found, totals,
        )  # fmt: skip
        if m > 0:
            _keep_found_kernel(kept, m, new, capacity, totals)
        for at in range(stream.offsets[new], stream.offsets[new + 1]):
            index.end[stream.tokens[at]] += 1
        if totals[SIZE] < k and kept.last[0] != _ALL:
            refill_kernel(stream, new + 1, table, key, capacity, index, visited, kept, totals)
