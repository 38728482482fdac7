"""Search for the valid sets with which a new set forms relevant pairs.

Problem. Of all valid sets that share a token with a new set, find those whose pair with it is
relevant, without comparing the new set with all of them.

Algorithm (SWOOP, Algorithm 4). The inverted lists of the tokens are read in an order of the tokens,
each from its newest set. A set that is first met in the p-th list lacks the p - 1 tokens before, so
the key of its pair has an upper bound (Theorem 5.1). The skyband lower bound grows with the age of
a set. A list is read up to the oldest set whose pair is relevant if it reaches the upper bound. A
set's own size, signature and lower bound exclude more sets; for the others the overlap is counted.
The count stops when the overlap needed cannot be reached. `find_candidates_kernel` is Algorithm 4,
in the order of `order_tokens_kernel`.

The overlap is counted by marks of the new set's tokens instead of a merge of sorted tokens: the
reads do not depend on each other.

References. Mann, Augsten & Jensen, "SWOOP: Top-k Similarity Joins over Set Streams", 2017,
section 5.
Cost. O(log n) for each list and each set that passes the first test; O(tokens) for a counted set.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from correlation.topk.join.insertion import Candidates
from correlation.topk.join.lists import FRONT, SIZE, START
from correlation.topk.join.state import BAR, MET_BY, PLACE, SIGNATURE, SIZE_BITS, SIZE_MASK
from correlation.topk.join.stock import count_ends_before_kernel, find_oldest_kernel
from correlation.topk.similarities import TABLE_SIZES, Key

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]
# Indices in inner loops are uint64 (see `insertion`).
Row = int | np.uint64

# Positions of counters: sets met, sets whose overlap was counted, and candidates.
PRECANDIDATES, COUNTED, CANDIDATES = range(3)
# Tokens that are counted before the overlap that is still possible is compared again.
_STEP = 32
# Shorter arrays are sorted by insertion.
_FEW = 100


@njit(cache=True, forceinline=True)
def key_kernel(table: Int64s, key: Key, overlap: int, size: int, other: int) -> int:
    """Return the key of two sets, from the table if they are small.

    Parameters
    ----------
    table, key
        Keys of small sets, and of all sets (`state.Keys`).
    overlap, size, other : int
        Overlap and sizes of the sets.
    """
    if size < TABLE_SIZES and other < TABLE_SIZES:
        return int(table[(size * TABLE_SIZES + other) * TABLE_SIZES + overlap])
    return key(overlap, size, other)


@njit(cache=True, forceinline=True)
def sign_token_kernel(token: int) -> int:
    """Return the bit of a token in the signatures of sets: one of 64, by a multiplicative hash."""
    return int(np.int64(1) << np.int64((int(token) * 0x9E3779B1 & 0xFFFFFFFF) >> 26))


@njit(cache=True)
def sign_tokens_kernel(tokens: Int32s, bits: Int64s) -> None:
    """Write the bit of each token."""
    for place in range(len(tokens)):
        bits[place] = sign_token_kernel(tokens[place])


@njit(cache=True, forceinline=True)
def count_bits_kernel(value: int) -> int:
    """Return the number of ones of a 64-bit number."""
    # Compilers replace this by one instruction.
    bits = np.uint64(np.int64(value))
    bits = bits - ((bits >> np.uint64(1)) & np.uint64(0x5555555555555555))
    bits = (bits & np.uint64(0x3333333333333333)) + (
        (bits >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((bits * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(cache=True, forceinline=True)
def count_overlap_kernel(
    tokens: Int32s, token_mark: Int32s, begin: int, size: int, marked: int, needed: int
) -> int:
    """Count the marked tokens of a set, until it is certain that they are fewer than needed.

    Parameters
    ----------
    tokens, token_mark
        Tokens of the sets, and the mark of each token (`state.Sets`).
    begin, size : int
        Position and number of the set's tokens.
    marked : int
        Mark of the other set's tokens.
    needed : int
        Overlap needed; 0: all tokens are counted.

    Returns
    -------
    int
        The overlap, or a number less than `needed`.
    """
    mask = np.uint64(len(tokens) - 1)
    overlap, place, end = 0, begin, begin + size
    while place < end and overlap + (end - place) >= needed:
        stop = min(place + _STEP, end)
        while place < stop:
            overlap += token_mark[tokens[np.uint64(place) & mask]] == marked
            place += 1
    return overlap


@njit(cache=True, forceinline=True)
def bound_overlap_kernel(rows: Int64s, row: Row, met: Row, rest: int) -> int:
    """Return an upper bound of the overlap of two sets.

    Parameters
    ----------
    rows : int64[c, 4]
        The sets.
    row, met : int
        Rows of the sets.
    rest : int
        Number of tokens of the first set that the second may contain.
    """
    # Each bit that only the first set has is the bit of a token that the second set lacks.
    lacking = count_bits_kernel(rows[row, SIGNATURE] & ~rows[met, SIGNATURE])
    size, other = rows[row, PLACE] & SIZE_MASK, rows[met, PLACE] & SIZE_MASK
    return int(min(rest, other, size - lacking))


@njit(cache=True, forceinline=True)
def mark_tokens_kernel(token_mark: Int32s, order: Int32s, size: int, number: int) -> None:
    """Mark the tokens of a set with its number."""
    for place in range(size):
        token_mark[order[place]] = number


@njit(cache=True)
def order_tokens_kernel(
    lists: Int32s,
    tokens: Int32s,
    start: int,
    size: int,
    sides: int,
    other_side: int,
    shortest: bool,  # noqa: FBT001 - numba takes no keyword-only arguments
    order: Int32s,
    weight: Int32s,
) -> None:
    """Order a set's tokens: shortest list first, or newest token first.

    Parameters
    ----------
    lists : int32[lists, 4]
        The inverted lists.
    tokens : int32[c]
        Tokens of the sets; c is a power of two, and positions are modulo c.
    start, size : int
        Position and number of the set's tokens.
    sides, other_side : int
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
        weight[place] = lists[sides * token + other_side, SIZE] if shortest else -token
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


