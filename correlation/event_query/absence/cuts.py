"""Windows with fixed ends, as columns, where one of both times is exact.

Problem. If T_s or T_r is exact, whole microseconds decide whether it is between fixed ends, and
the rest of a box is an interval of T_r - T_s (`windows.Box`): a window without fixed ends if
T_s is exact, an interval of T_s at which the positive event is stopped with certainty if T_r is
exact. A negated event that is the positive event itself has T_r = T_s: it stops it at intervals of
T_s, too.

Cost. O(w) per positive event, or pair of events.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from correlation.buffers.columns import Int64s
from correlation.event_query.absence.barring import Barred
from correlation.event_query.absence.instants import InstantTable
from correlation.event_query.absence.windows import (
    FIRST_NEGATED,
    FIRST_POSITIVE,
    INFINITE_US,
    LAST_NEGATED,
    LAST_POSITIVE,
    Cuts,
    Windows,
    make_windows,
)


def windows_at(windows: Windows, time: Int64s) -> Windows:
    """Return windows without fixed ends, for exact times of the positive events.

    Parameters
    ----------
    windows : Windows
        k windows.
    time : int64[k]
        T_s, in µs.
    """
    if windows.cuts is None:
        return windows
    ends, opens = windows.cuts
    at = time[:, None]
    held = at >= ends[..., FIRST_POSITIVE] + opens[..., FIRST_POSITIVE]
    held &= at <= ends[..., LAST_POSITIVE] - opens[..., LAST_POSITIVE]
    infinite = np.abs(ends) == INFINITE_US
    low, high = (
        np.where(infinite[..., side], ends[..., side], ends[..., side] - at)
        for side in (FIRST_NEGATED, LAST_NEGATED)
    )
    open_lo = np.where(low > windows.lo, opens[..., FIRST_NEGATED], windows.open_lo)
    open_lo |= (low == windows.lo) & opens[..., FIRST_NEGATED]
    open_hi = np.where(high < windows.hi, opens[..., LAST_NEGATED], windows.open_hi)
    open_hi |= (high == windows.hi) & opens[..., LAST_NEGATED]
    return make_windows(
        np.where(held, np.maximum(low, windows.lo), 1),
        np.where(held, np.minimum(high, windows.hi), 0),
        open_lo,
        open_hi,
    )


def list_own_stops(windows: Windows, rows: Int64s, exact: NDArray[np.bool_]) -> Barred:
    """Return the times of T_s at which a positive event is in its own window.

    Parameters
    ----------
    windows : Windows
        k windows with fixed ends.
    rows : int64[n]
        Positive events that are candidates of themselves.
    exact : bool[k]
        Whether T_s is exact.
    """
    if windows.cuts is None:
        raise TypeError("the windows have no fixed ends")
    ends, opens = (it[rows] for it in windows.cuts)
    inside = (windows.lo + windows.open_lo <= 0) & (windows.hi - windows.open_hi >= 0)
    opens &= exact[rows, None, None]
    first = np.maximum(*((ends + opens)[..., it] for it in (FIRST_NEGATED, FIRST_POSITIVE)))
    last = np.minimum(*((ends - opens)[..., it] for it in (LAST_NEGATED, LAST_POSITIVE)))
    places, intervals = np.nonzero(inside[rows] & (first <= last))
    return Barred(rows[places], first[places, intervals], last[places, intervals])


def list_exact_stops(
    positives: InstantTable,
    table: InstantTable,
    ranges: tuple[Int64s, Int64s],
    windows: Windows,
) -> Barred:
    """Return the times of T_s at which candidates with exact times stop positive events.

    Parameters
    ----------
    positives : InstantTable
        k positive events; T_s is not exact.
    table : InstantTable
        The candidates; those with uncertain instants are skipped.
    ranges : (int64[k], int64[k])
        Positive event i has the candidates ranges[0][i] to ranges[1][i] - 1.
    windows : Windows
        k windows with fixed ends.
    """
    if windows.cuts is None:
        raise TypeError("the windows have no fixed ends")
    found = np.empty((0, 3), np.int64)
    for _ in range(2):
        # Counted first, then written.
        count = _list_exact_stops_kernel(
            (positives.earliest, positives.latest),
            (table.earliest, table.latest),
            ranges,
            (windows.lo, windows.hi),
            windows.cuts,
            found,
        )
        if len(found) == count:
            break
        found = np.empty((count, 3), np.int64)
    return Barred(found[:, 0], found[:, 1], found[:, 2])


@njit(cache=True)
def _list_exact_stops_kernel(
    positive: tuple[NDArray[np.int64], NDArray[np.int64]],
    negated: tuple[NDArray[np.int64], NDArray[np.int64]],
    ranges: tuple[NDArray[np.int64], NDArray[np.int64]],
    window: tuple[NDArray[np.int64], NDArray[np.int64]],
    cuts: Cuts,
    found: NDArray[np.int64],
) -> int:
    """Write owner, lo and hi of each interval; if `found` is empty, count them."""
    ends, opens = cuts
    count = 0
    for i in range(len(ranges[0])):
        for row in range(ranges[0][i], ranges[1][i]):
            time = negated[1][row]
            if negated[0][row] != time:
                continue
            for v in range(ends.shape[1]):
                if time < ends[i, v, FIRST_NEGATED] + opens[i, v, FIRST_NEGATED]:
                    continue
                if time > ends[i, v, LAST_NEGATED] - opens[i, v, LAST_NEGATED]:
                    continue
                lo = max(time - window[1][i, v], ends[i, v, FIRST_POSITIVE], positive[0][i])
                hi = min(time - window[0][i, v], ends[i, v, LAST_POSITIVE], positive[1][i])
                # An interval without a length has probability 0.
                if lo < hi:
                    if len(found):
                        found[count, 0] = i
                        found[count, 1] = lo
                        found[count, 2] = hi
                    count += 1
    return count
