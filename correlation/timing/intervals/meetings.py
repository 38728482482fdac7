"""Base events with targets in reach: searched once for many conditions.

Problem. Conditions on the same two streams search the same segments, each with its own window. In
sparse streams most base events have no target in any of these windows. Find, for a reach, the runs
of base events with targets in reach, and these targets, so that the conditions search only them.

Algorithm. Two adjacent base events of a group are in one *meeting* if their targets in reach
overlap or touch. Since base events and targets are max-sorted, the first and the last target in
reach move forward only (galloping). A meeting ends before the first base event without a target in
reach, or whose targets begin after those so far. The meetings of a group share neither base events
nor targets. A reach is widened to multiples of the max power of two up to its width, so that
conditions with similar windows share one reach. The widened reach is at most three times as wide,
and the algorithms decide by the condition's own window.

Cost. O(b log d) for b base events whose targets are d apart, once for each widened reach.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
from numba import njit

from correlation.buffers.segment import match_groups
from correlation.timing.intervals.pairs import count_events
from correlation.timing.intervals.searching import _gallop_kernel

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, MutableMapping

    from numpy.typing import NDArray

    from correlation.buffers.columns import Int64s
    from correlation.buffers.segment import Segment

_COLUMNS = 4


def may_meet(a: Segment, b: Segment, reach: tuple[int, int]) -> bool:
    """Return whether max_B - max_A may lie in a reach for some events of two segments.

    Parameters
    ----------
    a, b : Segment
        Events of A and of B.
    reach : (int, int)
        Min and max s of any satisfied pair, microseconds.
    """
    min_s, max_s = reach
    return b.max_latest - a.min_latest >= min_s and b.min_latest - a.max_latest <= max_s


def matched_groups(
    shared: MutableMapping[Hashable, object], base: Segment, target: Segment, *, crossed: bool
) -> NDArray[np.int64]:
    """Return the groups of two segments that can meet; computed once for all conditions.

    Parameters
    ----------
    shared : mutable mapping
        `View.shared` of the block in which the segments are searched.
    base, target : Segment
        The segments to search.
    crossed : bool
        See `segment.match_groups`.

    Returns
    -------
    ndarray of int64, shape (k, 4)
        See `segment.match_groups`.
    """
    place = ("groups", id(base), id(target))
    if place not in shared:
        shared[place] = match_groups(base, target, crossed=crossed)
    return cast("NDArray[np.int64]", shared[place])


def find_meetings(
    shared: MutableMapping[Hashable, object],
    base: Segment,
    target: Segment,
    reach: tuple[int, int],
    *,
    crossed: bool,
) -> NDArray[np.int64]:
    """Return the parts of the groups in which base events have targets in reach.

    Parameters
    ----------
    shared, base, target, crossed
        As in `matched_groups`.
    reach : (int, int)
        Min and max of max_target - max_base, microseconds.

    Returns
    -------
    ndarray of int64, shape (k, 4)
        Groups as in `pairs.Correlate`; every base event with targets in reach is in one of them,
        together with all of these targets.
    """
    widened = widen(*reach)
    place = ("meetings", id(base), id(target), widened)
    if place not in shared:
        groups = matched_groups(shared, base, target, crossed=crossed)
        found = np.empty((count_events(groups), _COLUMNS), np.int64)
        count = _find_meetings_kernel(base.latest, target.latest, groups, widened, found)
        shared[place] = found[:count].copy()
    return cast("NDArray[np.int64]", shared[place])


def count_in_reach(
    base_latest: Int64s,
    target_latest: Int64s,
    groups: Int64s,
    reach: tuple[int, int],
    enough: int,
) -> int:
    """Return an upper bound of the pairs in reach; exact if it would exceed `enough`.

    Parameters
    ----------
    base_latest, target_latest, groups, reach
        As in `split_groups`.
    enough : int
        A bound up to this number is returned without a search.
    """
    bound = len(base_latest) * len(target_latest)
    if bound > enough:
        bound = int(((groups[:, 1] - groups[:, 0]) * (groups[:, 3] - groups[:, 2])).sum())
    if bound <= enough:
        return bound
    return int(_count_in_reach_kernel(base_latest, target_latest, groups, reach))


def split_groups(
    base_latest: Int64s,
    target_latest: Int64s,
    groups: Int64s,
    reach: tuple[int, int],
    max_pairs: int,
) -> Iterator[Int64s]:
    """Divide groups into parts, which are searched one after the other.

    Parameters
    ----------
    base_latest, target_latest : ndarray of int64, shapes (n,) and (m,)
        Max of the events, µs.
    groups : ndarray of int64, shape (k, 4)
        Groups as in `pairs.Correlate`.
    reach : (int, int)
        Min and max of max_target - max_base, µs.
    max_pairs : int
        Max number of pairs in reach of a part, unless a single base event has more.

    Yields
    ------
    ndarray of int64, shape (l, 4)
        Groups of a part. Each base event with targets in reach is in one part, together with all of
        these targets.
    """
    part: list[tuple[int, int, int, int]] = []
    left = max_pairs
    for begin, end, target, target_end in groups.tolist():
        targets, bases = target_latest[target:target_end], base_latest[begin:end]
        first = np.searchsorted(targets, bases + reach[0])
        last = np.searchsorted(targets, bases + reach[1], side="right")
        total = np.concatenate([[0], np.cumsum(last - first)])
        at = 0
        while at < len(bases):
            until = int(np.searchsorted(total, total[at] + left, side="right")) - 1
            if until <= at and part:
                yield np.array(part, np.int64)
                part, left = [], max_pairs
                continue
            until = max(until, at + 1)
            part.append(
                (begin + at, begin + until, target + int(first[at]), target + int(last[until - 1]))
            )
            left = max(left - int(total[until] - total[at]), 0)
            at = until
    if part:
        yield np.array(part, np.int64)


def widen(min_s: int, max_s: int) -> tuple[int, int]:
    """Widen a reach to multiples of the max power of two up to its width."""
    step = 1 << max(max_s - min_s, 1).bit_length() - 1
    return min_s // step * step, -(-max_s // step) * step


@njit(cache=True)
def _find_meetings_kernel(
    base_latest: NDArray[np.int64],
    target_latest: NDArray[np.int64],
    groups: NDArray[np.int64],
    reach: tuple[int, int],
    found: NDArray[np.int64],
) -> int:
    """Fill `found`; return the number of meetings."""
    count = 0
    for g in range(len(groups)):
        first = groups[g, 2]
        last = first
        end = groups[g, 3]
        met = False
        for i in range(groups[g, 0], groups[g, 1]):
            first = _gallop_kernel(target_latest, first, end, base_latest[i] + reach[0])
            last = _gallop_kernel(
                target_latest, max(first, last), end, base_latest[i] + reach[1] + 1
            )
            if first == last:
                met = False
                continue
            if met and first <= found[count - 1, 3]:
                found[count - 1, 1] = i + 1
                found[count - 1, 3] = last
                continue
            found[count, 0] = i
            found[count, 1] = i + 1
            found[count, 2] = first
            found[count, 3] = last
            count += 1
            met = True
    return count


@njit(cache=True)
def _count_in_reach_kernel(
    base_latest: NDArray[np.int64],
    target_latest: NDArray[np.int64],
    groups: NDArray[np.int64],
    reach: tuple[int, int],
) -> int:
    """Return the number of pairs in reach; `_find_meetings_kernel` merges what this counts."""
    count = 0
    for g in range(len(groups)):
        first = groups[g, 2]
        last = first
        end = groups[g, 3]
        for i in range(groups[g, 0], groups[g, 1]):
            first = _gallop_kernel(target_latest, first, end, base_latest[i] + reach[0])
            last = _gallop_kernel(
                target_latest, max(first, last), end, base_latest[i] + reach[1] + 1
            )
            count += last - first
    return count
