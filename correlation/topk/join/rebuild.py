"""Bulk construction of the stock from the valid sets.

Problem. After a restart, or when a set comes late, the stock is built from all valid sets. It is a
function of the sets alone, so it need not be built by single insertions.

Algorithm. The sets are visited from the newest to the oldest. A pair whose older set is visited ends
no later than the pairs found before, so it is relevant iff fewer than k of all pairs found so far
precede it: it is one of the k best so far. Its key must therefore exceed that of the k-th best so
far, which bounds the search for all sets alike (docs/proofs.md, P-TOPK-REBUILD).

Cost. A search per set, with one bound that rises quickly; O(k) for a set with relevant pairs.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from correlation.topk.join.lists import (
    FRONT,
    SIZE,
    SIZES,
    START,
    append_number_kernel,
    count_new_room_kernel,
)
from correlation.topk.join.search import (
    MET_BY,
    PLACE,
    SIGNATURE,
    SIZE_BITS,
    count_bits_kernel,
    count_overlap_kernel,
    key_kernel,
    order_tokens_kernel,
    sort_candidates_kernel,
)
from correlation.topk.join.state import (
    DONE,
    FIRST,
    NEXT,
    NUMBERS,
    STOCK,
    STOCK_SIZE,
    Shape,
    State,
)

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]


@njit(cache=True)
def rebuild_stock_kernel(state: State, shape: Shape) -> tuple[int, int]:
    """Build inverted lists and stock from the sets.

    Parameters
    ----------
    state : State
        The arrays of the join; of these, sets and their numbers are read, the others are written.
    shape : Shape
        What the join computes.

    Returns
    -------
    wanted, room : int
        What needs more room before the construction can begin again (DONE: nothing), and how much.
    """
    rows, _, side_of, tokens, token_mark = state.sets
    lists, numbers, stacks = state.lists
    s_key, s_older, s_younger, end_key, end_older, end_younger = state.stock[:6]
    order, weight, pair_key, pair_other, by_end, _ = state.candidates
    # Keys of the k best pairs so far, descending.
    best_key = state.top[0]
    k, _, minimum_key, sides, shortest, _, table, key = shape
    first, new = state.totals[FIRST], state.totals[NEXT]
    row_mask, size_mask = len(rows) - 1, (1 << SIZE_BITS) - 1
    lists[:] = 0
    stacks[:SIZES] = -1
    stacks[SIZES] = 0
    rows[:, MET_BY] = -1
    token_mark[:] = -1
    n, best = 0, 0
    for number in range(new - 1, first - 1, -1):
        row = number & row_mask
        place, size = rows[row, PLACE] >> SIZE_BITS, rows[row, PLACE] & size_mask
        side = side_of[row]
        other_side = sides - 1 - side
        needed_room = stacks[SIZES] + count_new_room_kernel(lists, tokens, place, size, sides, side)
        if needed_room > len(numbers):
            return NUMBERS, max(2 * len(numbers), needed_room)
        order_tokens_kernel(lists, tokens, place, size, sides, other_side, shortest, order, weight)
        for at in range(size):
            token_mark[order[at]] = number
        found = 0
        for at in range(size):
            bar = max(minimum_key, best_key[k - 1] + 1) if best == k else minimum_key
            rest = size - at
            if key_kernel(table, key, rest, size, rest) < bar:
                break
            it = sides * order[at] + other_side
            start = lists[it, START] + lists[it, FRONT]
            for position in range(start, start + lists[it, SIZE]):
                younger = numbers[position]
                met = younger & row_mask
                if rows[met, MET_BY] == number:
                    continue
                rows[met, MET_BY] = number
                other = rows[met, PLACE] & size_mask
                lacking = count_bits_kernel(rows[row, SIGNATURE] & ~rows[met, SIGNATURE])
                possible = min(rest, other, size - lacking)
                if key_kernel(table, key, possible, size, other) < bar:
                    continue
                begin = rows[met, PLACE] >> SIZE_BITS
                overlap = count_overlap_kernel(tokens, token_mark, begin, other, number, 0)
                reached = key_kernel(table, key, overlap, size, other)
                if reached >= bar:
                    # Negative numbers: the earlier set first, when sorted by descending number.
                    pair_key[found], pair_other[found] = reached, -younger
                    found += 1
        for at in range(place, place + size):
            it = sides * tokens[at & (len(tokens) - 1)] + side
            append_number_kernel(lists, numbers, stacks, it, number)
        if found == 0:
            continue
        sort_candidates_kernel(pair_key, pair_other, by_end, found)
        if n + found > len(s_key):
            return STOCK, max(2 * len(s_key), n + found)
        kept, best = _merge_best_kernel(best_key, best, k, pair_key, found)
        for at in range(kept):
            s_key[n], s_older[n], s_younger[n] = pair_key[at], number, -pair_other[at]
            n += 1
    _turn_lists_kernel(lists, numbers)
    # The pairs were found in the reverse of the order of ends.
    for at in range(n):
        end_key[n - 1 - at] = s_key[at]
        end_older[n - 1 - at] = s_older[at]
        end_younger[n - 1 - at] = s_younger[at]
    by_key = np.argsort(-s_key[:n], kind="mergesort")
    s_key[:n] = s_key[:n][by_key]
    s_older[:n] = s_older[:n][by_key]
    s_younger[:n] = s_younger[:n][by_key]
    rows[:, MET_BY] = -1
    token_mark[:] = -1
    state.totals[STOCK_SIZE] = n
    return DONE, 0


@njit(cache=True)
def _merge_best_kernel(
    best_key: Int64s, best: int, k: int, pair_key: Int64s, found: int
) -> tuple[int, int]:
    """Merge keys in descending order into the k best; earlier keys precede equal new ones.

    Parameters
    ----------
    best_key : int64[k]
        The keys so far, descending.
    best, k : int
        Number of keys so far, and their maximum number.
    pair_key : int64[c]
        New keys, descending.
    found : int
        Number of new keys.

    Returns
    -------
    kept, best : int
        Number of new keys that are among the k best now, and number of keys.
    """
    at, kept = 0, 0
    while at + kept < k and kept < found:
        if at < best and best_key[at] >= pair_key[kept]:
            at += 1
        else:
            kept += 1
    # The first `at` keys precede all new ones that are kept but the last; the others move back.
    old, new = min(best, k - kept) - 1, kept - 1
    total = old + 1 + kept
    for place in range(total - 1, -1, -1):
        if new < 0:
            break
        if old >= 0 and best_key[old] < pair_key[new]:
            best_key[place] = best_key[old]
            old -= 1
        else:
            best_key[place] = pair_key[new]
            new -= 1
    return kept, total


@njit(cache=True)
def _turn_lists_kernel(lists: Int32s, numbers: Int32s) -> None:
    """Reverse every inverted list."""
    for it in range(len(lists)):
        start = lists[it, START] + lists[it, FRONT]
        end = start + lists[it, SIZE] - 1
        while start < end:
            numbers[start], numbers[end] = numbers[end], numbers[start]
            start += 1
            end -= 1
