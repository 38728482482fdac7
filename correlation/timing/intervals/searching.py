"""Binary search and galloping search among ascending times.

Cost. Binary search: O(log n) for a range of n; galloping: O(log d) for the distance d to the
answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numba import njit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@njit(cache=True)
def _gallop_kernel(latest: NDArray[np.int64], begin: int, end: int, value: int) -> int:
    """Find the first position in [begin, end) with latest ≥ value, else end, in growing steps."""
    step = 1
    while begin < end and latest[min(begin + step, end) - 1] < value:
        begin = min(begin + step, end)
        step *= 2
    position: int = _search_kernel(latest, begin, min(begin + step, end), value)
    return position


@njit(cache=True)
def _search_kernel(latest: NDArray[np.int64], begin: int, end: int, value: int) -> int:
    """Find the first position in [begin, end) with latest ≥ value, else end."""
    while begin < end:
        middle = (begin + end) >> 1
        if latest[middle] < value:
            begin = middle + 1
        else:
            end = middle
    return begin