@njit(cache=True, forceinline=True)
def _find_overlap_kernel(key: Key, size: int, other: int, possible: int, needed: int) -> int:
    """Return the smallest overlap that reaches a key; 0 for small sets, which are counted wholly.

    Parameters
    ----------
    key : callable
        `Similarity.key`.
    size, other : int
        Sizes of the sets.
    possible, needed : int
        An overlap that reaches the key, and the key.
    """
    if other < TABLE_SIZES:
        return 0
    low, high = 1, possible
    while low < high:
        middle = (low + high) >> 1
        if key(middle, size, other) >= needed:
            high = middle
        else:
            low = middle + 1
    return low


@njit(cache=True)
def find_candidates_kernel(
    lists: Int32s,
    numbers: Int32s,
    tokens: Int32s,
    rows: Int64s,
    token_mark: Int32s,
    order: Int32s,
    table: Int64s,
    key: Key,
    s_key: Int64s,
    s_older: Int32s,
    s_end: Int32s,
    e_end: Int32s,
    n: int,
    k: int,
    time_first: Int32s,
    time_last: Int32s,
    minimum_key: int,
    first: int,
    new: int,
    sides: int,
    other_side: int,
    pair_key: Int64s,
    pair_older: Int32s,
    pair_end: Int32s,
    done: Int64s,
) -> int:
    """Find the candidates of a new set.

    Parameters
    ----------
    lists, numbers
        The inverted lists.
    tokens, rows, token_mark
        The sets, with the new one (`state.Sets`).
    order : int32[size]
        The new set's tokens in the order in which their lists are read.
    table, key
        Keys of small sets, and of all sets (`state.Keys`).
    s_key, s_older, s_end, e_end, n
        Columns and size of the minimal stock: key, older set and end of S, end of E.
    k : int
        Length of the list.
    time_first, time_last
        First and last sets of times (`state.Sets`).
    minimum_key : int
        Minimum key of a pair.
    first, new : int
        Numbers of the oldest valid set and of the new set.
    sides, other_side : int
        Number of streams, 1 or 2, and the stream of the other sets.
    pair_key, pair_older, pair_end : int64[c], int32[c], int32[c]
        Output: the candidates, in no order.
    done : int64[3]
        Counters, increased.

    Returns
    -------
    int
        Number of candidates.
    """
    mask = np.uint64(len(rows) - 1)
    row = np.uint64(new) & mask
    size = rows[row, PLACE] & SIZE_MASK
    mark_tokens_kernel(token_mark, order, size, new)
    found, met, counted, rank = 0, 0, 0, 0
    for place in range(size):
        rest = size - place
        bound = key_kernel(table, key, rest, size, rest)
        if bound < minimum_key:
            break
        oldest, rank = find_oldest_kernel(
            s_key, s_older, s_end, e_end, n, k, time_last, bound, first, rank
        )
        it = sides * order[place] + other_side
        start = lists[it, START] + lists[it, FRONT]
        for at in range(start + lists[it, SIZE] - 1, start - 1, -1):
            older = numbers[np.uint64(at)]
            if older < oldest:
                break
            old = np.uint64(older) & mask
            if rows[old, MET_BY] == new:
                continue
            rows[old, MET_BY] = new
            met += 1
            begin, other = rows[old, PLACE] >> SIZE_BITS, rows[old, PLACE] & SIZE_MASK
            possible = bound_overlap_kernel(rows, row, old, rest)
            best = key_kernel(table, key, possible, size, other)
            if best < rows[old, BAR]:
                continue
            # The k-th pair that ends no earlier precedes a new pair with the same key, unless its
            # older set is an earlier one of the same time.
            end = time_first[old]
            bar = k - 1 + count_ends_before_kernel(e_end, n, end)
            needed = max(rows[old, BAR], s_key[bar] + (s_older[bar] >= older) if bar < n else 0)
            rows[old, BAR] = needed
            if best < needed:
                continue
            counted += 1
            fewest = _find_overlap_kernel(key, size, other, possible, needed)
            overlap = count_overlap_kernel(tokens, token_mark, begin, other, new, fewest)
            reached = key_kernel(table, key, overlap, size, other) if overlap >= fewest else -1
            if reached >= needed:
                pair_key[found], pair_older[found], pair_end[found] = reached, older, end
                found += 1
    done[PRECANDIDATES] += met
    done[COUNTED] += counted
    done[CANDIDATES] += found
    return found


