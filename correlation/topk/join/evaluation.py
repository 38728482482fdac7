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
def evaluate_block_kernel(
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
    for at in range(begin, len(block.time_us)):
        wanted, room = _begin_set_kernel(state, shape, block, at)
        if wanted != DONE:
            return at, wanted, room
        found = find_candidates_kernel(state, shape, keys)
        _end_set_kernel(state, shape, block, at, found)
    wanted, room = _expire_sets_kernel(state, shape, until_us)
    return len(block.time_us), wanted, room


@njit(cache=True)
def _begin_set_kernel(state: State, shape: Shape, block: Block, at: int) -> tuple[int, int]:
    """Expire older sets, and write the tokens and the row of a new set.

    Parameters
    ----------
    state, shape
        The arrays of the join, and what it computes.
    block, at
        Block and position of the set.

    Returns
    -------
    wanted, room : int
        The array that is full (DONE: none), and the room needed.
    """
    wanted, room = _expire_sets_kernel(state, shape, block.time_us[at])
    if wanted == DONE:
        wanted, room = _find_room_kernel(state, shape, block, at)
    if wanted != DONE:
        return wanted, room
    rows, times_us, sides, tokens, _ = state.sets
    added, begin, end = block.tokens, block.offsets[at], block.offsets[at + 1]
    place, mask, signature = state.totals[TOKENS_END], len(tokens) - 1, 0
    for step in range(end - begin):
        token = added[begin + step]
        tokens[(place + step) & mask] = token
        signature |= sign_token_kernel(token)
    row = state.totals[NEXT] & (len(rows) - 1)
    times_us[row], sides[row] = block.time_us[at], block.side[at]
    rows[row, PLACE], rows[row, SIGNATURE] = (place << SIZE_BITS) | (end - begin), signature
    rows[row, MET_BY], rows[row, BAR] = -1, shape.minimum_key
    return DONE, 0


@njit(cache=True)
def _end_set_kernel(state: State, shape: Shape, block: Block, at: int, found: int) -> None:
    """Insert the pairs of a new set, and append the set to the lists of its tokens.

    Parameters
    ----------
    state, shape
        The arrays of the join, and what it computes.
    block, at
        Block and position of the set.
    found : int
        Number of candidates.
    """
    totals, new, rank = state.totals, state.totals[NEXT], state.totals[STOCK_SIZE]
    if found > 0:
        sort_candidates_kernel(state.candidates, found)
        totals[STOCK_SIZE], rank = insert_pairs_kernel(
            state.stock, totals[STOCK_SIZE], shape.k, state.candidates, found, new
        )
    lists, numbers, stacks = state.lists
    added, begin, end, side = block.tokens, block.offsets[at], block.offsets[at + 1], block.side[at]
    for step in range(begin, end):
        append_number_kernel(lists, numbers, stacks, shape.sides * added[step] + side, new)
    totals[TOKENS_END] += end - begin
    totals[NEXT] = new + 1
    _end_event_kernel(state, shape, rank, block.time_us[at])


@njit(cache=True, forceinline=True)
def _find_log_room_kernel(state: State, shape: Shape) -> int:
    """Return the room that the log needs for the changes of an event; 0: it has it."""
    room = state.totals[LOG_SIZE] + 2 * shape.k
    return int(room) if shape.every and room > len(state.log.event) else 0


@njit(cache=True)
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


@njit(cache=True)
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
            log_changes_kernel(
                state.stock.pairs, state.top, state.log, state.totals, shape.k, rank, time_us
            )
        state.totals[SEEN] = state.totals[NEXT]
