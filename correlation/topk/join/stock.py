"""The minimal stock: the pairs that are in the top k now or may be later.

Problem. A pair is relevant while fewer than k pairs precede it in the order of pairs and end no
earlier than it does. The stock holds the relevant pairs, and no others, after every change.

Definitions. A pair is (key of its similarity, older set, newer set); sets have numbers in the
order in which they take effect. Sets of the same time expire together: the end of a pair is the
number of the first set of the time of its older set. The order of pairs: key descending, then older
set descending, so the later end is first, then newer set ascending. S is the stock in this order.
E is the stock in the order of ends: end ascending, then the reverse of the order of pairs.
Positions begin at 0.

Theorem. If the stock is minimal and exactly r pairs of it end before a time, then the k-th pair at
this time is S[k - 1 + r], or there are fewer than k pairs (SWOOP, Lemma 6.1). A pair that ends at
this time is relevant iff it precedes that pair (docs/proofs.md, P-TOPK-SKYBAND).

Algorithm. S and E are sorted arrays, so ranks are found by binary search. Pairs are inserted by
`insertion`.

References. Mann, Augsten & Jensen, "SWOOP: Top-k Similarity Joins over Set Streams", 2017,
section 6.
Cost. Rank O(log n), expiry O(n) moves of pairs, where n is the size of the stock.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]


class PairColumns(NamedTuple):
    """Pairs as columns of equal length: key int64[c], older int32[c], newer int32[c]."""

    key: Int64s
    older: Int32s
    newer: Int32s


class StockColumns(NamedTuple):
    """Pairs of a stock: the columns of `PairColumns`, and their ends int32[c]."""

    key: Int64s
    older: Int32s
    newer: Int32s
    end: Int32s


class Stock(NamedTuple):
    """Arrays of a stock with room for c pairs and candidates.

    Parameters
    ----------
    pairs : StockColumns
        S: the pairs in the order of pairs.
    ends : StockColumns
        E: the pairs in the order of ends.
    spare_pairs, spare_ends : StockColumns
        Pairs of S and of E that an insertion has not reached yet.
    """

    pairs: StockColumns
    ends: StockColumns
    spare_pairs: StockColumns
    spare_ends: StockColumns


def make_pairs(capacity: int) -> PairColumns:
    """Return columns for `capacity` pairs."""
    return PairColumns(
        np.zeros(capacity, np.int64), np.zeros(capacity, np.int32), np.zeros(capacity, np.int32)
    )


def grow_pairs(pairs: PairColumns, capacity: int) -> PairColumns:
    """Return columns that begin with the given ones.

    Parameters
    ----------
    pairs : PairColumns
        The columns.
    capacity : int
        New length, at least the present one.
    """
    grown = make_pairs(capacity)
    size = len(pairs.key)
    grown.key[:size], grown.older[:size], grown.newer[:size] = pairs
    return grown


def make_stock(capacity: int) -> Stock:
    """Return an empty stock with room for `capacity` pairs and candidates."""
    return Stock(*(_make_columns(capacity) for _ in range(4)))


def _make_columns(capacity: int) -> StockColumns:
    return StockColumns(*make_pairs(capacity), np.zeros(capacity, np.int32))


def grow_stock(stock: Stock, capacity: int) -> Stock:
    """Return the stock with more room.

    Parameters
    ----------
    stock : Stock
        The stock.
    capacity : int
        New capacity, larger than the present one.
    """
    grown, size = make_stock(capacity), len(stock.pairs.key)
    for new, old in ((grown.pairs, stock.pairs), (grown.ends, stock.ends)):
        new.key[:size], new.older[:size], new.newer[:size], new.end[:size] = old
    return grown


@njit(cache=True, forceinline=True)
def precedes_kernel(
    key: int, older: int, newer: int, other_key: int, other_older: int, other_newer: int
) -> bool:
    """Return whether a pair precedes another one in the order of pairs."""
    if key != other_key:
        return key > other_key
    if older != other_older:
        return older > other_older
    return newer < other_newer


@njit(cache=True, forceinline=True)
def ends_before_kernel(
    key: int,
    older: int,
    newer: int,
    end: int,
    other_key: int,
    other_older: int,
    other_newer: int,
    other_end: int,
) -> bool:
    """Return whether a pair precedes another one in the order of ends."""
    if end != other_end:
        return end < other_end
    return precedes_kernel(other_key, other_older, other_newer, key, older, newer)


@njit(cache=True, forceinline=True)
def count_ends_before_kernel(e_end: Int32s, n: int, end: int) -> int:
    """Return the number of pairs that end before others with an end: a rank in E."""
    # Without branches on the values, which processors cannot predict.
    low, size = 0, n
    while size > 1:
        half = size >> 1
        low += half * (e_end[low + half - 1] < end)
        size -= half
    if size == 1 and e_end[low] < end:
        low += 1
    return low


@njit(cache=True, forceinline=True)
def rank_pair_kernel(s_key: Int64s, s_older: Int32s, n: int, key: int, older: int) -> int:
    """Return the number of pairs that precede a new pair of a new set: its rank in S."""
    low, size = 0, n
    while size > 0:
        half = size >> 1
        at = low + half
        if s_key[at] > key or (s_key[at] == key and s_older[at] >= older):
            low = at + 1
            size -= half + 1
        else:
            size = half
    return low


@njit(cache=True, forceinline=True)
def find_oldest_kernel(
    s_key: Int64s,
    s_older: Int32s,
    s_end: Int32s,
    e_end: Int32s,
    n: int,
    k: int,
    time_last: Int32s,
    key: int,
    first: int,
    rank: int,
) -> tuple[int, int]:
    """Find the oldest set with which a new set forms a relevant pair if the pair has this key.

    Parameters
    ----------
    s_key, s_older, s_end, e_end
        Columns of the minimal stock: key, older set and end of S, end of E.
    n, k : int
        Size of the stock, and length of the list.
    time_last : int32[c]
        The last set of each time (`state.Sets`).
    key : int
        Key of the pair.
    first : int
        Number of the oldest valid set.
    rank : int
        0, or the rank found for a larger key.

    Returns
    -------
    older, rank : int
        Number of the set: the new set forms relevant pairs of this key with this set and with all
        later ones, and not with earlier ones. And the first j such that S[k - 1 + j] has a smaller
        key or does not exist.
    """
    # With j pairs ending before it, a pair is relevant if this holds (P-TOPK-SKYBAND).
    low, high = rank, max(n - k + 1, rank)
    while low < high:
        middle = (low + high) >> 1
        if s_key[k - 1 + middle] < key:
            high = middle
        else:
            low = middle + 1
    if low == 0:
        return first, low
    end = e_end[low - 1]
    last = time_last[np.uint64(end) & np.uint64(len(time_last) - 1)]
    if last > end and s_key[k - 2 + low] == key:
        # Of sets of one time, those behind the older set of the k-th pair, if it has this key.
        bar = k - 1 + count_ends_before_kernel(e_end, low, end)
        if s_key[bar] == key and s_end[bar] == end:
            return s_older[bar] + 1, low
    return last + 1, low


@njit(cache=True)
def expire_pairs_kernel(stock: Stock, n: int, first: int) -> tuple[int, int]:
    """Remove the pairs whose older set has expired.

    Parameters
    ----------
    stock : Stock
        The stock.
    n : int
        Size of the stock.
    first : int
        Number of the oldest set that is still valid: the first of its time.

    Returns
    -------
    size, rank : int
        New size, and rank in S of the first removed pair; the size if no pair was removed.
    """
    s_key, s_older, s_newer, s_end = stock.pairs
    e_key, e_older, e_newer, e_end = stock.ends
    expired = count_ends_before_kernel(e_end, n, first)
    if expired == 0:
        return n, n
    rank = n
    for at in range(expired):
        # The rank of the first pair with this key and this older set; it expires as well.
        rank = min(rank, rank_pair_kernel(s_key, s_older, n, e_key[at], e_older[at] + 1))
    kept = rank
    for at in range(rank, n):
        if s_end[at] >= first:
            s_key[kept] = s_key[at]
            s_older[kept] = s_older[at]
            s_newer[kept] = s_newer[at]
            s_end[kept] = s_end[at]
            kept += 1
    for at in range(expired, n):
        e_key[at - expired] = e_key[at]
        e_older[at - expired] = e_older[at]
        e_newer[at - expired] = e_newer[at]
        e_end[at - expired] = e_end[at]
    return kept, rank
