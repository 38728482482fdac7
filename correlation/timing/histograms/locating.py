"""Positions of the pieces of base events among max-sorted targets.

Problem. Find the pieces (`histograms.pieces`) of each base event as ranges of positions in its
targets. `intervals.locating` does not list single pieces, which the look-up algorithm needs.

Algorithm. The base events of a group are max-sorted too: the outermost reach of all its events
moves forward only (galloping), and the ends of each piece are searched inside it.

Reference. Lee and Lee 2010, Algorithm 6, line 5, extended to many pieces.

Cost. O(log t) per piece for t targets in reach; 32 bytes per piece.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from correlation.timing.histograms.pieces import CERTAIN
from correlation.timing.intervals.searching import _gallop_kernel, _search_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from correlation.timing.histograms.search import Search

# Columns of `Located.ranges`.
BASE, BEGIN, END, HOW = range(4)


class Located(NamedTuple):
    """The pieces of a block that have targets.

    Attributes
    ----------
    ranges : ndarray of int64, shape (k, 4)
        Base event, first target, end of the targets, and kind of the piece; ordered by group, base
        event and s.
    certain, probed : int
        Number of targets in certain pieces, and in probed pieces.
    """

    ranges: NDArray[np.int64]
    certain: int
    probed: int


def locate_block(search: Search) -> Located:
    """Locate the pieces of all base events."""
    room = int(np.diff(search.pieces.starts)[search.base_codes].sum())
    ranges = np.empty((room, 4), np.int64)
    count, certain, probed = _locate_block_kernel(search, ranges)
    return Located(ranges[:count], int(certain), int(probed))


@njit(cache=True)
def _locate_block_kernel(search: Search, ranges: NDArray[np.int64]) -> tuple[int, int, int]:
    """Fill `ranges`; return their number, and the targets in certain and in probed pieces."""
    groups = search.groups
    pieces = search.pieces
    targets = search.target_latest
    count = 0
    certain = 0
    probed = 0
    for g in range(len(groups)):
        first = groups[g, 2]
        last = first
        end = groups[g, 3]
        for i in range(groups[g, 0], groups[g, 1]):
            latest = search.base_latest[i]
            first = _gallop_kernel(targets, first, end, latest + search.reach[0])
            last = _gallop_kernel(targets, max(first, last), end, latest + search.reach[1] + 1)
            begin = first
            kind = search.base_codes[i]
            for p in range(pieces.starts[kind], pieces.starts[kind + 1]):
                begin = _search_kernel(targets, begin, last, latest + pieces.low[p])
                stop = _search_kernel(targets, begin, last, latest + pieces.high[p] + 1)
                if begin == stop:
                    continue
                ranges[count, BASE] = i
                ranges[count, BEGIN] = begin
                ranges[count, END] = stop
                ranges[count, HOW] = pieces.how[p]
                count += 1
                if pieces.how[p] == CERTAIN:
                    certain += stop - begin
                else:
                    probed += stop - begin
                begin = stop
    return count, certain, probed
