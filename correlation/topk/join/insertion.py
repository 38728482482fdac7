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
    PairColumns,
    Stock,
    ends_before_kernel,
    precedes_kernel,
    rank_pair_kernel,
)

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]

# Pairs that the pass looks at together.
_RUN = 8


class Candidates(NamedTuple):
    """Candidates of a new set.

    Parameters
    ----------
    key : int64[c]
        Keys.
    older : int32[c]
        The other sets.
    by_end : int32[c]
        Positions of the candidates in the order of ends.
    """

    key: Int64s
    older: Int32s
    by_end: Int32s


# Small kernels are inlined (forceinline), because a call passes seven fields of every array. Inner
# loops use indices of type uint64: for an index that may be negative numba adds a branch, and LLVM
# does not vectorise the loop.


@njit(cache=True, forceinline=True)
def _copy_pairs_kernel(
    target: PairColumns, to: int, source: PairColumns, begin: int, count: int
) -> None:
    """Copy `count` pairs from source[begin] on to target[to] on."""
    key, older, younger = target
    from_key, from_older, from_younger = source
    for step in range(count):
        key[np.uint64(to) + np.uint64(step)] = from_key[np.uint64(begin) + np.uint64(step)]
    for step in range(count):
        older[np.uint64(to) + np.uint64(step)] = from_older[np.uint64(begin) + np.uint64(step)]
    for step in range(count):
        younger[np.uint64(to) + np.uint64(step)] = from_younger[np.uint64(begin) + np.uint64(step)]


@njit(cache=True, forceinline=True)
def _is_aligned_kernel(pairs: PairColumns, at: int, ends: PairColumns, end_at: int) -> bool:
    """Return whether the pass keeps a run of S and the run of E that the bar passes with it.

    The first pair of the run of S is known to be kept. May be False although the pass keeps all.
    """
    key, older, _ = pairs
    end_key, end_older, _ = ends
    changes = False
    first, end_first = np.uint64(at), np.uint64(end_at)
    for step in range(_RUN):
        place, end = first + np.uint64(step), end_first + np.uint64(step)
        x_key, e_key = key[place], end_key[end]
        changes |= (e_key < x_key) | ((e_key == x_key) & (end_older[end] <= older[place]))
    for step in range(_RUN - 1):
        place, end = first + np.uint64(step + 1), end_first + np.uint64(step)
        changes |= older[place] <= end_older[end]
    return not changes


@njit(cache=True, forceinline=True)
def _is_next_kernel(
    candidates: Candidates, place: int, m: int, pairs: PairColumns, at: int, left: int
) -> bool:
    """Return whether a candidate is next in the order of pairs, not pairs[at]."""
    if place == m:
        return False
    if at == left or candidates.key[place] > pairs.key[at]:
        return True
    # A candidate's younger set is the newest: the candidate is behind pairs of the same older set.
    return bool(
        candidates.key[place] == pairs.key[at] and candidates.older[place] > pairs.older[at]
    )


@njit(cache=True, forceinline=True)
def _is_next_end_kernel(
    candidates: Candidates, place: int, m: int, ends: PairColumns, at: int, left: int
) -> bool:
    """Return whether a candidate is next in the order of ends, not ends[at]."""
    if place == m:
        return False
    if at == left:
        return True
    new = candidates.by_end[place]
    if candidates.older[new] != ends.older[at]:
        return bool(candidates.older[new] < ends.older[at])
    return bool(candidates.key[new] <= ends.key[at])


@njit(cache=True, forceinline=True)
def _take_pair_kernel(
    pairs: PairColumns,
    size: int,
    candidates: Candidates,
    place: int,
    m: int,
    younger: int,
    rest: PairColumns,
    at: int,
    left: int,
) -> tuple[int, int]:
    """Write the next pair in the order of pairs to pairs[size]; return new `place` and `at`."""
    if _is_next_kernel(candidates, place, m, rest, at, left):
        pairs.key[size] = candidates.key[place]
        pairs.older[size], pairs.younger[size] = candidates.older[place], younger
        return place + 1, at
    pairs.key[size] = rest.key[at]
    pairs.older[size], pairs.younger[size] = rest.older[at], rest.younger[at]
    return place, at + 1


