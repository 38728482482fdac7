"""Bulk construction of the stock from the valid sets.

Problem. After a restart, or when a set comes late, the stock is built from all valid sets. It is a
function of the sets alone, so it need not be built by single insertions.

Algorithm. The sets are visited from the newest to the oldest. Pairs whose older sets have the same
time end together, and no later than the pairs found before. When all sets of this time are visited,
a pair of them is relevant iff fewer than k of all pairs found so far precede it: it is one of the k
best so far. Its key must exceed that of the k-th best pair of the sets visited before, which bounds
the search for all sets alike (docs/proofs.md, P-TOPK-REBUILD).

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
    bound_overlap_kernel,
    count_overlap_kernel,
    key_kernel,
    mark_tokens_kernel,
    order_tokens_kernel,
    sort_candidates_kernel,
)
from correlation.topk.join.state import (
    DONE,
    FIRST,
    MET_BY,
    NEXT,
    NUMBERS,
    PLACE,
    SIZE_BITS,
    SIZE_MASK,
    STOCK,
    STOCK_SIZE,
    Keys,
    Lists,
    Shape,
    State,
)
from correlation.topk.join.stock import Stock, StockColumns

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]


@njit(cache=True)
def rebuild_stock_kernel(state: State, shape: Shape, keys: Keys) -> tuple[int, int]:
    """Build inverted lists and stock from the sets.

    Parameters
    ----------
    state : State
        The arrays of the join. The sets and their numbers are read; lists and stock are replaced,
        and `top` is used as work space.
    shape, keys
        What the join computes, and the keys of its similarity.

    Returns
    -------
    wanted, room : int
        The array that is full (DONE: none), and the room needed before the construction can begin
        again.
    """
    rows, side_of, time_first = state.sets.rows, state.sets.side, state.sets.time_first
    totals = state.totals
    lists, numbers, stacks = state.lists
    candidates, pairs = state.candidates, state.stock.pairs
    # Keys of the k best pairs so far, descending, and their ends.
    best_key, best_end = state.top.key, state.top.older
    lists[:] = 0
    stacks[:SIZES] = -1
    stacks[SIZES] = 0
    # Numbers are used again.
    rows[:, MET_BY] = -1
    state.sets.token_mark[:] = -1
    # Size of the stock, and the part of it that is found: pairs of later times.
    n, found_before, best = 0, 0, 0
    for number in range(totals[NEXT] - 1, totals[FIRST] - 1, -1):
        row = number & (len(rows) - 1)
        place, size = rows[row, PLACE] >> SIZE_BITS, rows[row, PLACE] & SIZE_MASK
        side = side_of[row]
        tokens = state.sets.tokens[place : place + size]
        room = stacks[SIZES] + count_new_room_kernel(lists, tokens, 0, size, shape.sides, side)
        if room > len(numbers):
            return NUMBERS, max(2 * len(numbers), room)
        bar = shape.minimum_key
        if best == shape.k:
            bar = max(bar, best_key[best - 1] + 1)
        found = _find_pairs_kernel(state, shape, keys, number, bar)
        for step in range(size):
            it = shape.sides * tokens[step] + side
            append_number_kernel(lists, numbers, stacks, it, number)
        end = time_first[row]
        if found > 0:
            if n + found > len(pairs.key):
                return STOCK, max(2 * len(pairs.key), n + found)
            sort_candidates_kernel(candidates, found)
            kept, best = _merge_best_kernel(
                best_key, best_end, best, shape.k, candidates.key, end, found
            )
            for at in range(kept):
                pairs.key[n], pairs.older[n] = candidates.key[at], number
                pairs.newer[n], pairs.end[n] = -candidates.older[at], end
                n += 1
        if number == end:
            if n > found_before and state.sets.time_last[row] > end:
                n = _close_time_kernel(pairs, found_before, n, best_key[:best], best_end, end)
            found_before = n
    _turn_lists_kernel(state.lists)
    _sort_stock_kernel(state.stock, n)
    totals[STOCK_SIZE] = n
    return DONE, 0


@njit(cache=True)
def _find_pairs_kernel(state: State, shape: Shape, keys: Keys, number: int, bar: int) -> int:
    """Find the pairs of a set with newer sets whose keys are at least `bar`.

    Parameters
    ----------
    state, shape, keys
        As in `rebuild_stock_kernel`. Output: `candidates.key`, and in `candidates.older` the
        negative numbers of the newer sets: sorted in descending order, the earlier set is the
        first.
    number : int
        Number of the set.
    bar : int
        Minimum key.

    Returns
    -------
    int
        Number of pairs.
    """
    rows, order = state.sets.rows, state.work.order
    tokens, token_mark = state.sets.tokens, state.sets.token_mark
    lists, numbers, _ = state.lists
    pair_key, pair_older, _, _ = state.candidates
    table, key = keys
    row = number & (len(rows) - 1)
    place, size = rows[row, PLACE] >> SIZE_BITS, rows[row, PLACE] & SIZE_MASK
    sides, other_side = shape.sides, shape.sides - 1 - state.sets.side[row]
    weight, shortest = state.work.weight, shape.shortest
    order_tokens_kernel(lists, tokens, place, size, sides, other_side, shortest, order, weight)
    mark_tokens_kernel(token_mark, order, size, number)
    found = 0
    for at in range(size):
        rest = size - at
        if key_kernel(table, key, rest, size, rest) < bar:
            break
        it = sides * order[at] + other_side
        start = lists[it, START] + lists[it, FRONT]
        for position in range(start, start + lists[it, SIZE]):
            newer = numbers[position]
            met = newer & (len(rows) - 1)
            if rows[met, MET_BY] == number:
                continue
            rows[met, MET_BY] = number
            other = rows[met, PLACE] & SIZE_MASK
            possible = bound_overlap_kernel(rows, row, met, rest)
            if key_kernel(table, key, possible, size, other) < bar:
                continue
            begin = rows[met, PLACE] >> SIZE_BITS
            overlap = count_overlap_kernel(tokens, token_mark, begin, other, number, 0)
            reached = key_kernel(table, key, overlap, size, other)
            if reached >= bar:
                pair_key[found], pair_older[found] = reached, -newer
                found += 1
    return found


@njit(cache=True)
def _merge_best_kernel(
    best_key: Int64s, best_end: Int32s, best: int, k: int, pair_key: Int64s, end: int, found: int
) -> tuple[int, int]:
    """Merge keys in descending order into the k best; earlier keys precede equal new ones.

    Parameters
    ----------
    best_key, best_end : int64[k], int32[k]
        The keys so far, descending, and their ends.
    best, k : int
        Number of keys so far, and their maximum number.
    pair_key : int64[c]
        New keys, descending.
    end : int
        End of the new keys.
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
    # The merge runs from the last key to the first, so it overwrites only keys that have moved.
    old, new = min(best, k - kept) - 1, kept - 1
    total = old + 1 + kept
    for place in range(total - 1, -1, -1):
        if new < 0:
            break
        if old >= 0 and best_key[old] < pair_key[new]:
            best_key[place], best_end[place] = best_key[old], best_end[old]
            old -= 1
        else:
            best_key[place], best_end[place] = pair_key[new], end
            new -= 1
    return kept, total


