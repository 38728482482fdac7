"""The minimal stock: the pairs that are in the top k now or may be later.

Problem. A pair is relevant while fewer than k pairs precede it in the order of pairs and end no
earlier than it does. The stock holds the relevant pairs, and no others, after every change.

Definitions. A pair is (key of its similarity, older set, younger set); sets have numbers in the
order in which they take effect. The order of pairs: key descending, then older set descending, so
the later end is first, then younger set ascending. S is the stock in this order. E is the stock in
the order of ends: older set ascending, then the reverse of the order of pairs. Positions begin at 0.

Theorem. If the stock is minimal and exactly r pairs of it end before a time, then the k-th pair at
this time is S[k - 1 + r], or there are fewer than k pairs (SWOOP, Lemma 6.1). A pair that ends at
this time is relevant iff it precedes that pair (docs/proofs.md, P-TOPK-SKYBAND).

Algorithm. S and E are sorted arrays, so ranks are found by binary search. `insert` merges the
candidates of a new set into both and removes the pairs that they make irrelevant in one pass along
the skyband boundary, from the first candidate on (SWOOP, Algorithms 5 and 6; P-TOPK-INSERT).

References. Mann, Augsten & Jensen, "SWOOP: Top-k Similarity Joins over Set Streams", 2017, section 6.
Cost. Rank O(log n), expiry and insertion O(n) steps of a merge in the worst case, where n is the
size of the stock; the pass ends where no candidate has an effect any more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]


# Pairs that a pass looks at together.
_RUN = 8


class Stock(NamedTuple):
    """Arrays of a stock with room for c pairs and candidates.

    Parameters
    ----------
    key, older, younger : int64[c], int32[c], int32[c]
        The pairs in the order S.
    end_key, end_older, end_younger : int64[c], int32[c], int32[c]
        The pairs in the order E.
    spare_key, spare_older, spare_younger : int64[c], int32[c], int32[c]
        Pairs of S that a pass has not reached yet.
    spare_end_key, spare_end_older, spare_end_younger : int64[c], int32[c], int32[c]
        The same for E.
    """

    key: Int64s
    older: Int32s
    younger: Int32s
    end_key: Int64s
    end_older: Int32s
    end_younger: Int32s
    spare_key: Int64s
    spare_older: Int32s
    spare_younger: Int32s
    spare_end_key: Int64s
    spare_end_older: Int32s
    spare_end_younger: Int32s


def make_stock(capacity: int) -> Stock:
    """Return an empty stock with room for `capacity` pairs and candidates."""
    kinds = (np.int64, np.int32, np.int32) * 4
    return Stock(*(np.empty(capacity, kind) for kind in kinds))


def grow_stock(stock: Stock, capacity: int) -> Stock:
    """Return the stock with more room.

    Parameters
    ----------
    stock : Stock
        The stock.
    capacity : int
        New capacity, larger than the present one.
    """
    grown = make_stock(capacity)
    for new, old in zip(grown, stock, strict=True):
        new[: len(old)] = old
    return grown


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
    s_key: Int64s,
    s_older: Int32s,
    end_older: Int32s,
    n: int,
    k: int,
    key: int,
    first: int,
    rank: int,
) -> tuple[int, int]:
    """Find the oldest set with which a new set forms a relevant pair if the pair has this key.

    Parameters
    ----------
    s_key, s_older, end_older
        Columns of the minimal stock.
    n, k : int
        Size of the stock, and length of the list.
    key : int
        Key of the pair.
    first : int
        Number of the oldest valid set.
    rank : int
        Number of pairs that end before the set found, or fewer: 0, or the result for a larger key.

    Returns
    -------
    older, rank : int
        Number of the set; all later sets form relevant pairs with this key, too. It is larger than
        the number of every set if there is none. And the number of pairs that end before it.
    """
    # Pairs that end with E[j] are compared with S[k - 1 + j]. The bound falls as j grows.
    low, high = rank, max(n - k + 1, rank)
    while low < high:
        middle = (low + high) >> 1
        at = k - 1 + middle
        better = key > s_key[at] or (key == s_key[at] and end_older[middle] > s_older[at])
        if better:
            high = middle
        else:
            low = middle + 1
    # Sets after E[low - 1], up to E[low], have the rank low.
    after = end_older[low - 1] if low > 0 else first - 1
    if low < n - k + 1:
        at = k - 1 + low
        if key == s_key[at]:
            after = max(after, s_older[at])
    return max(after + 1, first), low


@njit(cache=True)
def expire_pairs_kernel(
    s_key: Int64s,
    s_older: Int32s,
    s_younger: Int32s,
    end_key: Int64s,
    end_older: Int32s,
    end_younger: Int32s,
    n: int,
    first: int,
) -> tuple[int, int]:
    """Remove the pairs whose older set has expired.

    Parameters
    ----------
    s_key, s_older, s_younger, end_key, end_older, end_younger
        Columns of the stock.
    n : int
        Size of the stock.
    first : int
        Number of the oldest set that is still valid.

    Returns
    -------
    size, rank : int
        New size, and rank in S of the first removed pair; the size if there is none.
    """
    expired = count_ends_before_kernel(end_older, n, first)
    if expired == 0:
        return n, n
    rank = n
    for at in range(expired):
        # The rank of its older set's first pair with this key, which expires as well.
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


@njit(cache=True)
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
def _is_aligned_kernel(
    key: Int64s,
    older: Int32s,
    younger: Int32s,
    at: int,
    end_key: Int64s,
    end_older: Int32s,
    end_younger: Int32s,
    end_at: int,
) -> bool:
    """Return whether the pass keeps all pairs of a run of S and of the run of E aligned with it."""
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
def _copy_run_kernel(
    key: Int64s,
    older: Int32s,
    younger: Int32s,
    to: int,
    from_key: Int64s,
    from_older: Int32s,
    from_younger: Int32s,
    at: int,
    count: int,
) -> None:
    """Copy a run of pairs to another array."""
    for step in range(count):
        place, source = np.uint64(to) + np.uint64(step), np.uint64(at) + np.uint64(step)
        key[place] = from_key[source]
    for step in range(count):
        place, source = np.uint64(to) + np.uint64(step), np.uint64(at) + np.uint64(step)
        older[place] = from_older[source]
    for step in range(count):
        place, source = np.uint64(to) + np.uint64(step), np.uint64(at) + np.uint64(step)
        younger[place] = from_younger[source]


@njit(cache=True)
def insert_pairs_kernel(
    s_key: Int64s,
    s_older: Int32s,
    s_younger: Int32s,
    end_key: Int64s,
    end_older: Int32s,
    end_younger: Int32s,
    spare_key: Int64s,
    spare_older: Int32s,
    spare_younger: Int32s,
    spare_end_key: Int64s,
    spare_end_older: Int32s,
    spare_end_younger: Int32s,
    n: int,
    k: int,
    pair_key: Int64s,
    pair_older: Int32s,
    by_end: Int32s,
    m: int,
    younger: int,
) -> tuple[int, int]:
    """Insert the candidates of a new set, and remove the pairs that are no longer relevant.

    Parameters
    ----------
    s_key, ..., spare_end_younger
        Columns of the minimal stock, with room for n + m pairs.
    n, k : int
        Size of the stock, and length of the list.
    pair_key, pair_older : int64[m], int32[m]
        Candidates in the order of pairs; each is relevant in the present stock.
    by_end : int32[m]
        Positions of the candidates in the order of ends.
    m : int
        Number of candidates, at least 1.
    younger : int
        Number of the new set, which is larger than that of every other set.

    Returns
    -------
    size, rank : int
        New size, and rank in S of the first change.
    """
    rank = rank_pair_kernel(s_key, s_older, n, pair_key[0], pair_older[0])
    # E[end] is the earliest end of the k best pairs passed so far. Candidates end later.
    end = max(rank - k, -1)
    left, ends_left = n - rank, n - (end + 1)
    _copy_run_kernel(
        spare_key, spare_older, spare_younger, 0, s_key, s_older, s_younger, rank, left
    )
    _copy_run_kernel(
        spare_end_key,
        spare_end_older,
        spare_end_younger,
        0,
        end_key,
        end_older,
        end_younger,
        end + 1,
        ends_left,
    )
    bar_key, bar_older, bar_younger = 0, -1, 0
    if end >= 0:
        bar_key, bar_older, bar_younger = end_key[end], end_older[end], end_younger[end]
    size, at, place, end_at, end_place = rank, 0, 0, 0, 0
    dropped, removed = 0, 0
    while at < left or place < m:
        if place == m and end_place == m and dropped == removed:
            # The rest of S and E is aligned as before.
            break
        last, end_last = at + _RUN - 1, end_at + _RUN - 1
        if (
            end >= 0
            and last < left
            and end_last < ends_left
            and (
                place == m
                or spare_key[last] > pair_key[place]
                or (spare_key[last] == pair_key[place] and spare_older[last] >= pair_older[place])
            )
            and (end_place == m or spare_end_older[end_last] < pair_older[by_end[end_place]])
            and spare_older[at] > bar_older
            and _is_aligned_kernel(
                spare_key,
                spare_older,
                spare_younger,
                at,
                spare_end_key,
                spare_end_older,
                spare_end_younger,
                end_at,
            )
        ):
            _copy_run_kernel(
                s_key, s_older, s_younger, size, spare_key, spare_older, spare_younger, at, _RUN
            )
            _copy_run_kernel(
                end_key,
                end_older,
                end_younger,
                end + 1,
                spare_end_key,
                spare_end_older,
                spare_end_younger,
                end_at,
                _RUN,
            )
            at += _RUN
            size += _RUN
            end_at += _RUN
            end += _RUN
            bar_key, bar_older, bar_younger = end_key[end], end_older[end], end_younger[end]
            continue
        if place < m and (
            at == left
            or pair_key[place] > spare_key[at]
            or (pair_key[place] == spare_key[at] and pair_older[place] > spare_older[at])
        ):
            key, older, newer = pair_key[place], pair_older[place], younger
            place += 1
        else:
            key, older, newer = spare_key[at], spare_older[at], spare_younger[at]
            at += 1
        if older <= bar_older and (
            older < bar_older or (key <= bar_key and (key < bar_key or newer > bar_younger))
        ):
            dropped += 1
            continue
        s_key[size], s_older[size], s_younger[size] = key, older, newer
        size += 1
        if size < k:
            continue
        # The bar moves on to the next end of a pair passed so far.
        while True:
            from_new = end_place < m
            if from_new and end_at < ends_left:
                new = by_end[end_place]
                from_new = pair_older[new] < spare_end_older[end_at] or (
                    pair_older[new] == spare_end_older[end_at]
                    and pair_key[new] <= spare_end_key[end_at]
                )
            if from_new:
                new = by_end[end_place]
                bar_key, bar_older, bar_younger = pair_key[new], pair_older[new], younger
                end_place += 1
            else:
                bar_key, bar_older = spare_end_key[end_at], spare_end_older[end_at]
                bar_younger = spare_end_younger[end_at]
                end_at += 1
            if bar_key > key or (
                bar_key == key
                and (bar_older > older or (bar_older == older and bar_younger <= newer))
            ):
                break
            removed += 1
        end += 1
        end_key[end], end_older[end], end_younger[end] = bar_key, bar_older, bar_younger
    while at < left:
        s_key[size], s_older[size] = spare_key[at], spare_older[at]
        s_younger[size] = spare_younger[at]
        at += 1
        size += 1
    while end_at < ends_left or end_place < m:
        from_new = end_place < m
        if from_new and end_at < ends_left:
            new = by_end[end_place]
            from_new = pair_older[new] < spare_end_older[end_at] or (
                pair_older[new] == spare_end_older[end_at]
                and pair_key[new] <= spare_end_key[end_at]
            )
        end += 1
        if from_new:
            new = by_end[end_place]
            end_key[end], end_older[end], end_younger[end] = (
                pair_key[new],
                pair_older[new],
                younger,
            )
            end_place += 1
        else:
            end_key[end], end_older[end] = spare_end_key[end_at], spare_end_older[end_at]
            end_younger[end] = spare_end_younger[end_at]
            end_at += 1
    return size, rank
