"""Changes of the list between two moments.

Problem. The list is the first k pairs of the stock. Find the pairs that entered and left it since
the changes were logged last.

Algorithm. Both lists are in the order of pairs, so one merge finds the differences, from the rank
of the first change on. Every change has a cause: a pair leaves because its older set expired, or
because better pairs of new sets entered; it enters because its newer set is new, or in the place
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
    Int64s,
    Log,
)
from correlation.topk.join.stock import PairColumns, StockColumns, precedes_kernel

# Reasons of a change.
SET, EXPIRY = range(2)


@njit(cache=True)
def log_changes_kernel(
    now: StockColumns, top: PairColumns, log: Log, totals: Int64s, k: int, rank: int, time_us: int
) -> None:
    """Log the changes of the list since the last call, and remember the new list.

    Parameters
    ----------
    now : StockColumns
        The stock in the order of pairs.
    top : PairColumns
        The list of the last call, which is replaced.
    log : Log
        The log, with room for the changes.
    totals : int64[8]
        Scalars of the join. Sets from totals[SEEN] on took effect after the last call; the changes
        are of the event totals[EVENTS].
    k : int
        Maximum length of the list.
    rank : int
        Rank in the stock before which nothing changed.
    time_us : int
        Time of the event, in µs.
    """
    key, older, newer, _ = now
    top_key, top_older, top_newer = top
    log_event, log_time_us, log_reason, log_entered, (log_key, log_older, log_newer) = log
    old_size, size, logged = totals[TOP_SIZE], min(totals[STOCK_SIZE], k), totals[LOG_SIZE]
    begin = min(rank, old_size, size)
    at, new = begin, begin
    while at < old_size or new < size:
        if new == size or (
            at < old_size
            and precedes_kernel(
                top_key[at], top_older[at], top_newer[at], key[new], older[new], newer[new]
            )
        ):
            log_entered[logged] = False
            log_reason[logged] = EXPIRY if top_older[at] < totals[FIRST] else SET
            log_key[logged], log_older[logged] = top_key[at], top_older[at]
            log_newer[logged] = top_newer[at]
            at += 1
            logged += 1
        elif at == old_size or older[new] != top_older[at] or newer[new] != top_newer[at]:
            log_entered[logged] = True
            log_reason[logged] = SET if newer[new] >= totals[SEEN] else EXPIRY
            log_key[logged], log_older[logged] = key[new], older[new]
            log_newer[logged] = newer[new]
            new += 1
            logged += 1
        else:
            at += 1
            new += 1
    log_event[totals[LOG_SIZE] : logged] = totals[EVENTS]
    log_time_us[totals[LOG_SIZE] : logged] = time_us
    for place in range(begin, size):
        top_key[place], top_older[place] = key[place], older[place]
        top_newer[place] = newer[place]
    totals[TOP_SIZE], totals[LOG_SIZE] = size, logged