@njit(cache=True)
def _close_time_kernel(
    pairs: StockColumns, begin: int, n: int, best_key: Int64s, best_end: Int32s, end: int
) -> int:
    """Remove the pairs of a time that others of this time precede, and sort the remaining ones.

    Parameters
    ----------
    pairs : StockColumns
        The pairs found so far; pairs of equal keys are in the order of pairs.
    begin, n : int
        Position of the first pair of the time, and number of pairs.
    best_key, best_end, end
        Keys of the k best pairs, descending, their ends, and the end of the pairs of this time.

    Returns
    -------
    int
        Number of pairs that are left.
    """
    kept = 0
    for place in range(len(best_key)):
        kept += best_end[place] == end
    order = begin + np.argsort(-pairs.key[begin:n], kind="mergesort")[:kept]
    pairs.key[begin : begin + kept] = pairs.key[order]
    pairs.older[begin : begin + kept] = pairs.older[order]
    pairs.newer[begin : begin + kept] = pairs.newer[order]
    return begin + kept


@njit(cache=True)
def _sort_stock_kernel(stock: Stock, n: int) -> None:
    """Write S and E from pairs in the reverse of the order of ends."""
    key, older, newer, end = stock.pairs
    for at in range(n):
        stock.ends.key[n - 1 - at] = key[at]
        stock.ends.older[n - 1 - at] = older[at]
        stock.ends.newer[n - 1 - at] = newer[at]
        stock.ends.end[n - 1 - at] = end[at]
    # Pairs of equal keys are in the order of pairs already, and the sort is stable.
    order = np.argsort(-key[:n], kind="mergesort")
    key[:n] = key[:n][order]
    older[:n] = older[:n][order]
    newer[:n] = newer[:n][order]
    end[:n] = end[:n][order]


@njit(cache=True)
def _turn_lists_kernel(lists: Lists) -> None:
    """Reverse every inverted list: the sets were appended from the newest to the oldest."""
    for it in range(len(lists.lists)):
        start = lists.lists[it, START] + lists.lists[it, FRONT]
        end = start + lists.lists[it, SIZE] - 1
        while start < end:
            lists.numbers[start], lists.numbers[end] = lists.numbers[end], lists.numbers[start]
            start += 1
            end -= 1
