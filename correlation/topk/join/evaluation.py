"""The kernel that evaluates a block of sets: expiry and insertion in order of time.

Algorithm (SWOOP, operations `advance` and `insert`). Before a set is inserted, older sets expire in
order of time: their numbers leave the inverted lists, their pairs leave the stock. Then the search
finds the set's candidates, and they are inserted into the stock. When an array is full the kernel
returns, the array grows, and the kernel goes on. `evaluate_block_kernel` has the place of
Algorithms 1 and 2, with Algorithm 4 for the candidates and Algorithm 6 for the stock.

References. Mann, Augsten & Jensen, "SWOOP: Top-k Similarity Joins over Set Streams", 2017.
Cost. See `search`, `insertion` and `changes`.
"""

from __future__ import annotations

from numba import njit

from correlation.topk.join.changes import log_changes_kernel
from correlation.topk.join.insertion import insert_pairs_kernel
from correlation.topk.join.lists import (
    SIZES,
    append_number_kernel,
    count_new_room_kernel,
    remove_first_kernel,
)
from correlation.topk.join.search import (
    find_candidates_kernel,
    order_tokens_kernel,
    sign_token_kernel,
    sort_candidates_kernel,
)
from correlation.topk.join.state import (
    BAR,
    DONE,
    EVENTS,
    FIRST,
    LOG,
    LOG_SIZE,
    MET_BY,
    NEXT,
    NUMBERS,
    PLACE,
    SEEN,
    SETS,
    SIGNATURE,
    SIZE_BITS,
    SIZE_MASK,
    STOCK,
    STOCK_SIZE,
    TOKENS,
    TOKENS_END,
    Block,
    Keys,
    Shape,
    State,
)
from correlation.topk.join.stock import expire_pairs_kernel


