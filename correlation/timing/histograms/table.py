"""Table of the known s-windows of all pairs of shapes of two streams.

Problem. Hold the s-windows of 1,000 x 1,000 templates in bounded memory, compute them step by step,
and store them so that they are not computed again.

Algorithm. `histograms.windowing` computes the cells, in the order of the rows or on demand. A cell
that costs too much stays unknown (`NEVER`): the probability decides its pairs, with the same
result. Work is counted in evaluations, which bounds the work of a call without a clock.

Cost. 16 bytes per cell, and 16 per interval of an s-window with gaps, of which at most `MAX_SPANS`
are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from correlation.timing.histograms.axis import Axis
from correlation.timing.histograms.template_ranges import EMPTY, GAPS, NEVER, UNKNOWN, GridColumns
from correlation.timing.histograms.windowing import (
    HIGH,
    LOW,
    MAX_EVALUATIONS,
    VERDICT,
    _find_windows_kernel,
    find_windows,
    make_runs,
)
from correlation.timing.intervals.arguments import as_column
from correlation.timing.intervals.search import SATISFIED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from correlation.resources.histogram import Histogram
    from correlation.timing.histograms.classes import Classes
    from correlation.timing.histograms.integer_sets import Intervals
    from correlation.timing.histograms.shapes import Shapes
    from correlation.timing.intervals.window import TimingWindow, WindowScalars

# Max cells listed at once.
_LISTED = 65_536
# Max intervals of s-windows with gaps per table: 32 MB.
MAX_SPANS = 2**21
_FIRST_SPANS = 256


class Grid(NamedTuple):
    """The s-windows of the classes of a search.

    Attributes
    ----------
    columns : GridColumns
        The s-windows as passed to the kernels.
    is_complete : bool
        Whether all s-windows are known.
    """

    columns: GridColumns
    is_complete: bool


class WindowTable:
    """The s-windows of the shapes of two streams.

    Parameters
    ----------
    window : TimingWindow
        The window of the condition.
    declared_a, declared_b : sequence of Histogram
        Declared shapes of A and of B.
    """

    def __init__(
        self,
        window: TimingWindow,
        declared_a: Sequence[Histogram],
        declared_b: Sequence[Histogram],
    ) -> None:
        self.window = window
        self.rows, self.columns = Axis(declared_a), Axis(declared_b)
        self._cells = np.zeros((self.rows.room * self.columns.room, 2), np.int64)
        self._cells[:, 0] = UNKNOWN
        self._spans = np.zeros((_FIRST_SPANS, 2), np.int64)
        self._span_count = 0
        # Number of cells of declared shapes, row by row, before the first unknown one.
        self._settled = 0
        self._has_never = False

    @property
    def has_declared(self) -> bool:
        """Whether both streams have declared shapes."""
        return self.rows.declared * self.columns.declared > 0

    @property
    def cells(self) -> int:
        """Number of cells, known or unknown."""
        return len(self._cells)

    @property
    def is_settled(self) -> bool:
        """Whether all cells of declared shapes are computed."""
        return self._settled == self.rows.declared * self.columns.declared

    def view(self, base: Classes, target: Classes, *, base_is_a: bool) -> Grid | None:
        """Return the s-windows of the classes of a search.

        Parameters
        ----------
        base, target : Classes
            Classes of the base events and of the targets.
        base_is_a : bool
            Whether the base events are of A.

        Returns
        -------
        Grid or None
            None if all cells of these classes are unknown.
        """
        a, b = (base, target) if base_is_a else (target, base)
        rows, columns = self._find_places(a, b)
        has_all = bool((rows >= 0).all() and (columns >= 0).all())
        known, unknown = self._count(rows, columns)
        if not known:
            return None
        in_row = np.where(rows < 0, rows, rows * self.columns.room)
        bases, targets = (in_row, columns) if base_is_a else (columns, in_row)
        grid = GridColumns(
            len(target),
            as_column(bases),
            as_column(targets),
            self._cells,
            self._spans,
            1 if base_is_a else -1,
        )
        return Grid(grid, has_all and not unknown)

    def _find_places(self, a: Classes, b: Classes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        rows, columns = self.rows.find(a), self.columns.find(b)
        if rows is None or columns is None:
            # The places for others are full: the current others replace the earlier ones.
            self._forget_others()
            rows, columns = self.rows.find(a), self.columns.find(b)
        if rows is None or columns is None:
            raise ValueError("more than FEW_OTHERS others have places")
        return rows, columns

    def _forget_others(self) -> None:
        self.rows.forget_others()
        self.columns.forget_others()
        cells = self._cells.reshape(self.rows.room, self.columns.room, 2)
        cells[self.rows.declared :, :, 0] = UNKNOWN
        cells[:, self.columns.declared :, 0] = UNKNOWN
        # The intervals of others are dropped; those of declared shapes are written again.
        mine, spans = self.declared_cells(), self.spans()
        kept = mine.copy()
        mine[kept[..., 0] >= GAPS] = UNKNOWN, 0
        self._spans, self._span_count = np.zeros((_FIRST_SPANS, 2), np.int64), 0
        self.merge(kept, spans)

    def _count(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> tuple[int, int]:
        """Count the known and the unknown cells of the given places."""
        rows, columns = rows[rows >= 0], columns[columns >= 0]
        if self.is_settled and not self._has_never:
            of_declared = (rows < self.rows.declared).all() and (
                columns < self.columns.declared
            ).all()
            if of_declared:
                return len(rows) * len(columns), 0
        known, unknown = _count_cells_kernel(self._cells, self.columns.room, rows, columns)
        return int(known), int(unknown)

    def fill(self, a: Classes, b: Classes, budget: int) -> int:
        """Compute s-windows of classes that meet, as long as the budget lasts.

        Returns
        -------
        int
            Number of evaluations; it exceeds the budget by less than the cost of one s-window.
        """
        rows, columns = self._find_places(a, b)
        listed = np.empty((_LISTED, 2), np.int64)
        count = _list_cells_kernel(
            self._cells, self.columns.room, rows[rows >= 0], columns[columns >= 0], listed
        )
        return self._compute(listed[:count], budget)[1]

    def settle(self, budget: int) -> int:
        """Compute s-windows of declared shapes, as long as the budget lasts; see `fill`."""
        work = 0
        while work < budget and not self.is_settled:
            listed = np.empty((_LISTED, 2), np.int64)
            count, following = _list_declared_kernel(
                self._cells,
                self.columns.room,
                self.columns.declared,
                self._settled,
                self.rows.declared * self.columns.declared,
                listed,
            )
            done, more = self._compute(listed[:count], budget - work)
            work += more
            if done < count:
                self._settled = int(listed[done, 0] * self.columns.declared + listed[done, 1])
            else:
                self._settled = int(following)
        return work

    def _compute(self, places: NDArray[np.int64], budget: int) -> tuple[int, int]:
        """Compute cells in order; return the number of cells, and of evaluations."""
        left = np.empty(len(places), np.int64)
        done, open_count, work = _fill_cells_kernel(
            self.rows.shapes,
            self.columns.shapes,
            places,
            self.columns.room,
            self.window.scalars(),
            (budget, MAX_EVALUATIONS),
            make_runs(),
            self._cells,
            left,
        )
        work = int(work)
        for n, place in enumerate(left[:open_count].tolist()):
            # The first cell is computed at any cost, so that each call makes progress.
            if n and work >= budget:
                return place, work
            row, column = places[place].tolist()
            found, price = find_windows(
                self.rows.shapes, row, self.columns.shapes, column, self.window
            )
            self._write(row * self.columns.room + column, found)
            work += price
        return int(done), work

    def _write(self, cell: int, windows: Intervals | None) -> None:
        """Write the s-window of a cell; None marks it as NEVER."""
        too_many = windows is not None and self._span_count + len(windows) > MAX_SPANS
        if windows is None or (too_many and len(windows) > 1):
            self._cells[cell] = NEVER, 0
            self._has_never = True
        elif not windows:
            self._cells[cell] = EMPTY, 0
        elif len(windows) == 1:
            self._cells[cell] = windows[0]
        else:
            self._cells[cell] = GAPS + self._span_count, len(windows)
            self._add_spans(np.array(windows, np.int64))

    def _add_spans(self, spans: NDArray[np.int64]) -> None:
        """Append intervals of s-windows with gaps."""
        end = self._span_count + len(spans)
        while len(self._spans) < end:
            self._spans = np.concatenate([self._spans, np.zeros_like(self._spans)])
        self._spans[self._span_count : end] = spans
        self._span_count = end

    def merge(self, cells: NDArray[np.int64], spans: NDArray[np.int64]) -> None:
        """Fill in unknown cells of declared shapes from the cells of another table.

        Parameters
        ----------
        cells : ndarray of int64, shape (rows, columns, 2)
            Cells of the same declared shapes.
        spans : ndarray of int64, shape (n, 2)
            Intervals of the s-windows with gaps.
        """
        mine = self.declared_cells()
        fresh = (mine[..., 0] == UNKNOWN) & (cells[..., 0] != UNKNOWN)
        gapped = fresh & (cells[..., 0] >= GAPS)
        mine[fresh & ~gapped] = cells[fresh & ~gapped]
        self._has_never |= bool((mine[..., 0] == NEVER).any())
        first, counts = cells[gapped].T
        ends = np.cumsum(counts)
        if gapped.any() and self._span_count + ends[-1] <= MAX_SPANS:
            begins = ends - counts
            mine[gapped] = np.stack([GAPS + self._span_count + begins, counts], axis=1)
            self._add_spans(spans[np.arange(ends[-1]) + np.repeat(first - GAPS - begins, counts)])

    def declared_cells(self) -> NDArray[np.int64]:
        """Return the cells of declared shapes, of shape (rows, columns, 2): a view."""
        cells = self._cells.reshape(self.rows.room, self.columns.room, 2)
        return cells[: self.rows.declared, : self.columns.declared]

    def spans(self) -> NDArray[np.int64]:
        """Return the intervals of the s-windows with gaps."""
        return self._spans[: self._span_count]


@njit(cache=True)
def _fill_cells_kernel(
    shapes_a: Shapes,
    shapes_b: Shapes,
    places: NDArray[np.int64],
    width: int,
    window: WindowScalars,
    budget: tuple[int, int],
    runs: NDArray[np.int64],
    cells: NDArray[np.int64],
    left: NDArray[np.int64],
) -> tuple[int, int, int]:
    """Fill the listed cells while the budget lasts.

    `budget` is the budget of the call, and of one cell. Returns the number of cells visited, the
    number of these left open (their positions are in `left`), and the number of evaluations.
    """
    work = 0
    open_count = 0
    for k in range(len(places)):
        if work >= budget[0]:
            return k, open_count, work
        a = places[k, 0]
        b = places[k, 1]
        count, evaluations = _find_windows_kernel(shapes_a, a, shapes_b, b, window, budget[1], runs)
        work += evaluations + 1
        cell = a * width + b
        if count == 0:
            cells[cell, 0] = EMPTY
            cells[cell, 1] = 0
        elif count == 1 and runs[0, VERDICT] == SATISFIED:
            cells[cell, 0] = runs[0, LOW]
            cells[cell, 1] = runs[0, HIGH]
        else:
            left[open_count] = k
            open_count += 1
    return len(places), open_count, work


@njit(cache=True)
def _count_cells_kernel(
    cells: NDArray[np.int64], width: int, rows: NDArray[np.int64], columns: NDArray[np.int64]
) -> tuple[int, int]:
    """Count the known and the unknown cells of some rows and columns."""
    known = 0
    for i in range(len(rows)):
        first = rows[i] * width
        for j in range(len(columns)):
            low = cells[first + columns[j], 0]
            if low not in (UNKNOWN, NEVER):
                known += 1
    return known, len(rows) * len(columns) - known


@njit(cache=True)
def _list_cells_kernel(
    cells: NDArray[np.int64],
    width: int,
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    listed: NDArray[np.int64],
) -> int:
    """List unknown cells of some rows and columns, up to the room; return their number."""
    count = 0
    for i in range(len(rows)):
        for j in range(len(columns)):
            if count == len(listed):
                return count
            if cells[rows[i] * width + columns[j], 0] == UNKNOWN:
                listed[count, 0] = rows[i]
                listed[count, 1] = columns[j]
                count += 1
    return count


@njit(cache=True)
def _list_declared_kernel(
    cells: NDArray[np.int64],
    width: int,
    columns: int,
    begin: int,
    end: int,
    listed: NDArray[np.int64],
) -> tuple[int, int]:
    """List unknown cells from place `begin` on; return their number, and the next place."""
    count = 0
    for place in range(begin, end):
        if count == len(listed):
            return count, place
        row = place // columns
        column = place - row * columns
        if cells[row * width + column, 0] == UNKNOWN:
            listed[count, 0] = row
            listed[count, 1] = column
            count += 1
    return count, end
