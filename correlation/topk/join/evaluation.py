"""The kernel that evaluates a block of sets: expiry and insertion in order of time.

Algorithm (SWOOP, operations `advance` and `insert`). Before a set is inserted, older sets expire in
order of time: their numbers leave the inverted lists, their pairs leave the stock. Then the search
finds the set's candidates, and they are inserted into the stock. When an array is full the kernel
returns, the array grows, and the kernel goes on.

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
    Shape,
    State,
)
from correlation.topk.join.stock import expire_pairs_kernel


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
        Position of the next set, the array that is full (DONE: none), and the room needed.
    """
    at, count = begin, len(block.time_us)
    while True:
        now_us = block.time_us[at] if at < count else until_us
        wanted, room = _expire_sets_kernel(state, shape, now_us)
        if wanted == DONE and at < count:
            wanted, room = _find_room_kernel(state, shape, block, at)
        if wanted != DONE or at == count:
            return at, wanted, room
        _insert_set_kernel(state, shape, block, at)
        at += 1


@njit(cache=True, forceinline=True)
def _find_log_room_kernel(state: State, shape: Shape) -> int:
    """Return the room that the log needs for the changes of an event; 0: it has it."""
    room = state.totals[LOG_SIZE] + 2 * shape.k
    return int(room) if shape.every and room > len(state.log.event) else 0


@njit(cache=True, forceinline=True)
def _expire_sets_kernel(state: State, shape: Shape, now_us: int) -> tuple[int, int]:
    """Expire the sets that are not valid at a time; return the array that is full, and room."""
    totals, time_us = state.totals, state.sets.time_us
    rows, side, tokens = state.sets.rows, state.sets.side, state.sets.tokens
    lists, numbers, stacks = state.lists
    row_mask, token_mask = len(rows) - 1, len(tokens) - 1
    first, new = totals[FIRST], totals[NEXT]
    while first < new and time_us[first & row_mask] < now_us - shape.window_us:
        room = _find_log_room_kernel(state, shape)
        if room > 0:
            return LOG, room
        expired_us = time_us[first & row_mask]
        while first < new and time_us[first & row_mask] == expired_us:
            row = first & row_mask
            place = rows[row, PLACE] >> SIZE_BITS
            for position in range(place, place + (rows[row, PLACE] & SIZE_MASK)):
                it = shape.sides * tokens[position & token_mask] + side[row]
                remove_first_kernel(lists, numbers, stacks, it)
            first += 1
        size, rank = expire_pairs_kernel(state.stock, totals[STOCK_SIZE], first)
        totals[FIRST], totals[STOCK_SIZE] = first, size
        _end_event_kernel(state, shape, rank, expired_us + shape.window_us)
    return DONE, 0


@njit(cache=True, forceinline=True)
def _find_room_kernel(state: State, shape: Shape, block: Block, at: int) -> tuple[int, int]:
    """Return an array that is full, before a set is inserted, and the room needed."""
    totals, rows = state.totals, state.sets.rows
    first, new, end = totals[FIRST], totals[NEXT], totals[TOKENS_END]
    size = block.offsets[at + 1] - block.offsets[at]
    if new - first == len(rows):
        return SETS, 2 * len(rows)
    begin = rows[first & (len(rows) - 1), PLACE] >> SIZE_BITS if first < new else end
    if end + size - begin > len(state.sets.tokens):
        return TOKENS, 2 * len(state.sets.tokens) + size
    # Every valid set may be a candidate.
    pairs = totals[STOCK_SIZE] + new - first
    if pairs > len(state.stock.pairs.key):
        return STOCK, max(2 * len(state.stock.pairs.key), pairs)
    lists, numbers, stacks = state.lists
    needed = stacks[SIZES] + count_new_room_kernel(
        lists, block.tokens, block.offsets[at], size, shape.sides, block.side[at]
    )
    if needed > len(numbers):
        return NUMBERS, max(2 * len(numbers), needed)
    room = _find_log_room_kernel(state, shape)
    return (LOG, room) if room > 0 else (DONE, 0)


@njit(cache=True, forceinline=True)
def _insert_set_kernel(state: State, shape: Shape, block: Block, at: int) -> None:
    """Insert a set of a block; all arrays have room."""
    totals, sets, work = state.totals, state.sets, state.work
    begin, side, new = block.offsets[at], block.side[at], totals[NEXT]
    place, size = totals[TOKENS_END], block.offsets[at + 1] - block.offsets[at]
    token_mask = len(sets.tokens) - 1
    signature = 0
    for step in range(size):
        token = block.tokens[begin + step]
        sets.tokens[(place + step) & token_mask] = token
        signature |= sign_token_kernel(token)
    row = new & (len(sets.rows) - 1)
    sets.time_us[row], sets.side[row] = block.time_us[at], side
    sets.rows[row, PLACE], sets.rows[row, SIGNATURE] = (place << SIZE_BITS) | size, signature
    sets.rows[row, MET_BY], sets.rows[row, BAR] = -1, shape.minimum_key
    other_side = shape.sides - 1 - side
    order_tokens_kernel(
        state.lists, shape, sets.tokens, place, size, other_side, work.order, work.weight
    )
    found = find_candidates_kernel(state, shape, new, size, other_side)
    rank = totals[STOCK_SIZE]
    if found > 0:
        sort_candidates_kernel(state.candidates, found)
        totals[STOCK_SIZE], rank = insert_pairs_kernel(
            state.stock, totals[STOCK_SIZE], shape.k, state.candidates, found, new
        )
    totals[TOKENS_END], totals[NEXT] = place + size, new + 1
    _end_event_kernel(state, shape, rank, block.time_us[at])
    lists, numbers, stacks = state.lists
    for step in range(size):
        it = shape.sides * block.tokens[begin + step] + side
        append_number_kernel(lists, numbers, stacks, it, new)


@njit(cache=True, forceinline=True)
def _end_event_kernel(state: State, shape: Shape, rank: int, time_us: int) -> None:
    """Count an event, and log its changes if the changes of every event are wanted.

    Parameters
    ----------
    state, shape
        The arrays of the join, and what it computes.
    rank : int
        Rank in the stock of the first change.
    time_us : int
        Time of the event, in µs.
    """
    state.totals[EVENTS] += 1
    if shape.every:
        if rank < shape.k:
            log_changes_kernel(state, shape.k, rank, time_us)
        state.totals[SEEN] = state.totals[NEXT]
