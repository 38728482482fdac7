"""The s-windows of the classes that meet, computed once and kept across blocks.

Problem. With the s-windows of all pairs of classes every pair of events is decided by its s
(docs/proofs.md, P-TEMPLATES). One takes as long as to decide some thousand pairs: that pays where
shapes come again, as templates do, and does not where every event has one of its own.

Algorithm. Searches without s-windows decide every pair that positions leave open. These are
credited. When the credit is what the missing s-windows cost, they are computed: so the search costs
at most about twice what the better of both ways would have cost, whatever comes (ski rental; Karlin
et al. 1988). S-windows of two intervals are nearly for nothing.

Cost. O(1) to look one up; at most `_KEPT` are kept, and at most `_KEPT_GRIDS` sets of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from correlation.timing.s_windows import s_windows
from correlation.timing.satisfaction import s_window
from correlation.timing.stochastic_order import tabulate_shifts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from correlation.timing.intervals import Intervals
    from correlation.timing.shaped.classes import Classes
    from correlation.timing.template_ranges import Grid
    from correlation.timing.window import TimingWindow

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
# Pairs of classes of one search for which s-windows are computed at all.
CLASS_PAIR_LIMIT = 1024
# What an s-window costs, in pairs decided without it: 0.1 to 0.4 ms against 0.04 to 0.07 µs were
# measured (benchmarks/ptj), and more where there are more pairs of edges than so many: 50 ms of
# 2,600 in a narrow window. It serves the searches to come as well.
PROBES_PER_WINDOW = 3000
_CHEAP_EDGES = 200
# What may be spent at once where s-windows are asked for: about a tenth of a second.
PRICE_AT_ONCE = 1_500_000
# A few MB of intervals and keys.
_KEPT = 8192
_KEPT_GRIDS = 64


class WindowBook:
    """The s-windows of a condition.

    Parameters
    ----------
    window : TimingWindow
        The condition's.
    """

    def __init__(self, window: TimingWindow) -> None:
        self.window = window
        self._windows: dict[tuple[bytes, bytes], Intervals] = {}
        self._grids: dict[tuple[tuple[bytes, ...], tuple[bytes, ...]], Grid] = {}
        self._shifts: dict[tuple[bytes, ...], NDArray[np.int64]] = {}
        self._credit = 0

    def find_grid(self, a: Classes, b: Classes, probes: int | None) -> Grid | None:
        """Give the s-windows of all classes of A and B, if that pays.

        Parameters
        ----------
        a, b : Classes
            That meet.
        probes : int or None
            Pairs to be decided without them; None: they are wanted at any price.

        Returns
        -------
        tuple of tuple of Intervals, or None
            A row for each class of A; None where there are too many or it does not pay yet.
        """
        if len(a) * len(b) > CLASS_PAIR_LIMIT:
            return None
        if probes is not None:
            price = self.price(a, b)
            self._credit += probes
            if price > self._credit:
                return None
            self._credit -= price
        return self._compute(a, b)

    def find_shifts(self, bases: Classes) -> NDArray[np.int64] | None:
        """Give the shifts between classes of base events, if these are few.

        Returns
        -------
        ndarray of int64, shape (c, c), or None
            `stochastic_order.shift` of each two, microseconds.
        """
        if len(bases) ** 2 > CLASS_PAIR_LIMIT:
            return None
        shifts = self._shifts.get(bases.keys)
        if shifts is None:
            shapes = [bases.histogram(i) for i in range(len(bases))]
            shifts = tabulate_shifts(shapes, shapes)
            _keep(self._shifts, bases.keys, shifts, _KEPT_GRIDS)
        return shifts

    def price(self, a: Classes, b: Classes) -> int:
        """Give what those s-windows cost that are not kept, in pairs decided without them."""
        if len(a) * len(b) > CLASS_PAIR_LIMIT or (a.keys, b.keys) in self._grids:
            return 0
        edges_a, edges_b = a.edge_counts, b.edge_counts
        return sum(
            PROBES_PER_WINDOW * max(edges_a[i] * edges_b[j] // _CHEAP_EDGES, 1)
            for i, u in enumerate(a.keys)
            for j, v in enumerate(b.keys)
            if (i >= a.intervals or j >= b.intervals) and (u, v) not in self._windows
        )

    def _compute(self, a: Classes, b: Classes) -> Grid:
        grid = self._grids.get((a.keys, b.keys))
        if grid is None:
            grid = tuple(
                tuple(self._find(a, i, b, j) for j in range(len(b))) for i in range(len(a))
            )
            _keep(self._grids, (a.keys, b.keys), grid, _KEPT_GRIDS)
        return grid

    def _find(self, a: Classes, i: int, b: Classes, j: int) -> Intervals:
        key = (a.keys[i], b.keys[j])
        found = self._windows.get(key)
        if found is not None:
            return found
        if i < a.intervals and j < b.intervals:
            (low,), (high,) = s_window(a.lengths[i], b.lengths[j], self.window)
            return ((int(low), int(high)),) if low <= high else ()
        found = s_windows(a.histogram(i), b.histogram(j), self.window)
        _keep(self._windows, key, found, _KEPT)
        return found


def mirror_grid(grid: Grid, width: int) -> Grid:
    """Turn rows into columns and s around: the same s-windows for base events of B.

    Parameters
    ----------
    grid : Grid
        With a row for each class of A.
    width : int
        Number of classes of B.
    """
    return tuple(
        tuple(tuple((-high, -low) for low, high in reversed(row[j])) for row in grid)
        for j in range(width)
    )


def _keep(kept: dict[_Key, _Value], key: _Key, value: _Value, most: int) -> None:
    """Keep a value, and let the oldest go where there are too many."""
    if len(kept) >= most:
        kept.pop(next(iter(kept)))
    kept[key] = value
