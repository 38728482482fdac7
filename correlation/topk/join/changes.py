"""Changes of the list between two moments.

Problem. The list is the first k pairs of the stock. Find the pairs that entered and left it since
the changes were logged last.

Algorithm. Both lists are in the order of pairs, so one merge finds the differences, from the rank
of the first change on. Every change has a cause: a pair leaves because its older set expired, or
because better pairs of new sets entered; it enters because its younger set is new, or in the place
of expired pairs.

Cost. O(k - rank).
"""

from __future__ import annotations

from numba import njit

from correlation.topk.join.state import (
    EVENTS,
    FIRST,
    LOG_SIZE,
    SEEN,
    STOCK_SIZE,
    TOP_SIZE,
    Log,
    State,
)
from correlation.topk.join.stock import PairColumns, precedes_kernel

# Reasons of a change.
SET, EXPIRY = range(2)


@njit(cache=True)
def log_changes_kernel(state: State, k: int, rank: int, time_us: int) -> None:
    """Log the changes of the list since the last call, and remember the new list.

    Parameters
    ----------
    state : State
        The arrays of the join; the log has room for both lists. Sets from totals[SEEN] on took
        effect after the last call. The changes are of the event totals[EVENTS].
    k : int
        Maximum length of the list.
    rank : int
        Rank in the stock before which nothing changed.
    time_us : int
        Time of the event, in µs.
    """
    totals, log, now, top = state.totals, state.log, state.stock.pairs, state.top
    old_size, size, logged = totals[TOP_SIZE], min(totals[STOCK_SIZE], k), totals[LOG_SIZE]
    begin = min(rank, old_size, size)
    at, new = begin, begin
    while at < old_size or new < size:
        if new == size or (at < old_size and precedes_kernel(top, at, now, new)):
            is_expired = top.older[at] < totals[FIRST]
            _write_change_kernel(log, logged, top, at, False, EXPIRY if is_expired else SET)  # noqa: FBT003 - numba takes no keyword-only arguments
            at += 1
            logged += 1
        elif at == old_size or precedes_kernel(now, new, top, at):
            is_new = now.younger[new] >= totals[SEEN]
            _write_change_kernel(log, logged, now, new, True, SET if is_new else EXPIRY)  # noqa: FBT003 - as above
            new += 1
            logged += 1
        else:
            at += 1
            new += 1
    log.event[totals[LOG_SIZE] : logged] = totals[EVENTS]
    log.time_us[totals[LOG_SIZE] : logged] = time_us
    for place in range(begin, size):
        top.key[place], top.older[place] = now.key[place], now.older[place]
        top.younger[place] = now.younger[place]
    totals[TOP_SIZE], totals[LOG_SIZE] = size, logged


@njit(cache=True, forceinline=True)
def _write_change_kernel(
    log: Log,
    place: int,
    pairs: PairColumns,
    at: int,
    entered: bool,  # noqa: FBT001 - numba takes no keyword-only arguments
    reason: int,
) -> None:
    """Write a pair, whether it entered or left, and why, to the log."""
    log.entered[place], log.reason[place] = entered, reason
    log.pairs.key[place], log.pairs.older[place] = pairs.key[at], pairs.older[at]
    log.pairs.younger[place] = pairs.younger[at]