@njit(cache=True, forceinline=True)
def _take_end_kernel(
    ends: PairColumns,
    end: int,
    candidates: Candidates,
    place: int,
    m: int,
    younger: int,
    rest: PairColumns,
    at: int,
    left: int,
) -> tuple[int, int]:
    """Write the next pair in the order of ends to ends[end]; return new `place` and `at`."""
    if _is_next_end_kernel(candidates, place, m, rest, at, left):
        new = candidates.by_end[place]
        ends.key[end] = candidates.key[new]
        ends.older[end], ends.younger[end] = candidates.older[new], younger
        return place + 1, at
    ends.key[end] = rest.key[at]
    ends.older[end], ends.younger[end] = rest.older[at], rest.younger[at]
    return place, at + 1


@njit(cache=True)
def insert_pairs_kernel(
    stock: Stock, n: int, k: int, candidates: Candidates, m: int, younger: int
) -> tuple[int, int]:
    """Insert the candidates of a new set, and remove the pairs that are no longer relevant.

    Parameters
    ----------
    stock : Stock
        The minimal stock, with room for n + m pairs.
    n, k : int
        Size of the stock, and length of the list.
    candidates : Candidates
        Candidates in the order of pairs; each is relevant in the present stock.
    m : int
        Number of candidates, at least 1.
    younger : int
        Number of the new set, which is larger than that of every other set.

    Returns
    -------
    size, rank : int
        New size, and rank in S of the first change.
    """
    pairs, ends, rest, rest_ends = stock
    rank = rank_pair_kernel(pairs.key, pairs.older, n, candidates.key[0], candidates.older[0])
    # The bar is E[end], or does not exist if fewer than k pairs are kept so far.
    end = max(rank - k, -1)
    left, ends_left = n - rank, n - (end + 1)
    _copy_pairs_kernel(rest, 0, pairs, rank, left)
    _copy_pairs_kernel(rest_ends, 0, ends, end + 1, ends_left)
    size, at, place, end_at, end_place = rank, 0, 0, 0, 0
    dropped, removed = 0, 0
    while (at < left or place < m) and (place < m or end_place < m or dropped < removed):
        last, end_last = at + _RUN - 1, end_at + _RUN - 1
        if (
            end >= 0
            and last < left
            and end_last < ends_left
            and not _is_next_kernel(candidates, place, m, rest, last, left)
            and not _is_next_end_kernel(candidates, end_place, m, rest_ends, end_last, ends_left)
            and rest.older[at] > ends.older[end]
            and _is_aligned_kernel(rest, at, rest_ends, end_at)
        ):
            _copy_pairs_kernel(pairs, size, rest, at, _RUN)
            _copy_pairs_kernel(ends, end + 1, rest_ends, end_at, _RUN)
            at, size, end_at, end = at + _RUN, size + _RUN, end_at + _RUN, end + _RUN
            continue
        place, at = _take_pair_kernel(pairs, size, candidates, place, m, younger, rest, at, left)
        if end >= 0 and ends_before_kernel(pairs, size, ends, end):
            dropped += 1
            continue
        size += 1
        if size < k:
            continue
        end += 1
        end_place, end_at = _take_end_kernel(
            ends, end, candidates, end_place, m, younger, rest_ends, end_at, ends_left
        )
        while precedes_kernel(pairs, size - 1, ends, end):
            removed += 1
            end_place, end_at = _take_end_kernel(
                ends, end, candidates, end_place, m, younger, rest_ends, end_at, ends_left
            )
    _copy_pairs_kernel(pairs, size, rest, at, left - at)
    while end_place < m:
        end += 1
        end_place, end_at = _take_end_kernel(
            ends, end, candidates, end_place, m, younger, rest_ends, end_at, ends_left
        )
    _copy_pairs_kernel(ends, end + 1, rest_ends, end_at, ends_left - end_at)
    return size + left - at, rank
