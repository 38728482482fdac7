"""Shape classes: events of one length, sorted by latest time in each class.

Problem. For two fixed lengths the s of the satisfied pairs form one interval
(intervals.satisfaction). Classify the events of every group by length.

Algorithm. Only events with a counterpart in reach are listed: the reach moves forward over the
max-sorted events (galloping). The listed events are sorted by (length, row). A *run* is a range of
one length and one group; its rows and its latest times ascend.

Cost. O(n log n) for n listed events, one sort of plain integers if length and row together fit
into 63 bits; memory O(n).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from correlation.timing.intervals.searching import _gallop_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from correlation.timing.intervals.pairs import Side

_SIGNED_BITS = 63
# Columns of `Classes.runs`.
RUN_BEGIN, RUN_END, RUN_GROUP, RUN_CLASS = range(4)


class Classes(NamedTuple):
    """Events by length.

    Attributes
    ----------
    rows : ndarray of int64, shape (n,)
        Positions in the side.
    latest : ndarray of int64, shape (n,)
        Latest times of these rows, microseconds.
    runs : ndarray of int64, shape (k, 4)
        Begin and end of each run in `rows`, its group, and its class; ordered by class, group.
    lengths : ndarray of int64, shape (c,)
        Length of each class, ascending, microseconds.
    """

    rows: NDArray[np.int64]
    latest: NDArray[np.int64]
    runs: NDArray[np.int64]
    lengths: NDArray[np.int64]


def classify_in_reach(
    base: Side, target: Side, groups: NDArray[np.int64], reach: tuple[int, int]
) -> tuple[Classes, Classes]:
    """Classify by length the events that have a counterpart in reach.

    Parameters
    ----------
    base, target, groups
        Checked arguments of `pairs.Correlate`.
    reach : (int, int)
        Min and max s of any satisfied pair, microseconds.

    Returns
    -------
    base, target : Classes
        The classes of either side.
    """
    base_rows, base_groups, target_rows, target_groups = _list_in_reach_kernel(
        base.latest, target.latest, groups, reach
    )
    return _classify(base, base_rows, base_groups), _classify(target, target_rows, target_groups)


def _classify(side: Side, rows: NDArray[np.int64], groups: NDArray[np.int64]) -> Classes:
    """Build classes from listed rows and their groups."""
    latest = side.latest[rows]
    lengths = latest - side.earliest[rows]
    order = _order_by_length(lengths)
    runs, distinct = _split_runs_kernel(lengths[order], groups[order])
    return Classes(rows[order], latest[order], runs, distinct)


def _order_by_length(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the stable order by length."""
    if not len(lengths):
        return np.zeros(0, np.int64)
    shortest = lengths.min()
    place_bits = len(lengths).bit_length()
    if int(lengths.max() - shortest).bit_length() + place_bits > _SIGNED_BITS:
        return np.argsort(lengths, kind="stable")
    # Sorting numbers is several times faster than sorting their positions.
    keys = ((lengths - shortest) << place_bits) | np.arange(len(lengths))
    keys.sort()
    order: NDArray[np.int64] = keys & ((1 << place_bits) - 1)
    return order


@njit(cache=True)
def _list_in_reach_kernel(
    base_latest: NDArray[np.int64],
    target_latest: NDArray[np.int64],
    groups: NDArray[np.int64],
    reach: tuple[int, int],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return base rows, their groups, target rows, their groups."""
    bases = 0
    targets = 0
    for g in range(len(groups)):
        bases += groups[g, 1] - groups[g, 0]
        targets += groups[g, 3] - groups[g, 2]
    base_rows = np.empty(bases, np.int64)
    base_groups = np.empty(bases, np.int64)
    target_rows = np.empty(targets, np.int64)
    target_groups = np.empty(targets, np.int64)
    bases = 0
    targets = 0
    for g in range(len(groups)):
        first = groups[g, 2]
        last = first
        listed = first
        end = groups[g, 3]
        for i in range(groups[g, 0], groups[g, 1]):
            latest = base_latest[i]
            first = _gallop_kernel(target_latest, first, end, latest + reach[0])
            last = _gallop_kernel(target_latest, max(first, last), end, latest + reach[1] + 1)
            if first == last:
                continue
            base_rows[bases] = i
            base_groups[bases] = g
            bases += 1
            for j in range(max(first, listed), last):
                target_rows[targets] = j
                target_groups[targets] = g
                targets += 1
            listed = last
    return base_rows[:bases], base_groups[:bases], target_rows[:targets], target_groups[:targets]


@njit(cache=True)
def _split_runs_kernel(
    lengths: NDArray[np.int64], groups: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the runs of events ordered by (length, group), and the distinct lengths."""
    runs = np.empty((len(lengths), 4), np.int64)
    distinct = np.empty(len(lengths), np.int64)
    count = 0
    classes = 0
    for k in range(len(lengths)):
        if k == 0 or lengths[k] != lengths[k - 1]:
            distinct[classes] = lengths[k]
            classes += 1
        elif groups[k] == groups[k - 1]:
            runs[count - 1, RUN_END] = k + 1
            continue
        runs[count, RUN_BEGIN] = k
        runs[count, RUN_END] = k + 1
        runs[count, RUN_GROUP] = groups[k]
        runs[count, RUN_CLASS] = classes - 1
        count += 1
    return runs[:count].copy(), distinct[:classes].copy()
