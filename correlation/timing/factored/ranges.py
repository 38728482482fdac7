"""Max values of ranges of a column.

Algorithm. The sparse table of range minimum queries (Bender and Farach-Colton 2000, section 2), one
level at a time: a range is the union of two ranges, perhaps overlapping, whose length is the max
power of two that fits.

Cost. O(n log n + k) for n values and k ranges; memory O(n).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def max_in_ranges(values: NDArray[np.int64], ranges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the max value of each range.

    Parameters
    ----------
    values : int64[n]
        The column.
    ranges : int64[k, 2]
        Half-open ranges, not empty.
    """
    begin, end = ranges[:, 0], ranges[:, 1]
    # Exact: lengths are far below 2**52.
    level_of = np.frexp(end - begin)[1] - 1
    found = np.empty(len(ranges), np.int64)
    level = values
    for power in range(int(level_of.max(initial=-1)) + 1):
        mine = np.flatnonzero(level_of == power)
        found[mine] = np.maximum(level[begin[mine]], level[end[mine] - 2**power])
        level = np.maximum(level[: -(2**power)], level[2**power :])
    return found
