"""Sets of integers as intervals.

Definitions. A set is a tuple of closed intervals, ascending, not empty and not touching, so that
equal sets are equal tuples.

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
        Closed intervals in any order; empty if the first end exceeds the second.
    """
    united: list[tuple[int, int]] = []
    for low, high in sorted(span for span in spans if span[0] <= span[1]):
        if united and low <= united[-1][1] + 1:
            united[-1] = (united[-1][0], max(high, united[-1][1]))
        else:
            united.append((low, high))
    return tuple(united)