@njit(cache=True)
def evaluate_block_kernel(  # noqa: C901, PLR0912, PLR0915 - a call for each set counts references to all arrays that it passes
    state: State, shape: Shape, keys: Keys, block: Block, begin: int, until_us: int
) -> tuple[int, int, int]:
    """Insert the sets of a block, then expire the sets that are not valid at a time.

    Parameters
    ----------
    state : State
        The arrays of the join.
    shape, keys
        What the join computes, and the keys of its similarity.
    block : Block
        Sets in their order, none without tokens.
    begin : int
        Position of the first set that is not inserted yet.
    until_us : int
        Time up to which sets expire after the last insertion, in µs.

    Returns
    -------
    at, wanted, room : int
        Position of the next set, the array that is full (DONE: none), and the room needed.
    """
    rows, times_us, time_first, time_last, set_side, tokens, token_mark = state.sets
    lists, numbers, stacks = state.lists
    pair_key, pair_older, pair_end, _ = state.candidates
    order, weight, done = state.work
    s_key, s_older, _, s_end = state.stock.pairs
    e_end, totals = state.stock.ends.end, state.totals
    k, window_us, minimum_key, sides, shortest, every = shape
    table, key = keys
    row_mask, token_mask = len(rows) - 1, len(tokens) - 1
    at, count = begin, len(block.time_us)
    first, new, n, end = totals[FIRST], totals[NEXT], totals[STOCK_SIZE], totals[TOKENS_END]
    while True:
        # Older sets expire.
        now_us = block.time_us[at] if at < count else until_us
        while first < new and times_us[first & row_mask] < now_us - window_us:
            if every and totals[LOG_SIZE] + 2 * k > len(state.log.event):
                return at, LOG, totals[LOG_SIZE] + 2 * k
            expired_us = times_us[first & row_mask]
            while first < new and times_us[first & row_mask] == expired_us:
                row = first & row_mask
                place = rows[row, PLACE] >> SIZE_BITS
                for position in range(place, place + (rows[row, PLACE] & SIZE_MASK)):
                    it = sides * tokens[position & token_mask] + set_side[row]
                    remove_first_kernel(lists, numbers, stacks, it)
                first += 1
            n, rank = expire_pairs_kernel(state.stock, n, first)
            totals[FIRST], totals[STOCK_SIZE] = first, n
            totals[EVENTS] += 1
            if every:
                _log_event_kernel(state, k, rank, expired_us + window_us)
        if at == count:
            return at, DONE, 0
        # Every array has room for the set, or the kernel returns.
        start, side = block.offsets[at], block.side[at]
        size = block.offsets[at + 1] - start
        token_start = rows[first & row_mask, PLACE] >> SIZE_BITS if first < new else end
        needed = stacks[SIZES] + count_new_room_kernel(
            lists, block.tokens, start, size, sides, side
        )
        wanted, room = _find_room_kernel(
            new - first, len(rows), end + size - token_start, len(tokens),
            n + new - first, len(s_key), needed, len(numbers),
        )  # fmt: skip
        if every and totals[LOG_SIZE] + 2 * k > len(state.log.event):
            wanted, room = LOG, totals[LOG_SIZE] + 2 * k
        if wanted != DONE:
            return at, wanted, room
        # Tokens and row of the set.
        signature = 0
        for step in range(size):
            token = block.tokens[start + step]
            tokens[(end + step) & token_mask] = token
            signature |= sign_token_kernel(token)
        row = new & row_mask
        is_first = first == new or times_us[(new - 1) & row_mask] < now_us
        time_start = new if is_first else time_first[(new - 1) & row_mask]
        times_us[row], set_side[row], time_first[row] = now_us, side, time_start
        time_last[time_start & row_mask] = new
        rows[row, PLACE], rows[row, SIGNATURE] = (end << SIZE_BITS) | size, signature
        rows[row, MET_BY], rows[row, BAR] = -1, minimum_key
        # Pairs of the set.
        other_side = sides - 1 - side
        order_tokens_kernel(lists, tokens, end, size, sides, other_side, shortest, order, weight)
        found = find_candidates_kernel(
            lists, numbers, tokens, rows, token_mark, order, table, key, s_key, s_older, s_end,
            e_end, n, k, time_first, time_last, minimum_key, first, new, sides, other_side,
            pair_key, pair_older, pair_end, done,
        )  # fmt: skip
        rank = n
        if found > 0:
            sort_candidates_kernel(state.candidates, found)
            n, rank = insert_pairs_kernel(state.stock, n, k, state.candidates, found, new)
        # Inverted lists of its tokens.
        for step in range(size):
            it = sides * block.tokens[start + step] + side
            append_number_kernel(lists, numbers, stacks, it, new)
        end, new, at = end + size, new + 1, at + 1
        totals[NEXT], totals[STOCK_SIZE], totals[TOKENS_END] = new, n, end
        totals[EVENTS] += 1
        if every:
            _log_event_kernel(state, k, rank, now_us)


@njit(cache=True)
def _find_room_kernel(
    sets: int,
    set_room: int,
    tokens: int,
    token_room: int,
    pairs: int,
    pair_room: int,
    numbers: int,
    number_room: int,
) -> tuple[int, int]:
    """Return an array that is full before a set is inserted (DONE: none), and the room needed.

    Parameters
    ----------
    sets, set_room : int
        Number of valid sets, and room for sets.
    tokens, token_room : int
        Number of tokens with those of the new set, and room.
    pairs, pair_room : int
        Number of pairs if every valid set is a candidate, and room.
    numbers, number_room : int
        Number of elements of inverted lists after the insertion, and room.
    """
    if sets == set_room:
        return SETS, 2 * set_room
    if tokens > token_room:
        return TOKENS, 2 * token_room + tokens
    if pairs > pair_room:
        return STOCK, max(2 * pair_room, pairs)
    if numbers > number_room:
        return NUMBERS, max(2 * number_room, numbers)
    return DONE, 0


@njit(cache=True)
def _log_event_kernel(state: State, k: int, rank: int, time_us: int) -> None:
    """Log the changes of an event.

    Parameters
    ----------
    state : State
        The arrays of the join.
    k : int
        Length of the list.
    rank : int
        Rank in the stock of the first change.
    time_us : int
        Time of the event, in µs.
    """
    if rank < k:
        log_changes_kernel(state.stock.pairs, state.top, state.log, state.totals, k, rank, time_us)
    state.totals[SEEN] = state.totals[NEXT]
