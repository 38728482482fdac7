"""Windows: where a negated event stops a positive event.

Definitions. A negated event at T_r stops a positive event at T_s iff T_r - T_s is in a *window*: a
union of intervals of whole microseconds. An end is *open* if the relation is strict (<). This
matters between two exact times only, where whole microseconds decide: otherwise T_r - T_s is
continuous, and an end has probability 0. A *merged* window has the closed intervals in ascending
order, and intervals that overlap or touch are one.

Cost. O(w²) per positive event for w intervals.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from correlation.event_query.absence.instants import as_read_only
from correlation.limits import TIME_LIMIT_US

# An infinite end in columns: beyond every difference of two times, and its sums with times and with
# such differences are in int64.
INFINITE_US = 2**62
# Maximum of a finite end: the difference of two times.
END_LIMIT_US = 2 * TIME_LIMIT_US


class Interval(NamedTuple):
    """An interval of a window.

    Attributes
    ----------
    lo_us, hi_us : int or None
        Ends of T_r - T_s, in microseconds; None is infinite.
    open_lo, open_hi : bool
        Whether the end is excluded.
    """

    lo_us: int | None
    hi_us: int | None
    open_lo: bool = False
    open_hi: bool = False

    def holds(self, difference_us: int) -> bool:
        """Return whether the difference of two exact times is in the interval."""
        return (self.lo_us is None or self.lo_us + self.open_lo <= difference_us) and (
            self.hi_us is None or difference_us <= self.hi_us - self.open_hi
        )


class Windows(NamedTuple):
    """The windows of k positive events, of at most w intervals each.

    Attributes
    ----------
    lo, hi : ndarray of int64, shape (k, w)
        Ends, within ±2**61, or ±`INFINITE_US`. An interval with lo > hi is empty.
    open_lo, open_hi : ndarray of bool, shape (k, w)
        Whether the ends are excluded.
    """

    lo: NDArray[np.int64]
    hi: NDArray[np.int64]
    open_lo: NDArray[np.bool_]
    open_hi: NDArray[np.bool_]

    def intervals(self, row: int) -> tuple[Interval, ...]:
        """Return the window of a positive event."""
        columns = (it[row].tolist() for it in (self.lo, self.hi, self.open_lo, self.open_hi))
        return tuple(
            Interval(
                None if lo == -INFINITE_US else lo,
                None if hi == INFINITE_US else hi,
                open_lo,
                open_hi,
            )
            for lo, hi, open_lo, open_hi in zip(*columns, strict=True)
            if lo <= hi
        )


def make_windows(
    lo: ArrayLike, hi: ArrayLike, open_lo: ArrayLike | None = None, open_hi: ArrayLike | None = None
) -> Windows:
    """Build windows from their columns.

    Parameters
    ----------
    lo, hi : array_like of int, shape (k, w)
        Ends in microseconds, as in `Windows`.
    open_lo, open_hi : array_like of bool or None
        Broadcast to shape (k, w); None: all ends are closed.

    Raises
    ------
    ValueError
        The shapes differ, or an end is out of range.
    """
    low, high = as_read_only(lo), as_read_only(hi)
    if low.shape != high.shape or low.ndim != 2:  # noqa: PLR2004 - positive events and intervals
        raise ValueError("lo and hi: must have two dimensions and equal shapes")
    for name, ends in (("lo", low), ("hi", high)):
        if not ((np.abs(ends) <= END_LIMIT_US) | (np.abs(ends) == INFINITE_US)).all():
            raise ValueError(f"{name}: an end is out of range; use at most ±{END_LIMIT_US} us")
    opens = (
        np.array(np.broadcast_to([0] if it is None else it, low.shape), np.bool_)
        for it in (open_lo, open_hi)
    )
    return Windows(low, high, *opens)


def merge_windows(windows: Windows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return lo and hi of the merged windows, int64[k, w]; unused places have lo > hi."""
    lo = np.full(windows.lo.shape, INFINITE_US, np.int64)
    hi = np.full(windows.lo.shape, -INFINITE_US, np.int64)
    _merge_windows_kernel(windows.lo, windows.hi, lo, hi)
    return lo, hi


@njit(cache=True)
def _merge_windows_kernel(
    lo: NDArray[np.int64],
    hi: NDArray[np.int64],
    out_lo: NDArray[np.int64],
    out_hi: NDArray[np.int64],
) -> None:
    for k in range(len(lo)):
        count = 0
        for v in range(lo.shape[1]):
            low = lo[k, v]
            high = hi[k, v]
            if low > high:
                continue
            # Absorb the intervals that meet the new one, then insert it in its place.
            kept = 0
            for u in range(count):
                if out_lo[k, u] <= high and low <= out_hi[k, u]:
                    low = min(low, out_lo[k, u])
                    high = max(high, out_hi[k, u])
                else:
                    out_lo[k, kept] = out_lo[k, u]
                    out_hi[k, kept] = out_hi[k, u]
                    kept += 1
            place = kept
            while place > 0 and out_lo[k, place - 1] > low:
                out_lo[k, place] = out_lo[k, place - 1]
                out_hi[k, place] = out_hi[k, place - 1]
                place -= 1
            out_lo[k, place] = low
            out_hi[k, place] = high
            for u in range(kept + 1, count):
                out_lo[k, u] = INFINITE_US
                out_hi[k, u] = -INFINITE_US
            count = kept + 1


def merge_intervals(intervals: tuple[Interval, ...]) -> list[tuple[int | None, int | None]]:
    """Return the ends of the merged window of one positive event, ascending."""
    ends = sorted(
        (
            -INFINITE_US if it.lo_us is None else it.lo_us,
            INFINITE_US if it.hi_us is None else it.hi_us,
        )
        for it in intervals
    )
    merged: list[tuple[int, int]] = []
    for lo, hi in ends:
        if lo > hi:
            continue
        if merged and lo <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], hi)
        else:
            merged.append((lo, hi))
    return [
        (None if lo == -INFINITE_US else lo, None if hi == INFINITE_US else hi) for lo, hi in merged
    ]
