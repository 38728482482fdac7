"""S-windows of pairs of shapes as arrays, and decisions by s-window.

Problem. The events of two streams have shapes from known sets (PTJ Definition 4: templates). Decide
pairs without computing a probability at run time.

Definitions. A *cell* holds the s-window of two shapes: a pair of shapes u and v is satisfied iff
max_B - max_A lies in the s-window of (u, v) (PTJ Theorem 2; docs/proofs.md, P-TEMPLATES). A cell
has two numbers: both ends of a closed interval; or `EMPTY` first; or, if the first is ≥ `GAPS`, the
place of its intervals in a list, and their number. The s-window may still be unknown (`UNKNOWN`),
or never be computed (`NEVER`): then the probability decides the pairs.

Reference. Mok, Woo and Lee 2006, Theorem 2.

Cost. O(1) per decision, O(k) for k intervals; 16 bytes per cell, and 16 per interval in the list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from correlation.timing.intervals.search import DOUBTFUL, SATISFIED, VIOLATED

if TYPE_CHECKING:
    from numpy.typing import NDArray

# First number of a cell that is not one interval; s is always smaller than the last three.
EMPTY, UNKNOWN, NEVER, GAPS = 1, 2**62, 2**62 + 1, 2**62 + 2
# Place of a class without a row or a column: its sum with any other place is negative.
NOWHERE = -(2**62)


class GridColumns(NamedTuple):
    """The s-windows of the classes of a search as passed to the kernels.

    Attributes
    ----------
    width : int
        Number of classes of targets; 0 if s-windows are not used.
    bases, targets : ndarray of int64, shape (classes,)
        Classes (u, v) have the cell bases[u] + targets[v]; NOWHERE for a class without cells.
    cells : ndarray of int64, shape (k, 2)
        The s-windows, see above.
    spans : ndarray of int64, shape (n, 2)
        The intervals of s-windows with gaps, ascending within each.
    sign : int
        1 if the base events are of A, -1 if they are of B: cells refer to max_B - max_A.
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
    """Return whether s lies in the s-window of classes (a, b), which must be known."""
    place = grid.bases[a] + grid.targets[b]
    inside: bool = _decide_cell_kernel(grid.cells, grid.spans, place, grid.sign * s) == SATISFIED
    return inside


@njit(cache=True)
def _decide_cell_kernel(
    cells: NDArray[np.int64], spans: NDArray[np.int64], place: int, s: int
) -> int:
    """Return SATISFIED, VIOLATED, or DOUBTFUL if the s-window is not known."""
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
