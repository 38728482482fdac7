"""The kernel that evaluates a block of sets: expiry and insertion in order of time.

Algorithm (SWOOP, operations `advance` and `insert`). Before a set is inserted, older sets expire in
order of time: their numbers leave the inverted lists, their pairs leave the stock. Then the search
finds the set's candidates, and the stock takes them in. When an array is full the kernel returns,
the array grows, and the kernel goes on.

References. Mann, Augsten & Jensen, "SWOOP: Top-k Similarity Joins over Set Streams", 2017.
Cost. See `search`, `stock` and `changes`.
"""

from __future__ import annotations

from numba import njit

from correlation.topk.join.changes import log_changes_kernel
from correlation.topk.join.lists import (
    SIZES,
    append_number_kernel,
    count_new_room_kernel,
    remove_first_kernel,
)
from correlation.topk.join.search import (
    BAR,
    MET_BY,
    PLACE,
    SIGNATURE,
    SIZE_BITS,
    find_candidates_kernel,
    order_tokens_kernel,
    sign_token_kernel,
    sort_candidates_kernel,
)
from correlation.topk.join.state import (
    DONE,
    EVENTS,
    FIRST,
    LOG,
    LOG_SIZE,
    NEXT,
    NUMBERS,
    SEEN,
    SETS,
    STOCK,
    STOCK_SIZE,
    TOKENS,
    TOKENS_END,
    TOP_SIZE,
    Block,
    Shape,
    State,
)
from correlation.topk.join.stock import expire_pairs_kernel, insert_pairs_kernel


