"""Kernels: join combinations with the events of a view, and find events that stop combinations.

Problem. For each combination, a row of times and the number of its group, look at the events of
the group in the range of times that the relations leave, and decide each one exactly.

Cost. O(log g + log n) for g groups of n events, and O(1) for each event in the range.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from correlation.buffers.columns import Int64s
from correlation.event_query.evaluation.clauses import (
    Clauses,
    Ranges,
    _holds_kernel,
    _range_kernel,
)
from correlation.event_query.evaluation.views import Groups

# Elements of the position in which `_join_kernel` returns.
ROW, POSITION, LOOKED_AT = range(3)
_NONE = -1


@njit(cache=True)
def _lower_bound_kernel(column: Int64s, low: int, high: int, value: int) -> int:
    """Return the first place from low to high - 1 whose element is at least a value, or high."""
    while low < high:
        middle = (low + high) // 2
        if column[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def _find_group_kernel(numbers: Int64s, number: int) -> int:
    """Return the place of a group, or -1."""
    place = _lower_bound_kernel(numbers, 0, len(numbers), number)
    return place if place < len(numbers) and numbers[place] == number else _NONE


@njit(cache=True)
def _filter_kernel(times: Int64s, clauses: Clauses, holds: NDArray[np.bool_]) -> None:
    """Mark the combinations that satisfy a clause."""
    for i in range(len(times)):
        holds[i] = _holds_kernel(times, i, clauses)


@njit(cache=True)
def _join_kernel(
    numbers: Int64s,
    times: Int64s,
    place: int,
    groups: Groups,
    ranges: Ranges,
    clauses: Clauses,
    bounds: tuple[int, int],
    at: Int64s,
    found: Int64s,
    filled: int,
) -> int:
    """Fill `found` with pairs (combination, position of an event); return how many it has.

    If `found` is full, the kernel returns early, and continues from `at` when it is called again.

    Parameters
    ----------
    numbers : ndarray of int64, shape (k,)
        Group of each combination.
    times : ndarray of int64, shape (k, columns)
        Times; the columns of the joined alias are overwritten.
    place : int
        Number of the joined alias.
    groups, ranges, clauses
        The events, and the relations with them.
    bounds : (int, int)
        First and last time of the events to join.
    at : ndarray of int64, shape (3,)
        Combination, position in its group or -1, and number of events looked at.
    found : ndarray of int64, shape (capacity, 2)
        The pairs.
    filled : int
        Number of pairs that `found` has already.
    """
    i, j = at[ROW], at[POSITION]
    group, searched = _NONE, np.int64(_NONE)
    while i < len(numbers):
        first, last = _range_kernel(times, i, ranges)
        first, last = max(first, bounds[0]), min(last, bounds[1])
        if first <= last and numbers[i] != searched:
            searched = numbers[i]
            group = _find_group_kernel(groups.numbers, searched)
        if first > last or group == _NONE:
            i, j = i + 1, _NONE
            continue
        stop = groups.stops[group]
        if j == _NONE:
            j = _lower_bound_kernel(groups.end, groups.starts[group], stop, first)
        while j < stop and groups.end[j] <= last:
            if filled == len(found):
                at[ROW], at[POSITION] = i, j
                return filled
            at[LOOKED_AT] += 1
            times[i, 2 * place], times[i, 2 * place + 1] = groups.begin[j], groups.end[j]
            if _holds_kernel(times, i, clauses):
                found[filled, 0], found[filled, 1] = i, j
                filled += 1
            j += 1
        i, j = i + 1, _NONE
    at[ROW], at[POSITION] = i, j
    return filled


@njit(cache=True)
def _stop_kernel(
    numbers: Int64s,
    times: Int64s,
    place: int,
    groups: Groups,
    ranges: Ranges,
    clauses: Clauses,
    bounds: tuple[int, int],
    stopped: NDArray[np.bool_],
) -> int:
    """Mark the combinations that an event stops; return the number of events looked at.

    Parameters
    ----------
    numbers, times, place, groups, ranges, clauses
        As for `_join_kernel`; `place` is that of the negated alias.
    bounds : (int, int)
        First and last time of the events.
    stopped : ndarray of bool, shape (k,)
        Combinations that are marked already are skipped.
    """
    looked_at = 0
    group, searched = _NONE, np.int64(_NONE)
    for i in range(len(numbers)):
        if stopped[i]:
            continue
        first, last = _range_kernel(times, i, ranges)
        first, last = max(first, bounds[0]), min(last, bounds[1])
        if first > last:
            continue
        if numbers[i] != searched:
            searched = numbers[i]
            group = _find_group_kernel(groups.numbers, searched)
        if group == _NONE:
            continue
        stop = groups.stops[group]
        j = _lower_bound_kernel(groups.end, groups.starts[group], stop, first)
        while j < stop and groups.end[j] <= last:
            looked_at += 1
            times[i, 2 * place], times[i, 2 * place + 1] = groups.begin[j], groups.end[j]
            if _holds_kernel(times, i, clauses):
                stopped[i] = True
                break
            j += 1
    return looked_at


@njit(cache=True)
def _locate_kernel(
    numbers: Int64s,
    times: Int64s,
    groups: Groups,
    ranges: Ranges,
    bounds: tuple[int, int],
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
) -> None:
    """Write the range of positions of the events that may stop each combination.

    Parameters
    ----------
    numbers, times, groups, ranges, bounds
        As for `_stop_kernel`.
    begin, end : ndarray of int64, shape (k,)
        Combination i has the positions begin[i] to end[i] - 1.
    """
    group, searched = _NONE, np.int64(_NONE)
    for i in range(len(numbers)):
        begin[i] = end[i] = 0
        first, last = _range_kernel(times, i, ranges)
        first, last = max(first, bounds[0]), min(last, bounds[1])
        if first > last:
            continue
        if numbers[i] != searched:
            searched = numbers[i]
            group = _find_group_kernel(groups.numbers, searched)
        if group != _NONE:
            stop = groups.stops[group]
            begin[i] = _lower_bound_kernel(groups.end, groups.starts[group], stop, first)
            end[i] = _lower_bound_kernel(groups.end, begin[i], stop, last + 1)
