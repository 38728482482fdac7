"""Candidates whose position does not decide, as columns.

Problem. For k positive events and ranges of candidates, find the positive events that a candidate
certainly stops, and of the others the candidates that may stop them.

Algorithm. With fixed ends, the windows of exact positive events lose them, and candidates with
exact times become times at which the positive event is stopped (`cuts`). `position` decides about
all others; the uncertain ones are gathered. An event that is a candidate of several entries is
gathered once, with the union of its windows.

Cost. As in `position`; O(w²) for a candidate of several aliases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from correlation.buffers.columns import Int64s
from correlation.event_query.absence.barring import Barred, merge_barred
from correlation.event_query.absence.cuts import list_exact_stops, windows_at
from correlation.event_query.absence.instants import (
    InstantTable,
    as_read_only,
    join_tables,
    make_table,
    take_instants,
)
from correlation.event_query.absence.position import (
    Negated,
    find_stopped,
    list_uncertain,
    make_scan,
)
from correlation.event_query.absence.windows import (
    INFINITE_US,
    make_windows,
    merge_windows,
)

# Fixed ends of an interval without any.
_NO_CUTS = np.array([-INFINITE_US, INFINITE_US] * 2)


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
    cuts : ndarray of int64, shape (·, w, 4), or None
        Fixed ends, as `Cuts.ends`; an interval of a row with a fixed end is a box, and the boxes
        are not merged. None: no window has fixed ends.
    """

    positives: InstantTable
    candidates: InstantTable
    starts: Int64s
    window: Int64s
    lo: Int64s
    hi: Int64s
    cuts: Int64s | None = None


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
    negated, barred = _resolve_exact(positives, negated, barred)
    if barred is not None:
        stopped, barred = merge_barred(positives, barred)
    merged = [
        merge_windows(it.windows) if it.windows.cuts is None else it.windows[:2] for it in negated
    ]
    scans = [make_scan(positives, it, ends) for it, ends in zip(negated, merged, strict=True)]
    for scan in scans:
        find_stopped(scan, stopped)
    parts: list[_Part] = []
    for it, scan, (lo, hi) in zip(negated, scans, merged, strict=True):
        owners, rows = list_uncertain(scan, stopped)
        events = np.full(len(rows), -1) if it.events is None else it.events[rows]
        cuts = None if it.windows.cuts is None else it.windows.cuts.ends
        parts.append(_Part(owners, take_instants(it.table, rows), owners, lo, hi, events, cuts))
    if barred is not None:
        parts.append(_make_barred(positives, barred, stopped))
    return Gathered(stopped, _join_parts(positives, parts))


def _resolve_exact(
    positives: InstantTable, negated: Sequence[Negated], barred: Barred | None
) -> tuple[list[Negated], Barred | None]:
    """Remove the fixed ends of exact positive events, and exact candidates with fixed ends."""
    exact = positives.earliest == positives.latest
    found: list[Negated] = []
    stops = [] if barred is None else [barred]
    for it in negated:
        if it.windows.cuts is None:
            found.append(it)
            continue
        # Entries of the positive events with exact times, and of the others.
        if (exact & (it.begin < it.end)).any():
            found.append(
                replace(
                    it,
                    begin=np.where(exact, it.begin, it.end),
                    windows=windows_at(it.windows, positives.latest),
                )
            )
        rest = replace(it, begin=np.where(exact, it.end, it.begin))
        found.append(rest)
        ranges = rest.begin, rest.end
        stops.append(list_exact_stops(positives, rest.table, ranges, rest.windows))
    if not stops:
        return found, None
    return found, Barred(*(np.concatenate(columns) for columns in zip(*stops, strict=True)))


class _Part(NamedTuple):
    """Candidates of one entry.

    `owner` is the positive event of each candidate, `window` the row of its window in lo, hi and
    cuts, `event` the number of its event or -1.
    """

    owner: NDArray[np.int64]
    table: InstantTable
    window: NDArray[np.int64]
    lo: NDArray[np.int64]
    hi: NDArray[np.int64]
    event: NDArray[np.int64]
    cuts: NDArray[np.int64] | None = None


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
    cuts = None
    if any(it.cuts is not None and len(it.owner) for it in parts):
        cuts = np.tile(_NO_CUTS, (len(lo), width, 1))
        for it, first in zip(parts, before, strict=False):
            if it.cuts is not None:
                cuts[first : first + len(it.lo), : it.lo.shape[1]] = it.cuts
    order = np.lexsort((events, owners))
    owners, rows, events = owners[order], rows[order], events[order]
    again = (owners[1:] == owners[:-1]) & (events[1:] == events[:-1]) & (events[1:] >= 0)
    if again.any():
        heads = np.flatnonzero(np.concatenate([[True], ~again]))
        lo, hi, cuts = _unite_windows(
            heads, lo[rows], hi[rows], None if cuts is None else cuts[rows]
        )
        order, owners, rows = order[heads], owners[heads], np.arange(len(heads))
    return Cases(
        positives,
        take_instants(join_tables(tables), order),
        as_read_only(np.searchsorted(owners, np.arange(count + 1))),
        as_read_only(rows),
        as_read_only(lo),
        as_read_only(hi),
        None if cuts is None else as_read_only(cuts),
    )


def _unite_windows(
    heads: NDArray[np.intp],
    lo: NDArray[np.int64],
    hi: NDArray[np.int64],
    cuts: NDArray[np.int64] | None,
) -> tuple[Int64s, Int64s, Int64s | None]:
    """Return the union of the windows of each event, merged if it has no fixed ends.

    Parameters
    ----------
    heads : ndarray of int, shape (k,)
        Event i has the windows heads[i] to heads[i + 1] - 1.
    lo, hi : ndarray of int64, shape (n, w)
        The windows.
    cuts : ndarray of int64, shape (n, w, 4), or None
        Their fixed ends.
    """
    counts = np.diff(np.append(heads, len(lo)))
    most, width = int(counts.max()), lo.shape[1]
    event = np.repeat(np.arange(len(heads)), counts)
    place = np.arange(len(lo)) - heads[event]
    united = [np.full((len(heads), most, width), it) for it in (INFINITE_US, -INFINITE_US)]
    united[0][event, place], united[1][event, place] = lo, hi
    both = make_windows(united[0].reshape(len(heads), -1), united[1].reshape(len(heads), -1))
    merged = merge_windows(both)
    if cuts is None:
        return *merged, None
    fixed = np.tile(_NO_CUTS, (len(heads), most, width, 1))
    fixed[event, place] = cuts
    fixed = fixed.reshape(len(heads), -1, len(_NO_CUTS))
    plain = (np.abs(fixed) == INFINITE_US).all(axis=(1, 2))[:, None]
    low, high = (np.where(plain, *pair) for pair in zip(merged, both[:2], strict=True))
    return low, high, fixed


def _stack(ends: Sequence[Int64s], width: int, empty: int) -> Int64s:
    padded = [np.pad(it, ((0, 0), (0, width - it.shape[1])), constant_values=empty) for it in ends]
    return np.concatenate([np.zeros((0, width), np.int64), *padded])
