"""Windows: where a negated event stops a positive event.

Definitions. A negated event at T_r stops a positive event at T_s iff T_r - T_s is in a *window*: a
union of intervals of whole microseconds. An end is *open* if the relation is strict (<). This
matters between two exact times only, where whole microseconds decide: otherwise T_r - T_s is
continuous, and an end has probability 0. A *merged* window has the closed intervals in ascending
order, and intervals that overlap or touch are one.

A relation to a third event with an exact time gives a *fixed end*: an end of T_r or of T_s. An
interval of a window with fixed ends is a *box*: T_r - T_s, T_r and T_s are in one interval each.
Whole microseconds decide about T_r, or T_s, if it is exact. If T_s is exact, a box is an interval
of T_r - T_s; if T_r is exact, too.

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

    def meet(self, other: Interval) -> Interval:
        """Return the intersection, whose lo may be above its hi."""
        both = self, other
        lo, open_lo = max(
            (-INFINITE_US if it.lo_us is None else it.lo_us, it.open_lo) for it in both
        )
        hi, closed_hi = min(
            (INFINITE_US if it.hi_us is None else it.hi_us, not it.open_hi) for it in both
        )
        return interval_of(lo, hi, open_lo=open_lo, open_hi=not closed_hi)

    def moved(self, by_us: int) -> Interval:
        """Return the interval of x + by if this is the interval of x."""
        lo, hi = (None if end is None else end + by_us for end in self[:2])
        return Interval(lo, hi, self.open_lo, self.open_hi)

    def mirrored(self) -> Interval:
        """Return the interval of -x if this is the interval of x."""
        lo, hi = (None if end is None else -end for end in self[:2])
        return Interval(hi, lo, self.open_hi, self.open_lo)


def interval_of(lo: int, hi: int, *, open_lo: bool = False, open_hi: bool = False) -> Interval:
    """Return an interval from its ends in columns."""
    return Interval(
        None if lo == -INFINITE_US else lo, None if hi == INFINITE_US else hi, open_lo, open_hi
    )


ALWAYS = Interval(None, None)


class Box(NamedTuple):
    """An interval of a window with fixed ends.

    Attributes
    ----------
    difference : Interval
        T_r - T_s.
    negated : Interval
        T_r.
    positive : Interval
        T_s.
    """

    difference: Interval
    negated: Interval = ALWAYS
    positive: Interval = ALWAYS

    def at_positive(self, time_us: int) -> tuple[Interval, ...]:
        """Return the interval of T_r - T_s for an exact T_s; an empty tuple if T_s is outside."""
        if not self.positive.holds(time_us):
            return ()
        return (self.difference.meet(self.negated.moved(-time_us)),)

    def at_negated(self, time_us: int) -> tuple[Interval, ...]:
        """Return the interval of T_r - T_s for an exact T_r; an empty tuple if T_r is outside."""
        if not self.negated.holds(time_us):
            return ()
        return (self.difference.meet(self.positive.mirrored().moved(time_us)),)


Window = tuple[Interval | Box, ...]


class Cuts(NamedTuple):
    """The fixed ends of k windows, of at most w intervals each.

    Attributes
    ----------
    ends : ndarray of int64, shape (k, w, 4)
        First and last T_r, first and last T_s, within ±2**60, or ±`INFINITE_US`. An interval with
        first > last is empty.
    opens : ndarray of bool, shape (k, w, 4)
        Whether the ends are excluded.
    """

    ends: NDArray[np.int64]
    opens: NDArray[np.bool_]


# Columns of `Cuts`.
_CUTS = FIRST_NEGATED, LAST_NEGATED, FIRST_POSITIVE, LAST_POSITIVE = (0, 1, 2, 3)


class Windows(NamedTuple):
    """The windows of k positive events, of at most w intervals each.

    Attributes
    ----------
    lo, hi : ndarray of int64, shape (k, w)
        Ends, within ±2**61, or ±`INFINITE_US`. An interval with lo > hi is empty.
    open_lo, open_hi : ndarray of bool, shape (k, w)
        Whether the ends are excluded.
    cuts : Cuts or None
        Fixed ends; None: the windows have none.
    """

    lo: NDArray[np.int64]
    hi: NDArray[np.int64]
    open_lo: NDArray[np.bool_]
    open_hi: NDArray[np.bool_]
    cuts: Cuts | None = None

    def intervals(self, row: int) -> Window:
        """Return the window of a positive event; an interval with fixed ends is a box."""
        columns = (it[row].tolist() for it in (self.lo, self.hi, self.open_lo, self.open_hi))
        found: list[Interval | Box] = []
        for v, (lo, hi, open_lo, open_hi) in enumerate(zip(*columns, strict=True)):
            if lo <= hi:
                difference = interval_of(lo, hi, open_lo=open_lo, open_hi=open_hi)
                found.append(difference if self.cuts is None else self._box(difference, row, v))
        return tuple(found)

    def _box(self, difference: Interval, row: int, v: int) -> Interval | Box:
        if self.cuts is None:
            raise TypeError("the window has no fixed ends")
        ends, opens = self.cuts.ends[row, v].tolist(), self.cuts.opens[row, v].tolist()
        negated, positive = (
            interval_of(*ends[at : at + 2], open_lo=opens[at], open_hi=opens[at + 1])
            for at in (FIRST_NEGATED, FIRST_POSITIVE)
        )
        if negated[:2] == positive[:2] == ALWAYS[:2]:
            return difference
        return Box(difference, negated, positive)


def make_windows(
    lo: ArrayLike,
    hi: ArrayLike,
    open_lo: ArrayLike | None = None,
    open_hi: ArrayLike | None = None,
    cuts: Cuts | None = None,
) -> Windows:
    """Build windows from their columns.

    Parameters
    ----------
    lo, hi : array_like of int, shape (k, w)
        Ends in microseconds, as in `Windows`.
    open_lo, open_hi : array_like of bool or None
        Broadcast to shape (k, w); None: all ends are closed.
    cuts : Cuts or None
        Fixed ends, of shape (k, w, 4).

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
    opened_lo, opened_hi = (
        np.array(np.broadcast_to([0] if it is None else it, low.shape), np.bool_)
        for it in (open_lo, open_hi)
    )
    if cuts is not None:
        if not cuts.ends.shape == cuts.opens.shape == (*low.shape, len(_CUTS)):
            raise ValueError("cuts: must have four ends for each interval")
        if not ((np.abs(cuts.ends) <= TIME_LIMIT_US) | (np.abs(cuts.ends) == INFINITE_US)).all():
            raise ValueError(f"cuts: an end is out of range; use at most ±{TIME_LIMIT_US} us")
        cuts = Cuts(as_read_only(cuts.ends), np.ascontiguousarray(cuts.opens))
    return Windows(low, high, opened_lo, opened_hi, cuts)


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