@njit(cache=True)
def evaluate_block_kernel(
    state: State, shape: Shape, block: Block, begin: int, until_us: int
) -> tuple[int, int, int]:
    """Insert the sets of a block, then expire the sets that are not valid at a time.

    Parameters
    ----------
    state : State
        The arrays of the join.
    shape : Shape
        What the join computes.
    block : Block
        Sets in their order, none without tokens.
    begin : int
        Position of the first set that is not inserted yet.
    until_us : int
        Time up to which sets expire after the last insertion, in µs.

    Returns
    -------
    at, wanted, room : int
        Position of the next set, what needs more room (DONE: nothing), and how much.
    """
    rows, time_us, side_of, tokens, token_mark = state.sets
    lists, numbers, stacks = state.lists
    (
        s_key,
        s_older,
        s_younger,
        end_key,
        end_older,
        end_younger,
        spare_key,
        spare_older,
        spare_younger,
        spare_end_key,
        spare_end_older,
        spare_end_younger,
    ) = state.stock
    order, weight, pair_key, pair_older, by_end, work = state.candidates
    top_key, top_older, top_younger = state.top
    (
        log_event,
        log_time_us,
        log_reason,
        log_entered,
        log_key,
        log_older,
        log_younger,
    ) = state.log
    totals = state.totals
    k, window_us, minimum_key, sides, shortest, every, table, key = shape
    row_mask, token_mask = len(rows) - 1, len(tokens) - 1
    first, new, n, tokens_end = totals[FIRST], totals[NEXT], totals[STOCK_SIZE], totals[TOKENS_END]
    at, count = begin, len(block.time_us)
    wanted, room = DONE, 0
    while at <= count:
        now_us = block.time_us[at] if at < count else until_us
        while first < new and time_us[first & row_mask] < now_us - window_us:
            if every and totals[LOG_SIZE] + 2 * k > len(log_key):
                wanted, room = LOG, totals[LOG_SIZE] + 2 * k
                break
            expired_us = time_us[first & row_mask]
            while first < new and time_us[first & row_mask] == expired_us:
                row = first & row_mask
                place = rows[row, PLACE] >> SIZE_BITS
                size = rows[row, PLACE] & ((1 << SIZE_BITS) - 1)
                for position in range(place, place + size):
                    it = sides * tokens[position & token_mask] + side_of[row]
                    remove_first_kernel(lists, numbers, stacks, it)
                first += 1
            n, rank = expire_pairs_kernel(
                s_key, s_older, s_younger, end_key, end_older, end_younger, n, first
            )
            totals[EVENTS] += 1
            if every and rank < k:
                listed = min(n, k)
                totals[LOG_SIZE] = log_changes_kernel(
                    s_key, s_older, s_younger, listed,
                    top_key, top_older, top_younger, totals[TOP_SIZE],
                    min(rank, listed, totals[TOP_SIZE]), first, new, totals[EVENTS],
                    expired_us + window_us,
                    log_event, log_time_us, log_reason, log_entered,
                    log_key, log_older, log_younger, totals[LOG_SIZE],
                )  # fmt: skip
                totals[TOP_SIZE] = listed
                totals[SEEN] = new
        if wanted != DONE or at == count:
            break
        size = block.offsets[at + 1] - block.offsets[at]
        side = block.side[at]
        if new - first == len(rows):
            wanted, room = SETS, 2 * len(rows)
            break
        if first < new and tokens_end + size - (rows[first & row_mask, PLACE] >> SIZE_BITS) > len(
            tokens
        ):
            wanted, room = TOKENS, 2 * len(tokens) + size
            break
        if n + new - first > len(s_key):
            wanted, room = STOCK, max(2 * len(s_key), n + new - first)
            break
        if every and totals[LOG_SIZE] + 2 * k > len(log_key):
            wanted, room = LOG, totals[LOG_SIZE] + 2 * k
            break
        signature = 0
        for place in range(size):
            token = block.tokens[block.offsets[at] + place]
            tokens[(tokens_end + place) & token_mask] = token
            signature |= sign_token_kernel(token)
        needed = stacks[SIZES] + count_new_room_kernel(lists, tokens, tokens_end, size, sides, side)
        if needed > len(numbers):
            wanted, room = NUMBERS, max(2 * len(numbers), needed)
            break
        row = new & row_mask
        time_us[row], side_of[row] = now_us, side
        rows[row, PLACE] = (tokens_end << SIZE_BITS) | size
        rows[row, MET_BY] = -1
        rows[row, BAR] = minimum_key
        rows[row, SIGNATURE] = signature
        other = sides - 1 - side
        order_tokens_kernel(lists, tokens, tokens_end, size, sides, other, shortest, order, weight)
        found = find_candidates_kernel(
            lists, numbers, tokens, rows, token_mark, order, table, key,
            s_key, s_older, end_older, n, k, minimum_key, first, new, sides, other,
            pair_key, pair_older, work,
        )  # fmt: skip
        totals[EVENTS] += 1
        if found > 0:
            sort_candidates_kernel(pair_key, pair_older, by_end, found)
            n, rank = insert_pairs_kernel(
                s_key, s_older, s_younger, end_key, end_older, end_younger,
                spare_key, spare_older, spare_younger,
                spare_end_key, spare_end_older, spare_end_younger,
                n, k, pair_key, pair_older, by_end, found, new,
            )  # fmt: skip
            if every and rank < k:
                listed = min(n, k)
                totals[LOG_SIZE] = log_changes_kernel(
                    s_key, s_older, s_younger, listed,
                    top_key, top_older, top_younger, totals[TOP_SIZE],
                    min(rank, listed, totals[TOP_SIZE]), first, new, totals[EVENTS], now_us,
                    log_event, log_time_us, log_reason, log_entered,
                    log_key, log_older, log_younger, totals[LOG_SIZE],
                )  # fmt: skip
                totals[TOP_SIZE] = listed
                totals[SEEN] = new + 1
        for position in range(tokens_end, tokens_end + size):
            it = sides * tokens[position & token_mask] + side
            append_number_kernel(lists, numbers, stacks, it, new)
        tokens_end += size
        new += 1
        at += 1
    totals[FIRST], totals[NEXT], totals[STOCK_SIZE], totals[TOKENS_END] = first, new, n, tokens_end
    return at, wanted, room
