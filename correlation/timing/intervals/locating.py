"""Positions of the regions of base events among max-sorted targets.

Problem. Find LH, LL, RL and RH (`intervals.regions`) of each base event as positions in its
targets: left ≤ sure ≤ right ≤ stop, so that [left, sure) is the left probe region, [sure, right)
the satisfaction region and [right, stop) the right probe region. For events with histograms: find
the targets in reach and the pieces of the class (`search.locate_event`).

Algorithm. One event: binary searches. A block, whose base events are max-sorted as well: the
outermost reach of all its events moves forward only (galloping), and the ends of each event's
regions are searched inside it.

Reference. Lee and Lee 2010, section 4.1; Algorithm 2, line 1; Algorithm 6, line 5.

Cost. O(log t) per event for t targets, in a block for t targets in reach; 32 bytes per base event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from correlation.timing.intervals.pairs import count_events
from correlation.timing.intervals.search import locate_event, make_search
from correlation.timing.intervals.searching import _gallop_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from correlation.timing.intervals.pairs import Side
    from correlation.timing.intervals.search import AnySearch
    from correlation.timing.intervals.window import TimingWindow


class Located(NamedTuple):
    """The regions of a block.

    Attributes
    ----------
    rows : ndarray of int64, shape (b, 4)
        left, sure, right, stop of each base event, in order of the groups.
    certain, probed : int
        Targets in satisfaction regions, and in probe regions.
    """

    rows: NDArray[np.int64]
    certain: int
    probed: int


def locate_block(
    base: Side,
    target: Side,
    groups: NDArray[np.int64],
    window: TimingWindow,
    target_lengths: tuple[int, int] | None,
) -> Located:
    """Locate the regions of all base events.

    Parameters
    ----------
    base, target, groups, window, target_lengths
        Checked arguments of `pairs.Correlate`.

    Returns
    -------
    Located
        The regions.
    """
    search = make_search(base, target, groups, window, target_lengths, exclude_same=False)
    rows, reached, certain = locate_events(search)
    return Located(rows, certain, reached - certain)


def locate_events(search: AnySearch) -> tuple[NDArray[np.int64], int, int]:
    """Locate the targets of all base events of any kind of search.

    Returns
    -------
    rows : ndarray of int64, shape (b, 4)
        Results of `search.locate_event`, in order of the groups.
    reached : int
        Sum of the targets in reach of each base event.
    between : int
        Sum of the differences of the two middle numbers; for intervals, the certain targets.
    """
    rows = np.empty((count_events(search.groups), 4), np.int64)
    reached, between = _locate_events_kernel(search, rows)
    return rows, int(reached), int(between)


@njit(cache=True)
def _locate_events_kernel(search: AnySearch, rows: NDArray[np.int64]) -> tuple[int, int]:
    """Fill `rows`; see `locate_events`."""
    groups = search.groups
    targets = search.target_latest
    reach = search.reach
    row = 0
    reached = 0
    between = 0
    for g in range(len(groups)):
        first = groups[g, 2]
        last = first
        end = groups[g, 3]
        for i in range(groups[g, 0], groups[g, 1]):
            latest = search.base_latest[i]
            first = _gallop_kernel(targets, first, end, latest + reach[0])
            last = _gallop_kernel(targets, max(first, last), end, latest + reach[1] + 1)
            if first == last:
                rows[row, :] = first
                row += 1
                continue
            begin, second, third, stop = locate_event(search, i, first, last)
            rows[row, 0] = begin
            rows[row, 1] = second
            rows[row, 2] = third
            rows[row, 3] = stop
            reached += stop - begin
            between += third - second
            row += 1
    return reached, between
