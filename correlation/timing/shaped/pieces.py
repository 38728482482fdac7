"""Pieces: what the position of a target decides for a base event of each class.

Problem. Split the axis s = max_B - max_A for base events of A of one class, and targets of any of
the classes that occur, into what is certain, what has to be probed, and the rest: violated.

Definitions. A *piece* is an interval of s. With the s-windows of the classes at hand: the certain
pieces are the satisfaction range SR, the probed ones the probing range PR (PTJ Theorem 3;
docs/proofs.md, P-TEMPLATES), with gaps in narrow windows. Without them, of a base event of length a
and targets up to π long, by their supports alone (P-SUPPORT):

    P > 0 needs  lower - a ≤ s ≤ upper + π,     P = 1 holds for  lower + π ≤ s ≤ upper - a.

A probed piece is *left* up to upper - a, where the upper end does not cut, and *right* above.

Reference. Mok, Woo and Lee 2006, Theorem 3; LL10 section 4.1.

Cost. O(k) for k intervals of s-windows; O(1) a class without them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from correlation.timing.arguments import as_column
from correlation.timing.template_ranges import split_targets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from correlation.timing.shaped.classes import Classes
    from correlation.timing.template_ranges import Grid, Ranges
    from correlation.timing.window import WindowScalars

CERTAIN, LEFT, RIGHT = range(3)


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


def split_by_windows(bases: Classes, grid: Grid, window: WindowScalars) -> Pieces:
    """Split by the s-windows of all classes.

    Parameters
    ----------
    bases : Classes
        Of the base events.
    grid : Grid
        A row for each of them.
    window : WindowScalars
        The condition, base events being of A.
    """
    listed = [
        sorted(_name_pieces(split_targets(row), window.upper - length)) if row else []
        for row, length in zip(grid, bases.lengths.tolist(), strict=True)
    ]
    starts = np.concatenate([[0], np.cumsum([len(found) for found in listed], dtype=np.int64)])
    columns = np.array([piece for found in listed for piece in found], np.int64).reshape(-1, 3)
    return Pieces(as_column(starts), *(as_column(columns[:, k]) for k in range(3)))


def _name_pieces(ranges: Ranges, uncut: int) -> Iterator[tuple[int, int, int]]:
    for low, high in ranges.satisfied:
        yield low, high, CERTAIN
    for low, high in ranges.probed:
        if low <= uncut:
            yield low, min(high, uncut), LEFT
        if high > uncut:
            yield max(low, uncut + 1), high, RIGHT


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
