"""Stable counting sort of rows by a code."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Int64s = NDArray[np.int64]


def count_sort(codes: Int64s, count: int) -> tuple[Int64s, Int64s]:
    """Sort rows by code, stably, in O(rows + codes).

    Parameters
    ----------
    codes : int64[n]
        Codes from 0 to count - 1.
    count : int
        Number of codes.

    Returns
    -------
    int64[n], int64[count + 1]
        The rows in order, and the place at which those of each code start.
    """
    order, bounds = np.empty(len(codes), np.int64), np.zeros(count + 1, np.int64)
    _count_sort_kernel(codes, bounds, order)
    return order, bounds


def sort_groups(codes: Int64s, count: int, times: Int64s) -> tuple[Int64s, Int64s]:
    """Sort rows by (code, time), stably.

    Parameters
    ----------
    codes, count
        As for `count_sort`.
    times : int64[n]
        Times.

    Returns
    -------
    int64[n], int64[count + 1]
        As of `count_sort`.
    """
    by_time = np.argsort(times, kind="stable")
    order, bounds = count_sort(codes[by_time], count)
    return by_time[order], bounds


@njit(cache=True)
def _count_sort_kernel(codes: Int64s, bounds: Int64s, order: Int64s) -> None:
    """Sort rows by code, stably; code c has the rows bounds[c] to bounds[c + 1] - 1."""
    for code in codes:
        bounds[code + 1] += 1
    for c in range(len(bounds) - 1):
        bounds[c + 1] += bounds[c]
    places = bounds[:-1].copy()
    for i in range(len(codes)):
        order[places[codes[i]]] = i
        places[codes[i]] += 1
