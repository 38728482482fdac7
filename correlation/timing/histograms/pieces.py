"""Pieces: what the position of a target decides for a base event of each class.

Problem. Split the axis s = max_B - max_A for base events of A of one class, and targets of any of
the classes that occur, into what is certain, what has to be probed, and the rest: violated.

Definitions. A *piece* is an interval of s. With the s-windows of the classes at hand the certain
piece is the satisfaction range SR, [max s_lo, min s_hi] of all of them, and the probed ones are the
probing range PR, [min s_lo, max s_lo) and (min s_hi, max s_hi] (PTJ Theorem 3; docs/proofs.md,
P-TEMPLATES); where an s-window has gaps or is empty nothing is certain. Without them, of a base
event of length a and targets up to π long, by their supports alone (P-SUPPORT):

    P > 0 needs  lower - a ≤ s ≤ upper + π,     P = 1 holds for  lower + π ≤ s ≤ upper - a.

A probed piece is *left* up to upper - a, where the upper end does not cut, and *right* above.

Reference. Mok, Woo and Lee 2006, Theorem 3; LL10 section 4.1.

Cost. O(c) a class of base events for c classes of targets that have s-windows; O(1) without them.
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
# Of a class: both sides of the certain one, each cut where the upper end begins to cut.
_MOST_PIECES = 5
# Beyond every end.
_NO_END = 2**62


class Pieces(NamedTuple):
    """The pieces of each class of base events, ascending and apart.

    Attributes
    ----------
    starts : ndarray of int64, shape (c + 1,)
        Class i has the pieces starts[i] to starts[i + 1].
    low, high : ndarray of int64, shape (k,)
        Both ends of a piece, included, microseconds.
    how : ndarray of int64, shape (k,)
        CERTAIN, LEFT or RIGHT.
    """

    starts: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    how: NDArray[np.int64]

    @property
    def reach(self) -> tuple[int, int]:
        """Least and greatest s of any piece; the first exceeds the second if there is none."""
        if not len(self.low):
            return 1, 0
        return int(self.low.min()), int(self.high.max())


def split_by_windows(
    bases: Classes, targets: Classes, grid: GridColumns, window: WindowScalars
) -> Pieces:
    """Split by the s-windows of the classes, by supports where these are not known.

    Parameters
    ----------
    bases, targets : Classes
        Of either side.
    grid : GridColumns
        Their s-windows, as far as they are known.
    window : WindowScalars
        The condition, base events being of A.
    """
    placed = np.flatnonzero(grid.targets >= 0)
    # Targets without an s-window count as one of any shape that is as long as the longest of them.
    others = targets.lengths[grid.targets < 0]
    starts = np.zeros(len(bases) + 1, np.int64)
    columns = np.empty((len(bases) * _MOST_PIECES, 3), np.int64)
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
    """Fill `starts` and `columns`; returns the number of pieces.

    `longest` is the length of the longest target, and of the longest without an s-window, -1 where
    there is none; `placed` are the classes of targets that have one.
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
    """Where class a reaches any target from, satisfies all from and up to, and reaches any up to.

    Floor and ceiling apart; the second exceeds the third where nothing is certain.
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
    """Write a piece unless it is empty; returns the number of pieces."""
    if low > high:
        return count
    columns[count, 0] = low
    columns[count, 1] = high
    columns[count, 2] = how
    return count + 1


def split_by_supports(bases: Classes, targets: Classes, window: WindowScalars) -> Pieces:
    """Split by where the times can lie at all.

    Parameters
    ----------
    bases, targets : Classes
        Of either side.
    window : WindowScalars
        The condition, base events being of A.
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
