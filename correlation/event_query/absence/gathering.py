"""Candidates whose position does not decide, as columns.

Problem. For k positive events and ranges of candidates, find the positive events that a candidate
certainly stops, and of the others the candidates that may stop them.

Definitions. T_r - T_s is in [low, high] with low = earliest_r - latest_s and high = latest_r -
earliest_s. Two exact times decide in whole microseconds. Otherwise a candidate is *inside* if one
interval of the merged window contains [low, high], and *outside* if each interval of it has at most
an end in common with [low, high] (docs/proofs.md, P-ABSENCE-POSITION).

Cost. O(w) per candidate and interval of the window. The scan of a positive event ends at the first
candidate that is inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from correlation.buffers.columns import Int64s
from correlation.event_query.absence.barring import Barred, merge_barred
from correlation.event_query.absence.instants import (
    InstantTable,
    as_read_only,
    join_tables,
    make_table,
    take_instants,
)
from correlation.event_query.absence.windows import (
    INFINITE_US,
    Windows,
    make_windows,
    merge_windows,
)

OUTSIDE, INSIDE, UNCERTAIN = range(3)


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


class Cases(NamedTuple):
    """Positive events with the candidates that their position does not decide.

    Attributes
    ----------
    positives : InstantTable
        k positive events.
    candidates : InstantTable
        n candidates.
    starts : ndarray of int64, shape (k + 1,)
        Positive event i has the candidates starts[i] to starts[i + 1] - 1.
    window : ndarray of int64, shape (n,)
        Row of each candidate's merged window in `lo` and `hi`.
    lo, hi : ndarray of int64, shape (·, w)
        Merged windows, ascending; unused places have lo > hi.
    """

    positives: InstantTable
    candidates: InstantTable
    starts: Int64s
    window: Int64s
    lo: Int64s
    hi: Int64s


class Gathered(NamedTuple):
    """Result of `gather_cases`.

    Attributes
    ----------
    stopped : ndarray of bool, shape (k,)
        Whether a candidate certainly stops the positive event: P = 0.
    cases : Cases
        All positive events; those that are stopped have no candidates. Without candidates a
        positive event that is not stopped has P = 1.
    """

    stopped: NDArray[np.bool_]
    cases: Cases


def gather_cases(
    positives: InstantTable, negated: Sequence[Negated], barred: Barred | None = None
) -> Gathered:
    """Decide by position and gather the remaining candidates.

    Parameters
    ----------
    positives : InstantTable
        k positive events.
    negated : sequence of Negated
        Candidates; an alias with several tables has one entry for each.
    barred : Barred or None
        Times at which positive events are stopped.

    Raises
    ------
    ValueError
        An entry has another number of positive events.
    """
    count = len(positives.latest)
    if any(len(it.begin) != count for it in negated):
        raise ValueError("negated: begin must have one value for each positive event")
    stopped = np.zeros(count, np.bool_)
    if barred is not None:
        stopped, barred = merge_barred(positives, barred)
    merged = [merge_windows(it.windows) for it in negated]
    scans = [_make_scan(positives, it, ends) for it, ends in zip(negated, merged, strict=True)]
    for scan in scans:
        _find_stopped_kernel(scan, stopped)
    parts: list[_Part] = []
    for it, scan, (lo, hi) in zip(negated, scans, merged, strict=True):
        bounds = np.zeros(count + 1, np.int64)
        _list_uncertain_kernel(scan, stopped, bounds, np.zeros(0, np.int64))
        rows = np.empty(bounds[-1], np.int64)
        _list_uncertain_kernel(scan, stopped, bounds, rows)
        owners = np.repeat(np.arange(count), np.diff(bounds))
        events = np.full(len(rows), -1) if it.events is None else it.events[rows]
        parts.append(_Part(owners, take_instants(it.table, rows), owners, lo, hi, events))
    if barred is not None:
        parts.append(_make_barred(positives, barred, stopped))
    return Gathered(stopped, _join_parts(positives, parts))


class _Part(NamedTuple):
    """Candidates of one entry.

    `owner` is the positive event of each candidate, `window` the row of its window in lo and hi,
    `event` the number of its event or -1.
    """

    owner: NDArray[np.int64]
    table: InstantTable
    window: NDArray[np.int64]
    lo: NDArray[np.int64]
    hi: NDArray[np.int64]
    event: NDArray[np.int64]


def _make_barred(positives: InstantTable, barred: Barred, stopped: NDArray[np.bool_]) -> _Part:
    """Return a candidate for each interval, at the last possible time of the positive event."""
    open_ = ~stopped[barred.owner]
    owner, lo, hi = (it[open_] for it in barred)
    time = positives.latest[owner]
    rows = np.arange(len(owner))
    windows = ((time - hi)[:, None], (time - lo)[:, None])
    return _Part(owner, make_table(time, time), rows, *windows, np.full(len(owner), -1))


def _join_parts(positives: InstantTable, parts: Sequence[_Part]) -> Cases:
    """Join the candidates of all entries, sorted by positive event."""
    count = len(positives.latest)
    none = np.zeros(0, np.int64)
    owners = np.concatenate([none, *(it.owner for it in parts)])
    before = np.cumsum([0, *(len(it.lo) for it in parts)])
    rows = np.concatenate([none, *(it.window + n for it, n in zip(parts, before, strict=False))])
    tables = [make_table(none, none), *(it.table for it in parts)]
    events = np.concatenate([none, *(it.event for it in parts)])
    width = max((it.lo.shape[1] for it in parts), default=0)
    lo = _stack([it.lo for it in parts], width, INFINITE_US)
    hi = _stack([it.hi for it in parts], width, -INFINITE_US)
    order = np.lexsort((events, owners))
    owners, rows, events = owners[order], rows[order], events[order]
    again = (owners[1:] == owners[:-1]) & (events[1:] == events[:-1]) & (events[1:] >= 0)
    if again.any():
        heads = np.flatnonzero(np.concatenate([[True], ~again]))
        lo, hi = _unite_windows(heads, lo[rows], hi[rows])
        order, owners, rows = order[heads], owners[heads], np.arange(len(heads))
    return Cases(
        positives,
        take_instants(join_tables(tables), order),
        as_read_only(np.searchsorted(owners, np.arange(count + 1))),
        as_read_only(rows),
        as_read_only(lo),
        as_read_only(hi),
    )


def _unite_windows(
    heads: NDArray[np.intp], lo: NDArray[np.int64], hi: NDArray[np.int64]
) -> tuple[Int64s, Int64s]:
    """Return the merged union of the windows of each event.

    Parameters
    ----------
    heads : ndarray of int, shape (k,)
        Event i has the windows heads[i] to heads[i + 1] - 1.
    lo, hi : ndarray of int64, shape (n, w)
        The windows.
    """
    counts = np.diff(np.append(heads, len(lo)))
    most, width = int(counts.max()), lo.shape[1]
    event = np.repeat(np.arange(len(heads)), counts)
    place = np.arange(len(lo)) - heads[event]
    united = [np.full((len(heads), most, width), it) for it in (INFINITE_US, -INFINITE_US)]
    united[0][event, place], united[1][event, place] = lo, hi
    return merge_windows(make_windows(*(it.reshape(len(heads), -1) for it in united)))


def _stack(ends: Sequence[Int64s], width: int, empty: int) -> Int64s:
    padded = [np.pad(it, ((0, 0), (0, width - it.shape[1])), constant_values=empty) for it in ends]
    return np.concatenate([np.zeros((0, width), np.int64), *padded])


@njit(cache=True, inline="always")
def _locate_candidate_kernel(low: int, high: int, ends: NDArray[np.int64], i: int) -> int:
    """Return OUTSIDE, INSIDE or UNCERTAIN for T_r - T_s in [low, high]; `ends` is of `_Scan`."""
    place = OUTSIDE
    for v in range(ends.shape[1]):
        if low == high:
            if ends[i, v, 2] <= low <= ends[i, v, 3]:
                place = INSIDE
        elif ends[i, v, 0] <= low and high <= ends[i, v, 1]:
            place = INSIDE
        elif ends[i, v, 0] < high and low < ends[i, v, 1]:
            place = UNCERTAIN
    return place


class _Scan(NamedTuple):
    """Positive events and candidates as passed to the kernels.

    `ends` is int64[k, w, 4]: lo and hi of the merged window, then first and last whole microsecond
    of the given intervals.
    """

    positive_earliest: NDArray[np.int64]
    positive_latest: NDArray[np.int64]
    earliest: NDArray[np.int64]
    latest: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    ends: NDArray[np.int64]


def _make_scan(positives: InstantTable, negated: Negated, merged: tuple[Int64s, Int64s]) -> _Scan:
    windows = negated.windows
    ends = [*merged, windows.lo + windows.open_lo, windows.hi - windows.open_hi]
    return _Scan(
        *(positives.earliest, positives.latest, negated.table.earliest, negated.table.latest),
        *(negated.begin, negated.end, as_read_only(np.stack(ends, axis=2))),
    )


@njit(cache=True)
def _find_stopped_kernel(scan: _Scan, stopped: NDArray[np.bool_]) -> None:
    positive_earliest, positive_latest, earliest, latest, begin, end, ends = scan
    for i in range(len(begin)):
        row = begin[i]
        while not stopped[i] and row < end[i]:
            low = earliest[row] - positive_latest[i]
            high = latest[row] - positive_earliest[i]
            stopped[i] = _locate_candidate_kernel(low, high, ends, i) == INSIDE
            row += 1


@njit(cache=True)
def _list_uncertain_kernel(
    scan: _Scan, stopped: NDArray[np.bool_], bounds: NDArray[np.int64], rows: NDArray[np.int64]
) -> None:
    """Write the uncertain candidates into `rows`; if it is empty, count them only, in `bounds`."""
    positive_earliest, positive_latest, earliest, latest, begin, end, ends = scan
    count = 0
    for i in range(len(begin)):
        if not stopped[i]:
            for row in range(begin[i], end[i]):
                low = earliest[row] - positive_latest[i]
                high = latest[row] - positive_earliest[i]
                if _locate_candidate_kernel(low, high, ends, i) == UNCERTAIN:
                    if len(rows):
                        rows[count] = row
                    count += 1
        bounds[i + 1] = count
