"""Pieces: certain and probed ranges of s for the base events of each class.

Problem. For base events of A of one class, and targets of all classes that occur, split the axis
s = max_B - max_A into certain, probed and violated ranges.

Definitions. A *piece* is an interval of s. If the s-windows of the classes are known, the certain
piece is the satisfaction range SR, [max s_lo, min s_hi] over all classes of targets, and the probed
pieces are the probing range PR, [min s_lo, max s_lo) and (min s_hi, max s_hi] (PTJ Theorem 3;
docs/proofs.md, P-TEMPLATES). If an s-window has gaps or is empty, the certain piece is empty. If
s-windows are unknown, supports alone define the pieces, for a base event of length a and targets up
to π long (P-SUPPORT):

    P > 0 needs  lower - a ≤ s ≤ upper + π,     P = 1 holds for  lower + π ≤ s ≤ upper - a.

A probed piece is *left* up to upper - a, where the upper end does not cut, and *right* above.

Reference. Mok, Woo and Lee 2006, Theorem 3; LL10 section 4.1.

Cost. O(c) per class of base events for c classes of targets with s-windows; O(1) without s-windows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from correlation.timing.histograms.template_ranges import GAPS, NEVER, UNKNOWN
from correlation.timing.intervals.arguments import as_column

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from correlation.timing.histograms.classes import Classes
    from correlation.timing.histograms.template_ranges import GridColumns
    from correlation.timing.intervals.window import WindowScalars

CERTAIN, LEFT, RIGHT = range(3)
# Max pieces of a class: both sides of the certain piece may be cut at upper - a.
_MAX_PIECES = 5
# Larger than every end.
_NO_END = 2**62


class Pieces(NamedTuple):
    """The pieces of each class of base events, ascending and disjoint.

    Attributes
    ----------
    starts : ndarray of int64, shape (c + 1,)
        Class i has the pieces starts[i] to starts[i + 1].
    low, high : ndarray of int64, shape (k,)
        Both ends of a piece, inclusive, microseconds.
    how : ndarray of int64, shape (k,)
        CERTAIN, LEFT or RIGHT.
    """

    starts: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    how: NDArray[np.int64]

    @property
    def reach(self) -> tuple[int, int]:
        """Min and max s of any piece; 1 and 0 without pieces."""
        if not len(self.low):
            return 1, 0
        return int(self.low.min()), int(self.high.max())


def split_by_windows(
    bases: Classes, targets: Classes, grid: GridColumns, window: WindowScalars
) -> Pieces:
    """Compute the pieces from known s-windows, and from supports for unknown ones.

    Parameters
    ----------
    bases, targets : Classes
        The classes of either side.
    grid : GridColumns
        The known s-windows of the classes.
    window : WindowScalars
        The condition, for base events in role A.
    """
    placed = np.flatnonzero(grid.targets >= 0)
    # The longest target without an s-window bounds the supports of all of them.
    others = targets.lengths[grid.targets < 0]
    starts = np.zeros(len(bases) + 1, np.int64)
    columns = np.empty((len(bases) * _MAX_PIECES, 3), np.int64)
    count = _split_by_windows_kernel(
        bases.lengths,
        targets.lengths,
        (int(targets.lengths.max(initial=-1)), int(others.max(initial=-1))),
        placed,
        grid,
        window,
        starts,
        columns,
    )
    found = columns[:count]
    return Pieces(as_column(starts), *(as_column(found[:, k]) for k in range(3)))


@njit(cache=True)
def _split_by_windows_kernel(
    lengths: NDArray[np.int64],
    target_lengths: NDArray[np.int64],
    longest: tuple[int, int],
    placed: NDArray[np.int64],
    grid: GridColumns,
    window: WindowScalars,
    starts: NDArray[np.int64],
    columns: NDArray[np.int64],
) -> int:
    """Fill `starts` and `columns`; return the number of pieces.

    `longest` is the length of the longest target, and of the longest target without an s-window,
    each -1 without such targets; `placed` are the classes of targets with s-windows.
    """
    count = 0
    for a in range(len(lengths)):
        uncut = window.upper - lengths[a]
        first, sure, stop, last = _bound_row_kernel(
            a, lengths[a], target_lengths, longest, placed, grid, window
        )
        first = max(first, window.floor)
        last = min(last, window.ceiling)
        sure = max(sure, first)
        stop = min(stop, last)
        if sure > stop:
            sure = last + 1
            stop = last
        count = _add_piece_kernel(columns, count, first, min(sure - 1, uncut), LEFT)
        count = _add_piece_kernel(columns, count, max(first, uncut + 1), sure - 1, RIGHT)
        count = _add_piece_kernel(columns, count, sure, stop, CERTAIN)
        count = _add_piece_kernel(columns, count, stop + 1, min(last, uncut), LEFT)
        count = _add_piece_kernel(columns, count, max(stop, uncut) + 1, last, RIGHT)
        starts[a + 1] = count
    return count


@njit(cache=True)
def _bound_row_kernel(
    a: int,
    length: int,
    target_lengths: NDArray[np.int64],
    longest: tuple[int, int],
    placed: NDArray[np.int64],
    grid: GridColumns,
    window: WindowScalars,
) -> tuple[int, int, int, int]:
    """Compute first, sure, stop, last of class a, without floor and ceiling.

    [first, last] is the reach of any target; all targets in [sure, stop] are satisfied. The certain
    piece is empty if sure > stop.
    """
    uncut = window.upper - length
    low = window.lower - length
    first = _NO_END
    sure = -_NO_END
    stop = _NO_END
    last = -_NO_END
    has_row = grid.bases[a] >= 0
    loose = longest[1] if has_row else longest[0]
    if loose >= 0:
        first = low
        sure = window.lower + loose
        stop = uncut
        last = window.upper + loose
    for k in range(len(placed) if has_row else 0):
        b = placed[k]
        place = grid.bases[a] + grid.targets[b]
        begin = grid.cells[place, 0]
        end = grid.cells[place, 1]
        if begin in (UNKNOWN, NEVER):
            first = min(first, low)
            sure = max(sure, window.lower + target_lengths[b])
            stop = min(stop, uncut)
            last = max(last, window.upper + target_lengths[b])
            continue
        if begin > end:
            # Empty, or with gaps.
            sure = _NO_END
            if begin < GAPS:
                continue
            end = grid.spans[begin - GAPS + end - 1, 1]
            begin = grid.spans[begin - GAPS, 0]
        if grid.sign < 0:
            begin, end = -end, -begin
        first = min(first, begin)
        sure = max(sure, begin)
        stop = min(stop, end)
        last = max(last, end)
    return first, sure, stop, last


@njit(cache=True)
def _add_piece_kernel(columns: NDArray[np.int64], count: int, low: int, high: int, how: int) -> int:
    """Add a piece unless it is empty; return the number of pieces."""
    if low > high:
        return count
    columns[count, 0] = low
    columns[count, 1] = high
    columns[count, 2] = how
    return count + 1


def split_by_supports(bases: Classes, targets: Classes, window: WindowScalars) -> Pieces:
    """Compute the pieces from supports alone.

    Parameters
    ----------
    bases, targets : Classes
        The classes of either side.
    window : WindowScalars
        The condition, for base events in role A.
    """
    longest = int(targets.lengths.max(initial=0))
    uncut = window.upper - bases.lengths
    first = np.maximum(window.lower - bases.lengths, window.floor)
    last = min(window.upper + longest, window.ceiling)
    sure = window.lower + longest
    low = np.stack([first, np.maximum(first, sure), np.maximum(first, uncut + 1)], axis=1)
    high = np.stack(
        [
            np.minimum(np.minimum(sure - 1, uncut), last),
            np.minimum(uncut, last),
            np.full(len(bases), last),
        ],
        axis=1,
    )
    filled = low <= high
    how = np.tile(np.array([LEFT, CERTAIN, RIGHT]), (len(bases), 1))
    starts = np.concatenate([[0], np.cumsum(filled.sum(axis=1), dtype=np.int64)])
    return Pieces(
        *(as_column(column) for column in (starts, low[filled], high[filled], how[filled]))
    )