@njit(cache=True)
def sort_candidates_kernel(candidates: Candidates, m: int) -> None:
    """Sort candidates in the order of pairs, and number them in the order of ends.

    Parameters
    ----------
    candidates : Candidates
        The candidates; `key`, `older` and `end` are sorted in place, `by_end` is written.
    m : int
        Number of candidates.
    """
    pair_key, pair_older, pair_end, by_end = candidates
    if m > _FEW:
        order = np.argsort(-pair_older[:m], kind="mergesort")
        order = order[np.argsort(-pair_key[:m][order], kind="mergesort")]
        pair_key[:m] = pair_key[:m][order]
        pair_older[:m] = pair_older[:m][order]
        pair_end[:m] = pair_end[:m][order]
        # Pairs that end together are in the reverse of the order of pairs.
        by_end[:m] = m - 1 - np.argsort(pair_end[:m][::-1], kind="mergesort")
        return
    for place in range(1, m):
        key, older, end = pair_key[place], pair_older[place], pair_end[place]
        at = place
        while at > 0 and (
            pair_key[at - 1] < key or (pair_key[at - 1] == key and pair_older[at - 1] < older)
        ):
            pair_key[at], pair_older[at] = pair_key[at - 1], pair_older[at - 1]
            pair_end[at] = pair_end[at - 1]
            at -= 1
        pair_key[at], pair_older[at], pair_end[at] = key, older, end
    for place in range(m):
        end = pair_end[place]
        at = place
        while at > 0 and pair_end[by_end[at - 1]] >= end:
            by_end[at] = by_end[at - 1]
            at -= 1
        by_end[at] = place
