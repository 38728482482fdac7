"""Where the regions of base events fall among max-sorted targets.

Problem. LH, LL, RL and RH (`timing.regions`) of each base event as positions in its targets:
left ≤ sure ≤ right ≤ stop, so that [left, sure) is the left probe region, [sure, right) the
satisfaction region and [right, stop) the right probe region.

Algorithm. One event: four binary searches. A block, whose base events are max-sorted as well: the
outermost reach of any of them moves forward only (galloping), and the ends of each are searched
inside it.

Reference. Lee and Lee 2010, section 4.1; Algorithm 2, line 1; Algorithm 6, line 5.

Cost. O(log t) an event for t targets, in a block for t targets in reach; 32 bytes a base event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from correlation.timing.intervals.pairs import count_events
from correlation.timing.intervals.regions import _locate_offsets_kernel
from correlation.timing.intervals.satisfaction import bounds
from correlation.timing.intervals.searching import _gallop_kernel, _search_kernel
from correlation.timing.intervals.window import UNBOUNDED_US

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from correlation.timing.intervals.pairs import Side
    from correlation.timing.intervals.window import TimingWindow, WindowScalars


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
        As `pairs.Correlate` takes them, checked.

    Returns
    -------
    Located
        The regions.
    """
    base_lengths, target_lengths = range_lengths(base, target, groups, target_lengths)
    rows = np.empty((count_events(groups), 4), np.int64)
    certain, probed = _locate_block_kernel(
        base.earliest,
        base.latest,
        target.latest,
        groups,
        window.scalars(),
        bounds(window, *base_lengths, *target_lengths),
        target_lengths,
        rows,
    )
    return Located(rows, int(certain), int(probed))


def range_lengths(
    base: Side,
    target: Side,
    groups: NDArray[np.int64],
    target_lengths: tuple[int, int] | None,
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Give the shortest and longest length of either side, that of the targets if not known.

    Parameters
    ----------
    base, target, groups, target_lengths
        As `pairs.Correlate` takes them, checked.

    Returns
    -------
    base_lengths, target_lengths : (int, int)
        Microseconds; 0, 0 of no events.
    """
    base_lengths = _range_lengths_kernel(base.earliest, base.latest, groups[:, :2])
    if target_lengths is None:
        target_lengths = _range_lengths_kernel(target.earliest, target.latest, groups[:, 2:])
    return base_lengths, target_lengths


@njit(cache=True)
def _range_lengths_kernel(
    earliest: NDArray[np.int64], latest: NDArray[np.int64], ranges: NDArray[np.int64]
) -> tuple[int, int]:
    """Shortest and longest length of the events inside the ranges; 0, 0 if there are none."""
    shortest = UNBOUNDED_US
    longest = 0
    for g in range(len(ranges)):
        for i in range(ranges[g, 0], ranges[g, 1]):
            length = latest[i] - earliest[i]
            shortest = min(shortest, length)
            longest = max(longest, length)
    return min(shortest, longest), longest


@njit(cache=True)
def _locate_block_kernel(
    base_earliest: NDArray[np.int64],
    base_latest: NDArray[np.int64],
    target_latest: NDArray[np.int64],
    groups: NDArray[np.int64],
    window: WindowScalars,
    reach: tuple[int, int],
    lengths: tuple[int, int],
    located: NDArray[np.int64],
) -> tuple[int, int]:
    """Fill `located`; returns the sizes of the satisfaction and of the probe regions."""
    row = 0
    certain = 0
    probed = 0
    for g in range(len(groups)):
        first = groups[g, 2]
        last = first
        end = groups[g, 3]
        for i in range(groups[g, 0], groups[g, 1]):
            latest = base_latest[i]
            first = _gallop_kernel(target_latest, first, end, latest + reach[0])
            last = _gallop_kernel(target_latest, max(first, last), end, latest + reach[1] + 1)
            if first == last:
                located[row, :] = first
                row += 1
                continue
            left, sure, right, stop = _locate_event_kernel(
                base_earliest[i], latest, target_latest, first, last, lengths, window
            )
            located[row, 0] = left
            located[row, 1] = sure
            located[row, 2] = right
            located[row, 3] = stop
            certain += right - sure
            probed += (sure - left) + (stop - right)
            row += 1
    return certain, probed


@njit(cache=True)
def _locate_event_kernel(
    earliest: int,
    latest: int,
    target_latest: NDArray[np.int64],
    begin: int,
    end: int,
    lengths: tuple[int, int],
    window: WindowScalars,
) -> tuple[int, int, int, int]:
    """left, sure, right, stop of a base event among the targets in [begin, end)."""
    lh, ll, rl, rh = _locate_offsets_kernel(latest - earliest, lengths[0], lengths[1], window)
    left = _search_kernel(target_latest, begin, end, latest + lh)
    stop = _search_kernel(target_latest, left, end, latest + rh + 1)
    sure = _search_kernel(target_latest, left, stop, latest + ll)
    right = _search_kernel(target_latest, sure, stop, latest + rl + 1)
    return left, sure, right, stop
