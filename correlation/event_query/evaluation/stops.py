"""Kernels: the values of an uncertain instant T_u at which a combination is not a result.

Problem. A positive event u has an uncertain instant; the other events of its combination, and some
negated events, have exact times. Find the values of T_u at which a relation among the positive
events does not hold, or a negated event stops the combination.

Definitions. The times at which a formula holds are a union of intervals (`spans`). If the instant
of an event u is exact, it decides in whole microseconds, and open ends count. Otherwise open and
closed ends are equivalent, because an end has probability 0.

Algorithm. Each list is written twice by the same kernel: first it is counted, then filled.

Cost. O(c log c + atoms) a combination with c clauses; O(atoms) for each negated event.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from correlation.buffers.columns import Int64s
from correlation.event_query.absence.barring import Barred
from correlation.event_query.evaluation.spans import Spans, _span_kernel
from correlation.event_query.evaluation.views import Groups

_COUNT_ONLY = np.empty((0, 2), np.int64)


def list_gaps(times: Int64s, place: int, domain: Spans, stopped: NDArray[np.bool_]) -> Barred:
    """Return the times of T_u at which the relations among the positive events do not hold.

    Parameters
    ----------
    times : int64[k, columns]
        Times of the combinations, in µs.
    place : int
        Number of the alias u.
    domain : Spans
        The relations, as intervals of T_u.
    stopped : bool[k]
        Marks the combinations whose relations hold with probability 0; they have no intervals.
    """
    bounds = np.zeros(len(times) + 1, np.int64)
    _list_gaps_kernel(times, place, domain, stopped, bounds, _COUNT_ONLY)
    ends = np.empty((bounds[-1], 2), np.int64)
    _list_gaps_kernel(times, place, domain, stopped, bounds, ends)
    return _own(bounds, ends)


def list_stops(
    times: Int64s,
    place: int,
    negated: tuple[int, Spans],
    groups: Groups,
    rows: tuple[Int64s, Int64s],
    stopped: NDArray[np.bool_],
) -> Barred:
    """Return the times of T_u at which events of a negated alias stop the combinations.

    Parameters
    ----------
    times : int64[k, columns]
        Times of the combinations, in µs; the columns of the negated alias are overwritten.
    place : int
        Number of the alias u.
    negated : (int, Spans)
        Number of the negated alias, and its relations as intervals of T_u. Its events have exact
        times.
    groups : Groups
        Its events.
    rows : (int64[k], int64[k])
        Combination i has the positions rows[0][i] to rows[1][i] - 1 of the events.
    stopped : bool[k]
        Marks the combinations that an event stops at all values of T_u. Combinations that are
        marked have no intervals.
    """
    bounds = np.zeros(len(times) + 1, np.int64)
    for size_known in (False, True):
        ends = np.empty((bounds[-1], 2), np.int64) if size_known else _COUNT_ONLY
        _list_stops_kernel(
            times, place, negated[0], groups, *rows, negated[1], stopped, bounds, ends
        )
    return _own(bounds, ends)


def _own(bounds: NDArray[np.int64], ends: NDArray[np.int64]) -> Barred:
    owner = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    return Barred(owner, ends[:, 0], ends[:, 1])


@njit(cache=True)
def _sort_spans_kernel(
    times: Int64s,
    i: int,
    domain: Spans,
    instant: tuple[int, int],
    lows: NDArray[np.int64],
    highs: NDArray[np.int64],
) -> int:
    """Write the intervals in which the relations hold, by their begin; return their number.

    For an exact instant, nothing is written, and the number is that of the clauses that hold.
    """
    first, last = instant
    held = 0
    for c in range(len(domain.starts) - 1):
        lo, hi, open_lo, open_hi = _span_kernel(times, i, domain, c)
        if first == last:
            held += lo + open_lo <= first <= hi - open_hi
            continue
        lo = max(lo, first)
        hi = min(hi, last)
        if lo < hi:
            k = held
            while k > 0 and lows[k - 1] > lo:
                lows[k], highs[k] = lows[k - 1], highs[k - 1]
                k -= 1
            lows[k], highs[k] = lo, hi
            held += 1
    return held


@njit(cache=True)
def _list_gaps_kernel(
    times: Int64s,
    place: int,
    domain: Spans,
    stopped: NDArray[np.bool_],
    bounds: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> None:
    """Write the gaps of each combination into `ends`; if it is empty, count them, in `bounds`."""
    clauses = len(domain.starts) - 1
    lows = np.empty(clauses, np.int64)
    highs = np.empty(clauses, np.int64)
    count = 0
    for i in range(len(times)):
        bounds[i + 1] = count
        if stopped[i]:
            continue
        first = times[i, 2 * place]
        last = times[i, 2 * place + 1]
        held = _sort_spans_kernel(times, i, domain, (first, last), lows, highs)
        if held == 0:
            stopped[i] = True
            continue
        if first == last:
            continue
        reached = first
        for k in range(held + 1):
            begin = lows[k] if k < held else last
            if begin > reached:
                if len(ends):
                    ends[count, 0], ends[count, 1] = reached, begin
                count += 1
            if k < held:
                reached = max(reached, highs[k])
        bounds[i + 1] = count


@njit(cache=True)
def _list_stops_kernel(
    times: Int64s,
    place: int,
    negated: int,
    groups: Groups,
    begin: Int64s,
    end: Int64s,
    spans: Spans,
    stopped: NDArray[np.bool_],
    bounds: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> None:
    """Write the intervals of each combination into `ends`; if it is empty, count, in `bounds`.

    An interval that meets the previous one of its combination is joined to it.
    """
    count = 0
    for i in range(len(times)):
        start = count
        first = times[i, 2 * place]
        last = times[i, 2 * place + 1]
        low = high = np.int64(0)
        j = begin[i]
        while not stopped[i] and j < end[i]:
            times[i, 2 * negated], times[i, 2 * negated + 1] = groups.begin[j], groups.end[j]
            for c in range(len(spans.starts) - 1):
                lo, hi, open_lo, open_hi = _span_kernel(times, i, spans, c)
                if first == last:
                    stopped[i] |= lo + open_lo <= first <= hi - open_hi
                    continue
                lo = max(lo, first)
                hi = min(hi, last)
                if lo >= hi:
                    continue
                if count > start and lo <= high and low <= hi:
                    low = min(low, lo)
                    high = max(high, hi)
                else:
                    count += 1
                    low = lo
                    high = hi
                if len(ends):
                    ends[count - 1, 0], ends[count - 1, 1] = low, high
                stopped[i] |= low == first and high == last
            j += 1
        if stopped[i]:
            count = start
        bounds[i + 1] = count
