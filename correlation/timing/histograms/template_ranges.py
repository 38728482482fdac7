"""S-windows of pairs of shapes as arrays, and the decisions that they make.

Problem. Two streams whose events have one of some shapes each (PTJ Definition 4: their templates).
Decide pairs without computing a probability at run time.

Definitions. A *cell* holds the s-window of two shapes: a pair of shapes u and v is satisfied iff
max_B - max_A lies in the s-window of (u, v) (PTJ Theorem 2; docs/proofs.md, P-TEMPLATES). A cell is
two numbers: both ends of its only interval, included; `EMPTY`; or, where the first is `GAPS` or
greater, the place of its intervals in a list, and their number. A cell may be *unknown* so far, or
for good (`NEVER`): such pairs are decided by their probability.

Reference. Mok, Woo and Lee 2006, Theorem 2.

Cost. O(1) a decision, O(k) for k intervals; 16 bytes a cell, and 16 an interval of several.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from correlation.timing.intervals.search import DOUBTFUL, SATISFIED, VIOLATED

if TYPE_CHECKING:
    from numpy.typing import NDArray

# The first number of a cell without a single interval; s never reaches the last three.
EMPTY, UNKNOWN, NEVER, GAPS = 1, 2**62, 2**62 + 1, 2**62 + 2
# Place of a class without a row or a column: no sum of two places reaches 0 with it.
NOWHERE = -(2**62)


class GridColumns(NamedTuple):
    """The s-windows of the classes of a search as the kernels take them.

    Attributes
    ----------
    width : int
        Number of classes of targets; 0 where no s-window is to be used.
    bases, targets : ndarray of int64, shape (classes,)
        Classes (u, v) have the cell bases[u] + targets[v]; NOWHERE of a class without any.
    cells : ndarray of int64, shape (k, 2)
        The s-windows, see above.
    spans : ndarray of int64, shape (n, 2)
        The intervals of those that have several, ascending.
    sign : int
        1 if the base events are of A; -1 if they are of B: cells are of max_B - max_A.
    """

    width: int
    bases: NDArray[np.int64]
    targets: NDArray[np.int64]
    cells: NDArray[np.int64]
    spans: NDArray[np.int64]
    sign: int


def no_grid() -> GridColumns:
    """Return the grid of a search without s-windows."""
    nowhere = np.zeros(0, np.int64)
    nothing = np.zeros((0, 2), np.int64)
    return GridColumns(0, nowhere, nowhere, nothing, nothing, 1)


@njit(cache=True)
def _decide_template_kernel(grid: GridColumns, a: int, b: int, s: int) -> bool:
    """Check whether s lies in the s-window of classes (a, b), which is known."""
    place = grid.bases[a] + grid.targets[b]
    inside: bool = _decide_cell_kernel(grid.cells, grid.spans, place, grid.sign * s) == SATISFIED
    return inside


@njit(cache=True)
def _decide_cell_kernel(
    cells: NDArray[np.int64], spans: NDArray[np.int64], place: int, s: int
) -> int:
    """SATISFIED, VIOLATED, or DOUBTFUL where the s-window is not known."""
    if place < 0:
        return DOUBTFUL
    low = cells[place, 0]
    high = cells[place, 1]
    if low <= high:
        return SATISFIED if low <= s <= high else VIOLATED
    if low < UNKNOWN:
        return VIOLATED
    if low < GAPS:
        return DOUBTFUL
    for k in range(low - GAPS, low - GAPS + high):
        if s <= spans[k, 1]:
            return SATISFIED if spans[k, 0] <= s else VIOLATED
    return VIOLATED
