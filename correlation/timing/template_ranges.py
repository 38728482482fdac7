"""What templates decide by position: ranges of targets and keep values.

Problem. Two streams whose events have one of few shapes each (PTJ Definition 4: their templates).
Decide pairs, split the targets of a base event and bound the buffers without computing a
probability at run time.

Definitions. The *grid* holds the s-windows of all pairs of shapes. A pair of shapes u and v is
satisfied iff max_B - max_A lies in the s-window of (u, v) (PTJ Theorem 2). For a base event of
shape u the *satisfaction range* SR is what all of row u have in common, the *probing range* PR the
rest of what any of it reaches, and all else is violated (Theorem 3: in a wide window SR is
[max s_lo, min s_hi] and PR lies to the left and to the right of it, [min s_lo, max s_lo) and
(min s_hi, max s_hi]). The least and the greatest s of all of the grid are the ends of the sliding
window (Theorem 4). In a narrow window the ranges may have gaps (docs/proofs.md, P-TEMPLATES).

Reference. Mok, Woo and Lee 2006, Theorems 2, 3 and 4.

Cost. One s-window a pair of shapes, once; then O(log k) a decision for k intervals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from correlation.timing.arguments import as_column, as_columns
from correlation.timing.intervals import Intervals, intersect, subtract, unite
from correlation.timing.s_windows import s_windows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from correlation.histogram import Histogram
    from correlation.timing.window import TimingWindow

Grid = tuple[tuple[Intervals, ...], ...]


class Ranges(NamedTuple):
    """Where the targets of a base event lie, as s = max_B - max_A in microseconds.

    Attributes
    ----------
    satisfied : Intervals
        SR: satisfied, whatever the target's shape.
    probed : Intervals
        PR: it depends on the target's shape. All that lies in neither is violated.
    """

    satisfied: Intervals
    probed: Intervals


class GridColumns(NamedTuple):
    """A grid of s-windows as the kernels take it.

    Attributes
    ----------
    width : int
        Number of shapes of B.
    starts : ndarray of int64, shape (pairs of shapes + 1,)
        Shapes (u, v) have the intervals starts[u * width + v] to starts[u * width + v + 1].
    low, high : ndarray of int64
        Their ends, both included, microseconds.
    """

    width: int
    starts: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]


def make_grid(us: Sequence[Histogram], vs: Sequence[Histogram], window: TimingWindow) -> Grid:
    """Compute the s-windows of all pairs of shapes.

    Parameters
    ----------
    us, vs : sequence of Histogram
        The shapes that occur in A and in B.
    window : TimingWindow
        The condition, wide or narrow.

    Returns
    -------
    tuple of tuple of Intervals
        A row for each of `us`, with a set for each of `vs`.
    """
    return tuple(tuple(s_windows(u, v, window) for v in vs) for u in us)


def split_targets(windows: Sequence[Intervals]) -> Ranges:
    """Compute the ranges of a base event's targets (PTJ Theorem 3).

    Parameters
    ----------
    windows : sequence of Intervals
        The row of the grid at the shape of a base event of A, or the column at that of one of B;
        either way s is max_B - max_A. Not empty.

    Returns
    -------
    Ranges
    """
    satisfied = windows[0]
    for other in windows[1:]:
        satisfied = intersect(satisfied, other)
    reached = unite(span for window in windows for span in window)
    return Ranges(satisfied, subtract(reached, satisfied))


def grid_bounds(grid: Grid) -> tuple[int, int]:
    """Compute the least and the greatest s of any satisfied pair (PTJ Theorem 4).

    Parameters
    ----------
    grid : Grid
        Of all shapes that occur.

    Returns
    -------
    least, greatest : int
        Both are reached; events of B with max_B < W_A + least and of A with max_A < W_B - greatest
        can be forgotten. If no pair can be satisfied, least exceeds greatest.
    """
    reached = unite(span for row in grid for window in row for span in window)
    return (reached[0][0], reached[-1][1]) if reached else (1, 0)


def pack_grid(grid: Grid) -> GridColumns:
    """Write a grid as arrays."""
    windows = [window for row in grid for window in row]
    starts = np.concatenate([[0], np.cumsum([len(window) for window in windows], dtype=np.int64)])
    ends = np.array([span for window in windows for span in window], np.int64).reshape(-1, 2)
    return GridColumns(
        len(grid[0]) if grid else 0,
        as_column(starts),
        as_column(ends[:, 0]),
        as_column(ends[:, 1]),
    )


def satisfied_templates(
    grid: GridColumns, index_a: ArrayLike, index_b: ArrayLike, s: ArrayLike
) -> NDArray[np.bool_]:
    """Decide pairs by the s-windows of their shapes (PTJ Theorem 2).

    Parameters
    ----------
    grid : GridColumns
        Of all shapes that occur.
    index_a, index_b : array_like of int, shape (n,) or scalar
        The shapes of the pair, as positions in the rows and columns of the grid.
    s : array_like of int, shape (n,) or scalar
        max_B - max_A, microseconds.

    Returns
    -------
    ndarray of bool, shape (n,)
        Whether the pair is satisfied.

    Raises
    ------
    ValueError
        If a position lies outside the grid.
    """
    rows, columns, differences = as_columns(index_a, index_b, s)
    height = (len(grid.starts) - 1) // max(grid.width, 1)
    for name, index, size in (("index_a", rows, height), ("index_b", columns, grid.width)):
        if len(index) and not 0 <= index.min() <= index.max() < size:
            raise ValueError(f"{name}: a position lies outside the grid")
    out = np.empty(differences.shape, np.bool_)
    _decide_templates_kernel(grid, rows, columns, differences, out)
    return out


@njit(cache=True)
def _decide_templates_kernel(
    grid: GridColumns,
    index_a: NDArray[np.int64],
    index_b: NDArray[np.int64],
    s: NDArray[np.int64],
    out: NDArray[np.bool_],
) -> None:
    for k in range(len(out)):
        out[k] = _decide_template_kernel(grid, index_a[k], index_b[k], s[k])


@njit(cache=True)
def _decide_template_kernel(grid: GridColumns, a: int, b: int, s: int) -> bool:
    """Tell whether s lies in an interval of shapes (a, b)."""
    cell = a * grid.width + b
    begin = grid.starts[cell]
    end = grid.starts[cell + 1]
    # The last interval that begins at or below s.
    while begin < end:
        middle = (begin + end) >> 1
        if grid.low[middle] <= s:
            begin = middle + 1
        else:
            end = middle
    inside: bool = begin > grid.starts[cell] and s <= grid.high[begin - 1]
    return inside
