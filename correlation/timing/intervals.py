"""Sets of integers as intervals.

Definitions. A set is a tuple of closed intervals, ascending, none empty, no two touching: equal
sets are equal tuples.

Cost. O(k log k) for k intervals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

Intervals = tuple[tuple[int, int], ...]


def unite(spans: Iterable[tuple[int, int]]) -> Intervals:
    """Return the set of all integers inside any of the spans.

    Parameters
    ----------
    spans : iterable of (int, int)
        Closed, in any order; empty if the first end exceeds the second.
    """
    united: list[tuple[int, int]] = []
    for low, high in sorted(span for span in spans if span[0] <= span[1]):
        if united and low <= united[-1][1] + 1:
            united[-1] = (united[-1][0], max(high, united[-1][1]))
        else:
            united.append((low, high))
    return tuple(united)


def intersect(one: Intervals, other: Intervals) -> Intervals:
    """Return the integers inside both sets."""
    found = []
    i = j = 0
    while i < len(one) and j < len(other):
        low, high = max(one[i][0], other[j][0]), min(one[i][1], other[j][1])
        if low <= high:
            found.append((low, high))
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
    return tuple(found)


def subtract(one: Intervals, other: Intervals) -> Intervals:
    """Return the integers inside `one` and outside `other`."""
    found = []
    for low, high in one:
        start = low
        for cut_low, cut_high in other:
            if cut_low <= high and cut_high >= start:
                found.append((start, cut_low - 1))
                start = cut_high + 1
        found.append((start, high))
    return unite(found)
