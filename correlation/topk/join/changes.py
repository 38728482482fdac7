"""Changes of the list between two moments.

Problem. The list is the first k pairs of the stock. Find the pairs that entered and left it since
the changes were logged last.

Algorithm. Both lists are in the order of pairs, so one merge finds the differences, from the rank of
the first change on. Every change has a cause: a pair leaves because its older set expired, or
because better pairs of new sets entered; it enters because its younger set is new, or in the place
of expired pairs.

Cost. O(k - rank).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from correlation.topk.join.stock import precedes_kernel

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]

# Reasons of a change.
SET, EXPIRY = range(2)


@njit(cache=True)
def log_changes_kernel(
    s_key: Int64s,
    s_older: Int32s,
    s_younger: Int32s,
    size: int,
    top_key: Int64s,
    top_older: Int32s,
    top_younger: Int32s,
    top_size: int,
    rank: int,
    first: int,
    seen: int,
    event: int,
    time_us: int,
    log_event: Int64s,
    log_time_us: Int64s,
    log_reason: NDArray[np.int8],
    log_entered: NDArray[np.bool_],
    log_key: Int64s,
    log_older: Int32s,
    log_younger: Int32s,
    logged: int,
) -> int:
    """Log the changes of the list since the last call, and remember the new list.

    Parameters
    ----------
    s_key, s_older, s_younger
        Columns of the stock, whose first `size` pairs are the new list.
    top_key, top_older, top_younger, top_size
        The list of the last call; replaced.
    rank : int
        Rank before which both lists are equal.
    first : int
        Number of the oldest valid set.
    seen : int
        Number of the first set that took effect after the last call.
    event, time_us
        Event that caused the changes, and its time.
    log_event, ..., log_younger
        Columns of the log, with room for `size + top_size` more changes.
    logged : int
        Length of the log.

    Returns
    -------
    int
        New length of the log.
    """
    at, new = rank, rank
    while at < top_size or new < size:
        is_old = new == size or (
            at < top_size
            and precedes_kernel(
                top_key[at],
                top_older[at],
                top_younger[at],
                s_key[new],
                s_older[new],
                s_younger[new],
            )
        )
        if not is_old and (
            at < top_size and top_older[at] == s_older[new] and top_younger[at] == s_younger[new]
        ):
            at += 1
            new += 1
            continue
        if is_old:
            key, older, younger = top_key[at], top_older[at], top_younger[at]
            reason = EXPIRY if older < first else SET
            at += 1
        else:
            key, older, younger = s_key[new], s_older[new], s_younger[new]
            reason = SET if younger >= seen else EXPIRY
            new += 1
        log_event[logged], log_time_us[logged], log_reason[logged] = event, time_us, reason
        log_entered[logged] = not is_old
        log_key[logged], log_older[logged], log_younger[logged] = key, older, younger
        logged += 1
    for new in range(rank, size):
        top_key[new], top_older[new], top_younger[new] = s_key[new], s_older[new], s_younger[new]
    return logged
