"""A stock as sorted arrays of pairs, where the source has trees.

The order of pairs is that of `correlation.topk.join.stock`: key descending, then the later older
set, then the earlier newer set. Merging the candidates of a set into an array moves pairs that a
tree leaves in place, but moves them in sequence; a scan, which Algorithm 1 needs for every expired
set, is many times faster in an array than in a tree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from benchmarks.swoop.window import Int32s, Int64s
from correlation.topk.join.join import Pairs


class Stock(NamedTuple):
    """Columns of pairs with room for more: int64[c], int32[c], int32[c]."""

    key: Int64s
    older: Int32s
    newer: Int32s


class Found(NamedTuple):
    """Columns of the candidates of one set: int64[c], int32[c]."""

    key: Int64s
    older: Int32s


def make_stock(room: int) -> Stock:
    """Return an empty stock with room for pairs."""
    return Stock(np.empty(room, np.int64), np.empty(room, np.int32), np.empty(room, np.int32))


def make_found(room: int) -> Found:
    """Return space for the candidates of a set."""
    return Found(np.empty(room, np.int64), np.empty(room, np.int32))


def grow_stock(stock: Stock, room: int) -> Stock:
    """Return the stock with more room."""
    grown, count = make_stock(room), len(stock.key)
    grown.key[:count], grown.older[:count] = stock.key, stock.older
    grown.newer[:count] = stock.newer
    return grown


def list_stock(stock: Stock, size: int) -> Pairs:
    """Return the first pairs of a stock."""
    return Pairs(
        stock.key[:size].copy(),
        stock.older[:size].astype(np.int64),
        stock.newer[:size].astype(np.int64),
    )


@njit(cache=True)
def drop_expired_kernel(stock: Stock, n: int, first: int) -> int:
    """Remove the pairs whose older set is before the first valid set; return the new size."""
    kept = 0
    for at in range(n):
        key, older, newer = stock.key[at], stock.older[at], stock.newer[at]
        stock.key[kept], stock.older[kept], stock.newer[kept] = key, older, newer
        kept += older >= first
    return kept


@njit(cache=True)
def merge_found_kernel(stock: Stock, n: int, found: Found, m: int, newer: int) -> int:
    """Merge the candidates of a set into a stock with room for them; return the new size.

    Parameters
    ----------
    stock : Stock
        The stock.
    n : int
        Its size.
    found : Found
        Candidates by descending number of the older set; sorted in place.
    m : int
        Number of candidates.
    newer : int
        Number of the set, larger than that of every other set.
    """
    if m == 0:
        return n
    order = np.argsort(-found.key[:m], kind="mergesort")
    found.key[:m] = found.key[:m][order]
    found.older[:m] = found.older[:m][order]
    at, place = n - 1, m - 1
    for to in range(n + m - 1, -1, -1):
        if place < 0:
            break
        if at >= 0 and (
            stock.key[at] < found.key[place]
            or (stock.key[at] == found.key[place] and stock.older[at] < found.older[place])
        ):
            stock.key[to], stock.older[to] = stock.key[at], stock.older[at]
            stock.newer[to] = stock.newer[at]
            at -= 1
        else:
            stock.key[to], stock.older[to] = found.key[place], found.older[place]
            stock.newer[to] = newer
            place -= 1
    return n + m
