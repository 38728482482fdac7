"""The minimal stock: the pairs that are in the top k now or may be later.

Problem. A pair is relevant while fewer than k pairs precede it in the order of pairs and end no
earlier than it does. The stock holds the relevant pairs, and no others, after every change.

Definitions. A pair is (key of its similarity, older set, younger set); sets have numbers in the
order in which they take effect. The order of pairs: key descending, then older set descending, so
the later end is first, then younger set ascending. S is the stock in this order. E is the stock in
the order of ends: older set ascending, then the reverse of the order of pairs. Positions begin
at 0.

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
    """Pairs as columns of equal length: key int64[c], older int32[c], younger int32[c]."""

    key: Int64s
    older: Int32s
    younger: Int32s


class Stock(NamedTuple):
    """Arrays of a stock with room for c pairs and candidates.

    Parameters
    ----------
    pairs : PairColumns
        S: the pairs in the order of pairs.
    ends : PairColumns
        E: the pairs in the order of ends.
    spare_pairs, spare_ends : PairColumns
        Pairs of S and of E that an insertion has not reached yet.
    """

    pairs: PairColumns
    ends: PairColumns
    spare_pairs: PairColumns
    spare_ends: PairColumns


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
    grown.key[:size], grown.older[:size], grown.younger[:size] = pairs
    return grown


def make_stock(capacity: int) -> Stock:
    """Return an empty stock with room for `capacity` pairs and candidates."""
    return Stock(*(make_pairs(capacity) for _ in range(4)))


def grow_stock(stock: Stock, capacity: int) -> Stock:
    """Return the stock with more room.

    Parameters
    ----------
    stock : Stock
        The stock.
    capacity : int
        New capacity, larger than the present one.
    """
    pairs, ends = grow_pairs(stock.pairs, capacity), grow_pairs(stock.ends, capacity)
    return Stock(pairs, ends, make_pairs(capacity), make_pairs(capacity))


@njit(cache=True, forceinline=True)
def precedes_kernel(
    key: int, older: int, younger: int, other_key: int, other_older: int, other_younger: int
) -> bool:
    """Return whether a pair precedes another one in the order of pairs."""
    if key != other_key:
        return key > other_key
    if older != other_older:
        return older > other_older
    return younger < other_younger


@njit(cache=True, forceinline=True)
def ends_before_kernel(
    key: int, older: int, younger: int, other_key: int, other_older: int, other_younger: int
) -> bool:
    """Return whether a pair precedes another one in the order of ends."""
    if older != other_older:
        return older < other_older
    return precedes_kernel(other_key, other_older, other_younger, key, older, younger)


@njit(cache=True, forceinline=True)
def count_ends_before_kernel(end_older: Int32s, n: int, older: int) -> int:
    """Return the number of pairs that end before the pairs of an older set: a rank in E."""
    # Without branches on the values, which processors cannot predict.
    low, size = 0, n
    while size > 1:
        half = size >> 1
        low += half * (end_older[low + half - 1] < older)
        size -= half
    if size == 1 and end_older[low] < older:
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
    s_key: Int64s, end_older: Int32s, n: int, k: int, key: int, first: int, rank: int
) -> tuple[int, int]:
    """Find the oldest set with which a new set forms a relevant pair if the pair has this key.

    Parameters
    ----------
    s_key, end_older
        Columns of the minimal stock: key of S, older set of E.
    n, k : int
        Size of the stock, and length of the list.
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
    # With j pairs ending before it, a pair is relevant iff this holds (P-TOPK-SKYBAND).
    low, high = rank, max(n - k + 1, rank)
    while low < high:
        middle = (low + high) >> 1
        if s_key[k - 1 + middle] < key:
            high = middle
        else:
            low = middle + 1
    return (end_older[low - 1] + 1 if low > 0 else first), low


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
        Number of the oldest set that is still valid.

    Returns
    -------
    size, rank : int
        New size, and rank in S of the first removed pair; the size if no pair was removed.
    """
    s_key, s_older, s_younger = stock.pairs
    end_key, end_older, end_younger = stock.ends
    expired = count_ends_before_kernel(end_older, n, first)
    if expired == 0:
        return n, n
    rank = n
    for at in range(expired):
        # The rank of the first pair with this key and this older set; it expires as well.
        rank = min(rank, rank_pair_kernel(s_key, s_older, n, end_key[at], end_older[at] + 1))
    kept = rank
    for at in range(rank, n):
        if s_older[at] >= first:
            s_key[kept] = s_key[at]
            s_older[kept] = s_older[at]
            s_younger[kept] = s_younger[at]
            kept += 1
    for at in range(expired, n):
        end_key[at - expired] = end_key[at]
        end_older[at - expired] = end_older[at]
        end_younger[at - expired] = end_younger[at]
    return kept, rank
