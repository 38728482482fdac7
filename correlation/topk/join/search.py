"""Search for the valid sets with which a new set forms relevant pairs.

Problem. Of all valid sets that share a token with a new set, find those whose pair with it is
relevant, without comparing the new set with all of them.

Algorithm (SWOOP, Algorithm 4). The inverted lists of the tokens are read in an order of the tokens,
each from its newest set. A set that is first met in the p-th list lacks the p - 1 tokens before, so
the key of its pair has an upper bound (Theorem 5.1). The skyband lower bound grows with the age of
a set. A list is read up to the oldest set whose pair is relevant if it reaches the upper bound. A
set's own size and lower bound exclude more sets; for the others the overlap is counted. The count
stops when the overlap needed cannot be reached.

The overlap is counted by marks of the new set's tokens instead of a merge of sorted tokens: the
reads do not depend on each other.

References. Mann, Augsten & Jensen, "SWOOP: Top-k Similarity Joins over Set Streams", 2017, section 5.
Cost. O(log n) for each list and each set that passes the first test; O(tokens) for a counted set.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from correlation.topk.join.lists import FRONT, SIZE, START
from correlation.topk.join.stock import count_ends_before_kernel, find_oldest_kernel
from correlation.topk.similarities import TABLE_SIZES, Key

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]

# Positions of counters in the array of work done.
PRECANDIDATES, COUNTED, CANDIDATES = range(3)
# Columns of the array of sets.
PLACE, MET_BY, BAR, SIGNATURE = range(4)
# A place is the position of a set's tokens, times 2**SIZE_BITS, plus their number.
SIZE_BITS = 14
# Tokens that are counted before the overlap that is still possible is compared again.
_STEP = 32
# Sets with fewer tokens are ordered by insertion.
_FEW = 100


@njit(cache=True, forceinline=True)
def key_kernel(table: Int64s, key: Key, overlap: int, size: int, other: int) -> int:
    """Return the key of two sets, from the table if they are small.

    Parameters
    ----------
    table : int64[TABLE_SIZES**3]
        Keys of small sets (`similarities.key_table`).
    key : callable
        `Similarity.key`.
    overlap, size, other : int
        Overlap and sizes of the sets.
    """
    if size < TABLE_SIZES and other < TABLE_SIZES:
        return table[(size * TABLE_SIZES + other) * TABLE_SIZES + overlap]
    return key(overlap, size, other)


@njit(cache=True, forceinline=True)
def sign_token_kernel(token: int) -> int:
    """Return the bit of a token in the signatures of sets."""
    return np.int64(1) << ((np.uint64(token) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(58))


@njit(cache=True)
def sign_tokens_kernel(tokens: Int32s, bits: Int64s) -> None:
    """Write the bit of each token."""
    for place in range(len(tokens)):
        bits[place] = sign_token_kernel(tokens[place])


@njit(cache=True, forceinline=True)
def count_bits_kernel(value: int) -> int:
    """Return the number of ones of a 64-bit number."""
    # Compilers replace this by one instruction.
    bits = np.uint64(value)
    bits = bits - ((bits >> np.uint64(1)) & np.uint64(0x5555555555555555))
    bits = (bits & np.uint64(0x3333333333333333)) + (
        (bits >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((bits * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(cache=True, forceinline=True)
def count_overlap_kernel(
    tokens: Int32s, token_mark: Int32s, begin: int, size: int, marked: int, least: int
) -> int:
    """Count the marked tokens of a set, until it is clear that they are fewer than a number.

    Parameters
    ----------
    tokens, token_mark
        Tokens of the sets, and the mark of each token.
    begin, size : int
        Position and number of the set's tokens.
    marked : int
        Mark of the other set's tokens.
    least : int
        Overlap needed; 0: all tokens are counted.

    Returns
    -------
    int
        The overlap, or a number less than `least`.
    """
    mask = np.uint64(len(tokens) - 1)
    overlap, place, end = 0, begin, begin + size
    while place < end and overlap + (end - place) >= least:
        stop = min(place + _STEP, end)
        while place < stop:
            overlap += token_mark[tokens[np.uint64(place) & mask]] == marked
            place += 1
    return overlap


@njit(cache=True)
def order_tokens_kernel(
    lists: Int32s,
    tokens: Int32s,
    start: int,
    size: int,
    sides: int,
    side: int,
    shortest: bool,
    order: Int32s,
    weight: Int32s,
) -> None:
    """Order a set's tokens: shortest list first, or newest token first.

    Parameters
    ----------
    lists, tokens, start, size
        As in `lists.count_new_room_kernel`.
    sides, side : int
        Number of streams, 1 or 2, and the stream whose lists are read.
    shortest : bool
        Whether the shortest list comes first; otherwise the largest token.
    order : int32[c]
        Output: the tokens.
    weight : int32[c]
        Work space.
    """
    mask = len(tokens) - 1
    for place in range(size):
        token = tokens[(start + place) & mask]
        order[place] = token
        weight[place] = lists[sides * token + side, SIZE] if shortest else -token
    if size > _FEW:
        found = np.argsort(weight[:size], kind="mergesort")
        for place in range(size):
            weight[place] = order[found[place]]
        for place in range(size):
            order[place] = weight[place]
        return
    for place in range(1, size):
        token, mine = order[place], weight[place]
        at = place
        while at > 0 and weight[at - 1] > mine:
            order[at], weight[at] = order[at - 1], weight[at - 1]
            at -= 1
        order[at], weight[at] = token, mine


@njit(cache=True)
def find_candidates_kernel(
    lists: Int32s,
    numbers: Int32s,
    tokens: Int32s,
    sets: Int64s,
    token_mark: Int32s,
    order: Int32s,
    table: Int64s,
    key: Key,
    s_key: Int64s,
    s_older: Int32s,
    end_older: Int32s,
    n: int,
    k: int,
    minimum_key: int,
    first: int,
    new: int,
    sides: int,
    side: int,
    pair_key: Int64s,
    pair_older: Int32s,
    work: Int64s,
) -> int:
    """Find the candidates of a new set.

    Parameters
    ----------
    lists, numbers, tokens
        The inverted lists, and the tokens of the sets.
    sets : int64[c, 4]
        The sets; the row of a set is its number modulo c. Columns: position and number of its
        tokens, the last set whose search met it, and a lower bound of the key that a pair with it
        needs, which never falls (P-TOPK-SKYBAND).
    token_mark : int32[tokens]
        For each token, the last set that contains it and was searched for.
    order : int32[size]
        The new set's tokens in the order of their lists.
    table, key
        Keys of small sets, and of all sets.
    s_key, s_older, end_older
        Columns of the minimal stock.
    n, k : int
        Size of the stock, and length of the list.
    minimum_key : int
        Minimum key of a pair.
    first, new : int
        Numbers of the oldest valid set and of the new set.
    sides, side : int
        Number of streams, 1 or 2, and the stream of the other sets.
    pair_key, pair_older : int64[c], int32[c]
        Output: the candidates, in no order.
    work : int64[3]
        Counters, increased.

    Returns
    -------
    int
        Number of candidates.
    """
    mask = np.uint64(len(sets) - 1)
    size = sets[np.uint64(new) & mask, PLACE] & ((1 << SIZE_BITS) - 1)
    signature = sets[np.uint64(new) & mask, SIGNATURE]
    for place in range(size):
        token_mark[order[place]] = new
    found, met, counted, rank = 0, 0, 0, 0
    for place in range(size):
        rest = size - place
        bound = key_kernel(table, key, rest, size, rest)
        if bound < minimum_key:
            break
        oldest, rank = find_oldest_kernel(s_key, s_older, end_older, n, k, bound, first, rank)
        if oldest >= new:
            break
        it = sides * order[place] + side
        start = lists[it, START] + lists[it, FRONT]
        for at in range(start + lists[it, SIZE] - 1, start - 1, -1):
            older = numbers[np.uint64(at)]
            if older < oldest:
                break
            old = np.uint64(older) & mask
            if sets[old, MET_BY] == new:
                continue
            sets[old, MET_BY] = new
            met += 1
            other = sets[old, PLACE] & ((1 << SIZE_BITS) - 1)
            lacking = count_bits_kernel(signature & ~sets[old, SIGNATURE])
            possible = min(rest, other, size - lacking)
            best = key_kernel(table, key, possible, size, other)
            if best < sets[old, BAR]:
                continue
            needed = minimum_key
            bar = k - 1 + count_ends_before_kernel(end_older, n, older)
            if bar < n:
                needed = max(needed, s_key[bar] + (older <= s_older[bar]))
                sets[old, BAR] = needed
                if best < needed:
                    continue
            counted += 1
            least = 0
            if other >= TABLE_SIZES:
                least = possible
                while least > 1 and key_kernel(table, key, least - 1, size, other) >= needed:
                    least -= 1
            begin = sets[old, PLACE] >> SIZE_BITS
            overlap = count_overlap_kernel(tokens, token_mark, begin, other, new, least)
            if overlap < least:
                continue
            reached = key_kernel(table, key, overlap, size, other)
            if reached >= needed:
                pair_key[found], pair_older[found] = reached, older
                found += 1
    work[PRECANDIDATES] += met
    work[COUNTED] += counted
    work[CANDIDATES] += found
    return found


@njit(cache=True)
def sort_candidates_kernel(pair_key: Int64s, pair_older: Int32s, by_end: Int32s, m: int) -> None:
    """Sort candidates in the order of pairs, and number them in the order of ends.

    Parameters
    ----------
    pair_key, pair_older : int64[c], int32[c]
        The candidates; sorted in place.
    by_end : int32[c]
        Output: positions of the candidates in the order of ends.
    m : int
        Number of candidates.
    """
    if m > _FEW:
        order = np.argsort(-pair_older[:m], kind="mergesort")
        order = order[np.argsort(-pair_key[:m][order], kind="mergesort")]
        pair_key[:m] = pair_key[:m][order]
        pair_older[:m] = pair_older[:m][order]
        by_end[:m] = np.argsort(pair_older[:m], kind="mergesort")
        return
    for place in range(1, m):
        key, older = pair_key[place], pair_older[place]
        at = place
        while at > 0 and (
            pair_key[at - 1] < key or (pair_key[at - 1] == key and pair_older[at - 1] < older)
        ):
            pair_key[at], pair_older[at] = pair_key[at - 1], pair_older[at - 1]
            at -= 1
        pair_key[at], pair_older[at] = key, older
    for place in range(m):
        older = pair_older[place]
        at = place
        while at > 0 and pair_older[by_end[at - 1]] > older:
            by_end[at] = by_end[at - 1]
            at -= 1
        by_end[at] = place
