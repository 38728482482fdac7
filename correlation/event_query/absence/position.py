"""Positions of candidates: certainly inside their window, certainly outside, or uncertain.

Definitions. T_r - T_s is in [low, high] with low = earliest_r - latest_s and high = latest_r -
earliest_s. Two exact times decide in whole microseconds. Otherwise a candidate is *inside* if one
interval of the merged window contains [low, high], and *outside* if each interval of it has at most
an end in common with [low, high] (docs/proofs.md, P-ABSENCE-POSITION).

With fixed ends, neither time is exact (`cuts`). A candidate is inside if one box contains [low,
high], [earliest_r, latest_r] and [earliest_s, latest_s], and outside if each box has at most an end
in common with one of the three.

Cost. O(w) per candidate and interval of the window. The scan of a positive event ends at the first
candidate that is inside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from correlation.buffers.columns import Int64s
from correlation.event_query.absence.instants import InstantTable, as_read_only
from correlation.event_query.absence.windows import (
    FIRST_NEGATED,
    FIRST_POSITIVE,
    LAST_NEGATED,
    LAST_POSITIVE,
    Windows,
)

OUTSIDE, INSIDE, UNCERTAIN = range(3)
# Columns of `Scan.ends`; those from FIRST_WHOLE on are of windows without fixed ends.
_LO, _HI, _FIRST_WHOLE, _LAST_WHOLE = range(4)


@dataclass(frozen=True, slots=True)
class Negated:
    """The candidates of one negated alias in one table.

    Parameters
    ----------
    table : InstantTable
        Events of the alias's stream, for example of one segment, n rows.
    begin, end : ndarray of int64, shape (k,)
        The candidates of positive event i are the rows begin[i] to end[i] - 1.
    windows : Windows
        The window of each positive event.
    events : ndarray of int64, shape (n,), or None
        Number of the event of each row, not negative. Rows of several entries with one number are
        one event, which has one instant and is in the union of the windows. None: the events are in
        no other entry.

    Raises
    ------
    ValueError
        The columns differ in length, or a range is outside the table.
    """

    table: InstantTable
    begin: Int64s
    end: Int64s
    windows: Windows
    events: Int64s | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "begin", as_read_only(self.begin))
        object.__setattr__(self, "end", as_read_only(self.end))
        if not len(self.begin) == len(self.end) == len(self.windows.lo):
            raise ValueError("begin, end and windows: must have equal lengths")
        used = self.begin < self.end
        if (self.begin[used] < 0).any() or (self.end[used] > len(self.table.latest)).any():
            raise ValueError("begin and end: a range is outside the table")


class Scan(NamedTuple):
    """Positive events and candidates as passed to the kernels.

    `ends` is int64[k, w, 4]: lo and hi of the merged window, then first and last whole microsecond
    of the given intervals. With fixed ends, `cuts` are those of the given intervals, and `ends`
    their lo and hi; otherwise `cuts` has no intervals.
    """

    positive_earliest: NDArray[np.int64]
    positive_latest: NDArray[np.int64]
    earliest: NDArray[np.int64]
    latest: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    ends: NDArray[np.int64]
    cuts: NDArray[np.int64]


def make_scan(positives: InstantTable, negated: Negated, merged: tuple[Int64s, Int64s]) -> Scan:
    """Return the arguments of the kernels.

    Parameters
    ----------
    positives : InstantTable
        k positive events.
    negated : Negated
        Their candidates.
    merged : (int64[k, w], int64[k, w])
        lo and hi of the merged windows, or of the boxes.
    """
    windows = negated.windows
    ends = [*merged, windows.lo + windows.open_lo, windows.hi - windows.open_hi]
    cuts = np.zeros((0, 0, 4), np.int64) if windows.cuts is None else windows.cuts.ends
    return Scan(
        *(positives.earliest, positives.latest, negated.table.earliest, negated.table.latest),
        *(negated.begin, negated.end, as_read_only(np.stack(ends, axis=2)), as_read_only(cuts)),
    )


def find_stopped(scan: Scan, stopped: NDArray[np.bool_]) -> None:
    """Mark the positive events that a candidate certainly stops."""
    _find_stopped_kernel(scan, stopped)


def list_uncertain(scan: Scan, stopped: NDArray[np.bool_]) -> tuple[Int64s, Int64s]:
    """Return the uncertain candidates of the positive events that are not stopped.

    Returns
    -------
    (ndarray of int64, ndarray of int64), shapes (n,)
        Positive event and row of each candidate, by positive event.
    """
    bounds = np.zeros(len(scan.begin) + 1, np.int64)
    _list_uncertain_kernel(scan, stopped, bounds, np.zeros(0, np.int64))
    rows = np.empty(bounds[-1], np.int64)
    _list_uncertain_kernel(scan, stopped, bounds, rows)
    return np.repeat(np.arange(len(scan.begin)), np.diff(bounds)), rows


@njit(cache=True, inline="always")
def _locate_candidate_kernel(low: int, high: int, ends: NDArray[np.int64], i: int) -> int:
    """Return OUTSIDE, INSIDE or UNCERTAIN for T_r - T_s in [low, high]; `ends` is of `Scan`."""
    place = OUTSIDE
    for v in range(ends.shape[1]):
        if low == high:
            if ends[i, v, _FIRST_WHOLE] <= low <= ends[i, v, _LAST_WHOLE]:
                place = INSIDE
        elif ends[i, v, _LO] <= low and high <= ends[i, v, _HI]:
            place = INSIDE
        elif ends[i, v, _LO] < high and low < ends[i, v, _HI]:
            place = UNCERTAIN
    return place


@njit(cache=True)
def _locate_cut_kernel(scan: Scan, i: int, row: int) -> int:
    """Return the position of a candidate with fixed ends; one with an exact time is outside."""
    first_s, last_s = scan.positive_earliest[i], scan.positive_latest[i]
    first_r, last_r = scan.earliest[row], scan.latest[row]
    place = OUTSIDE
    if first_r == last_r:
        return place
    for v in range(scan.ends.shape[1]):
        lo, hi = scan.ends[i, v, _LO], scan.ends[i, v, _HI]
        first_negated, last_negated = scan.cuts[i, v, FIRST_NEGATED], scan.cuts[i, v, LAST_NEGATED]
        first, last = scan.cuts[i, v, FIRST_POSITIVE], scan.cuts[i, v, LAST_POSITIVE]
        if not (
            lo <= hi
            and (lo < last_r - first_s and first_r - last_s < hi)
            and max(first_r, first_negated) < min(last_r, last_negated)
            and max(first_s, first) < min(last_s, last)
        ):
            continue
        place = UNCERTAIN
        if (
            (lo <= first_r - last_s and last_r - first_s <= hi)
            and (first_negated <= first_r and last_r <= last_negated)
            and (first <= first_s and last_s <= last)
        ):
            return INSIDE
    return place


@njit(cache=True)
def _find_stopped_kernel(scan: Scan, stopped: NDArray[np.bool_]) -> None:
    positive_earliest, positive_latest, earliest, latest, begin, end, ends, cuts = scan
    for i in range(len(begin)):
        row = begin[i]
        while not stopped[i] and row < end[i]:
            if len(cuts):
                stopped[i] = _locate_cut_kernel(scan, i, row) == INSIDE
            else:
                low = earliest[row] - positive_latest[i]
                high = latest[row] - positive_earliest[i]
                stopped[i] = _locate_candidate_kernel(low, high, ends, i) == INSIDE
            row += 1


@njit(cache=True)
def _list_uncertain_kernel(
    scan: Scan, stopped: NDArray[np.bool_], bounds: NDArray[np.int64], rows: NDArray[np.int64]
) -> None:
    """Write the uncertain candidates into `rows`; if it is empty, count them only, in `bounds`."""
    positive_earliest, positive_latest, earliest, latest, begin, end, ends, cuts = scan
    count = 0
    for i in range(len(begin)):
        if not stopped[i]:
            for row in range(begin[i], end[i]):
                if len(cuts):
                    place = _locate_cut_kernel(scan, i, row)
                else:
                    low = earliest[row] - positive_latest[i]
                    high = latest[row] - positive_earliest[i]
                    place = _locate_candidate_kernel(low, high, ends, i)
                if place == UNCERTAIN:
                    if len(rows):
                        rows[count] = row
                    count += 1
        bounds[i + 1] = count
