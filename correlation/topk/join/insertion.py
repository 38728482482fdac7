"""Insertion of the candidates of a new set into the minimal stock.

Problem. New pairs enter S and E, and pairs that they make irrelevant leave both.

Algorithm (SWOOP, Algorithms 5 and 6). One pass merges S and the candidates in the order of pairs,
from the first candidate on. Beside it the pass merges E and the candidates in the order of ends.
The bar is the pair that ends first among the k pairs that end last of the pairs kept so far. The
pass drops a pair that precedes the bar in the order of ends: the bar and k - 1 others are better
and end no earlier. Otherwise the pair is kept, and the bar moves on to the next end of a kept pair.
Ends that the bar passes before their pairs were reached belong to pairs that will be dropped. The
pass ends when all candidates are inserted and as many pairs were dropped as ends removed: from
there on, S and E are aligned as before (docs/proofs.md, P-TOPK-INSERT).

`insert_pairs_kernel` is Algorithm 6; the pairs that it drops are those of the cleanup, Algorithm 5.
Runs of pairs in which nothing changes are found and copied without a branch for each pair.

References. Mann, Augsten & Jensen, "SWOOP: Top-k Similarity Joins over Set Streams", 2017,
section 6.3; sorted arrays and a pass in place of trees.
Cost. O(n) steps of a merge in the worst case, where n is the size of the stock.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from correlation.topk.join.stock import (
    Stock,
    ends_before_kernel,
    precedes_kernel,
    rank_pair_kernel,
)

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]

# Pairs that the pass looks at together.
_RUN = 8
# Number behind those of all sets.
_LAST = 2**31 - 1


class Candidates(NamedTuple):
    """Candidates of a new set.

    Parameters
    ----------
    key : int64[c]
        Keys.
    older : int32[c]
        The other sets.
    end : int32[c]
        Ends.
    by_end : int32[c]
        Positions of the candidates in the order of ends.
    """

    key: Int64s
    older: Int32s
    end: Int32s
    by_end: Int32s


# Small kernels are inlined (forceinline), because a call passes seven fields of every array. Those
# inside loops take scalars or have no branches: otherwise numba counts references to the arrays.
# Inner loops use indices of type uint64: for an index that may be negative numba adds a branch, and
# LLVM does not vectorise the loop.


@njit(cache=True, forceinline=True)
def _copy_pairs_kernel(
    key: Int64s,
    older: Int32s,
    newer: Int32s,
    end: Int32s,
    to: int,
    from_key: Int64s,
    from_older: Int32s,
    from_newer: Int32s,
    from_end: Int32s,
    begin: int,
    count: int,
) -> None:
    """Copy `count` pairs from position `begin` on to position `to` on."""
    for step in range(count):
        key[np.uint64(to) + np.uint64(step)] = from_key[np.uint64(begin) + np.uint64(step)]
    for step in range(count):
        older[np.uint64(to) + np.uint64(step)] = from_older[np.uint64(begin) + np.uint64(step)]
    for step in range(count):
        newer[np.uint64(to) + np.uint64(step)] = from_newer[np.uint64(begin) + np.uint64(step)]
    for step in range(count):
        end[np.uint64(to) + np.uint64(step)] = from_end[np.uint64(begin) + np.uint64(step)]


@njit(cache=True, forceinline=True)
def _is_aligned_kernel(
    key: Int64s,
    older: Int32s,
    end: Int32s,
    at: int,
    e_key: Int64s,
    e_older: Int32s,
    e_end: Int32s,
    end_at: int,
) -> bool:
    """Return whether the pass keeps a run of S and the run of E that the bar passes with it.

    The first pair of the run of S is known to be kept. May be False although the pass keeps all.
    """
    changes = False
    first, end_first = np.uint64(at), np.uint64(end_at)
    for step in range(_RUN):
        place, end_place = first + np.uint64(step), end_first + np.uint64(step)
        x_key, y_key = key[place], e_key[end_place]
        changes |= (y_key < x_key) | ((y_key == x_key) & (e_older[end_place] <= older[place]))
    for step in range(_RUN - 1):
        place, end_place = first + np.uint64(step + 1), end_first + np.uint64(step)
        changes |= end[place] <= e_end[end_place]
    return not changes


@njit(cache=True, forceinline=True)
def _is_next_kernel(key: int, older: int, rest_key: int, rest_older: int) -> bool:
    """Return whether a candidate precedes a pair of the stock in the order of pairs."""
    # The candidate's newer set is the newest: it is behind pairs with the same key and older set.
    return key > rest_key or (key == rest_key and older > rest_older)


@njit(cache=True, forceinline=True)
def _ends_next_kernel(
    key: int, older: int, end: int, rest_key: int, rest_older: int, rest_end: int
) -> bool:
    """Return whether a candidate precedes a pair of the stock in the order of ends."""
    return end < rest_end or (
        end == rest_end and not _is_next_kernel(key, older, rest_key, rest_older)
    )


@njit(cache=True)
def insert_pairs_kernel(  # noqa: PLR0915 - a call in the loop counts references to the arrays that it passes
    stock: Stock, n: int, k: int, candidates: Candidates, m: int, inserted: int
) -> tuple[int, int]:
    """Insert the candidates of a new set, and remove the pairs that are no longer relevant.

    Parameters
    ----------
    stock : Stock
        The minimal stock, with room for n + m pairs.
    n, k : int
        Size of the stock, and length of the list.
    candidates : Candidates
        Candidates in the order of pairs, with room for one more; each is relevant in the present
        stock.
    m : int
        Number of candidates, at least 1.
    inserted : int
        Number of the new set, which is larger than that of every other set.

    Returns
    -------
    size, rank : int
        New size, and rank in S of the first change.
    """
    s_key, s_older, s_newer, s_end = stock.pairs
    e_key, e_older, e_newer, e_end = stock.ends
    # The rest of S and of E that the pass has not reached.
    r_key, r_older, r_newer, r_end = stock.spare_pairs
    t_key, t_older, t_newer, t_end = stock.spare_ends
    pair_key, pair_older, pair_end, by_end = candidates
    rank = rank_pair_kernel(s_key, s_older, n, pair_key[0], pair_older[0])
    # The bar is E[bar], or does not exist if fewer than k pairs are kept so far.
    bar = max(rank - k, -1)
    left, ends_left = n - rank, n - (bar + 1)
    _copy_pairs_kernel(
        r_key, r_older, r_newer, r_end, 0, s_key, s_older, s_newer, s_end, rank, left
    )
    _copy_pairs_kernel(
        t_key, t_older, t_newer, t_end, 0, e_key, e_older, e_newer, e_end, bar + 1, ends_left
    )
    # Pairs behind all others in both orders: comparisons need no test for the end of the columns.
    pair_key[m], pair_older[m], pair_end[m], by_end[m] = -1, _LAST, _LAST, m
    r_key[left], r_older[left], r_end[left] = -1, _LAST, _LAST
    t_key[ends_left], t_older[ends_left], t_end[ends_left] = -1, _LAST, _LAST
    size, at, place, end_at, end_place, dropped, removed = rank, 0, 0, 0, 0, 0, 0
    while (at < left or place < m) and (place < m or end_place < m or dropped < removed):
        last, end_last, new = at + _RUN - 1, end_at + _RUN - 1, by_end[end_place]
        if (
            bar >= 0
            and last < left
            and end_last < ends_left
            and not _is_next_kernel(pair_key[place], pair_older[place], r_key[last], r_older[last])
            and not _ends_next_kernel(
                pair_key[new], pair_older[new], pair_end[new],
                t_key[end_last], t_older[end_last], t_end[end_last],
            )
            and r_end[at] > e_end[bar]
            and _is_aligned_kernel(r_key, r_older, r_end, at, t_key, t_older, t_end, end_at)
        ):  # fmt: skip
            _copy_pairs_kernel(
                s_key, s_older, s_newer, s_end, size, r_key, r_older, r_newer, r_end, at, _RUN
            )
            _copy_pairs_kernel(
                e_key, e_older, e_newer, e_end, bar + 1,
                t_key, t_older, t_newer, t_end, end_at, _RUN,
            )  # fmt: skip
            at, size, end_at, bar = at + _RUN, size + _RUN, end_at + _RUN, bar + _RUN
            continue
        if _is_next_kernel(pair_key[place], pair_older[place], r_key[at], r_older[at]):
            key, older, newer, end = pair_key[place], pair_older[place], inserted, pair_end[place]
            place += 1
        else:
            key, older, newer, end = r_key[at], r_older[at], r_newer[at], r_end[at]
            at += 1
        if bar >= 0 and ends_before_kernel(
            key, older, newer, end, e_key[bar], e_older[bar], e_newer[bar], e_end[bar]
        ):
            dropped += 1
            continue
        s_key[size], s_older[size], s_newer[size], s_end[size] = key, older, newer, end
        size += 1
        if size < k:
            continue
        # The bar moves on to the next end of a pair kept so far.
        bar += 1
        removed -= 1
        is_ahead = True
        while is_ahead:
            new = by_end[end_place]
            if _ends_next_kernel(
                pair_key[new], pair_older[new], pair_end[new],
                t_key[end_at], t_older[end_at], t_end[end_at],
            ):  # fmt: skip
                e_key[bar], e_older[bar] = pair_key[new], pair_older[new]
                e_newer[bar], e_end[bar] = inserted, pair_end[new]
                end_place += 1
            else:
                e_key[bar], e_older[bar] = t_key[end_at], t_older[end_at]
                e_newer[bar], e_end[bar] = t_newer[end_at], t_end[end_at]
                end_at += 1
            removed += 1
            is_ahead = precedes_kernel(key, older, newer, e_key[bar], e_older[bar], e_newer[bar])
    rest = left - at
    _copy_pairs_kernel(
        s_key, s_older, s_newer, s_end, size, r_key, r_older, r_newer, r_end, at, rest
    )
    # The next end is copied as in the loop, which does not call a function for it: a call there
    # counts references to the arrays that it passes.
    while end_place < m:
        bar, new = bar + 1, by_end[end_place]
        if _ends_next_kernel(
            pair_key[new], pair_older[new], pair_end[new],
            t_key[end_at], t_older[end_at], t_end[end_at],
        ):  # fmt: skip
            e_key[bar], e_older[bar] = pair_key[new], pair_older[new]
            e_newer[bar], e_end[bar] = inserted, pair_end[new]
            end_place += 1
        else:
            e_key[bar], e_older[bar] = t_key[end_at], t_older[end_at]
            e_newer[bar], e_end[bar] = t_newer[end_at], t_end[end_at]
            end_at += 1
    _copy_pairs_kernel(
        e_key, e_older, e_newer, e_end, bar + 1,
        t_key, t_older, t_newer, t_end, end_at, ends_left - end_at,
    )  # fmt: skip
    return size + rest, rank
