"""The s-windows of a condition: computed step by step, kept across blocks and restarts.

Problem. With the s-windows of its shapes every pair of events is decided by its s (docs/proofs.md,
P-TEMPLATES). An s-window costs about 50 evaluations of a probability, 5 to 20 µs. The s-windows of
1,000 x 1,000 templates take ten seconds, too long for one block.

Algorithm. Until an s-window is known, its pairs are decided without it, with the same result. Two
budgets, both counted in evaluations (`histograms.table`), pay for s-windows:

- for declared shapes, which are expected to recur: `SLICE` evaluations per block, from the
  registration of the condition until all are known;
- for all classes that meet: as many evaluations as pairs were decided for lack of an s-window. The
  search therefore costs at most about twice as much as the better of both ways, for any input (ski
  rental; Karlin et al. 1988).

The computation uses neither threads nor a clock: its progress is a function of the blocks. The
operators of a process with the same window and the same shapes share their s-windows. Computed
s-windows are stored in a cache that outlives the process.

Cost. O(1) to look up an s-window. Memory: `MAX_CELLS` s-windows per process; further conditions
run without the s-windows of declared shapes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakSet

from correlation.resources.histogram import Histogram
from correlation.timing.histograms.stochastic_order import tabulate_shifts
from correlation.timing.histograms.stored_windows import dump_table, load_table, name_table
from correlation.timing.histograms.table import Grid, WindowTable

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from correlation.operators import Cache
    from correlation.resources.streams import Stream
    from correlation.timing.histograms.classes import Classes
    from correlation.timing.histograms.search import Search
    from correlation.timing.intervals.window import TimingWindow

# Evaluations per block of a slot for s-windows of declared shapes: about 1/40 second.
SLICE = 250_000
# Max evaluations per search, if the credit allows it or s-windows are required: about 1/10 second.
AT_ONCE = 1_000_000
# Evaluations after which an incomplete table is stored: a few seconds.
_STORE_AFTER = 30_000_000
# Max s-windows per process: 256 MB.
MAX_CELLS = 2**24
# S-windows kept for operators that return: slots move between processes, programs are restored.
_KEPT_CELLS = 2**22
# Max pairs of classes of base events whose shifts are tabulated.
_SHIFT_LIMIT = 1024
_KEPT_SHIFTS = 64


class WindowBook:
    """The s-windows of a condition.

    Parameters
    ----------
    window : TimingWindow
        The window of the condition.
    declared_a, declared_b : sequence of Histogram
        Declared shapes of the events of A and of B.
    """

    def __init__(
        self,
        window: TimingWindow,
        declared_a: Sequence[Histogram] = (),
        declared_b: Sequence[Histogram] = (),
    ) -> None:
        self.window = window
        self.table = WindowTable(window, declared_a, declared_b)
        # Evaluations that may be spent on classes that meet.
        self.credit = 0
        # Evaluations for s-windows, and pairs decided for lack of s-windows, so far.
        self.work = self.missed = 0
        self._shifts: dict[tuple[bytes, ...], NDArray[np.int64]] = {}
        self._is_loaded = False
        self._not_stored = 0

    def advance(self, cache: Cache | None) -> None:
        """Compute the next s-windows of declared shapes; called once per block.

        Parameters
        ----------
        cache : Cache or None
            Cache that stores s-windows.
        """
        if cache is not None and not self._is_loaded:
            self._load(cache)
        if not self.table.is_settled:
            work = self.table.settle(SLICE)
            self.work += work
            self._not_stored += work
        if cache is None or not self._not_stored:
            return
        if self.table.is_settled or self._not_stored >= _STORE_AFTER:
            # Another process may have stored further s-windows.
            self._load(cache)
            cache.put(name_table(self.table), dump_table(self.table))
            self._not_stored = 0

    def _load(self, cache: Cache) -> None:
        self._is_loaded = True
        blob = cache.get(name_table(self.table)) if self.table.has_declared else None
        if blob is not None:
            load_table(self.table, blob)

    def find_grid(
        self, base: Classes, target: Classes, *, base_is_a: bool, at_once: bool = False
    ) -> Grid | None:
        """Return the s-windows of the classes of a search; first compute those the credit pays for.

        Parameters
        ----------
        base, target : Classes
            Classes of the base events and of the targets.
        base_is_a : bool
            Whether the base events are of A.
        at_once : bool
            Whether missing s-windows are computed even without credit, up to `AT_ONCE`.

        Returns
        -------
        Grid or None
            None if all s-windows are unknown.
        """
        budget = AT_ONCE if at_once else min(self.credit, AT_ONCE)
        if budget > 0:
            work = self.table.fill(*((base, target) if base_is_a else (target, base)), budget)
            self.work += work
            self.credit = max(self.credit - work, 0)
        return self.table.view(base, target, base_is_a=base_is_a)

    def note_missed(self, search: Search) -> None:
        """Count the pairs of a search that were decided for lack of an s-window."""
        self.missed += int(search.missed[0])
        self.credit += int(search.missed[0])
        search.missed[0] = 0

    def find_shifts(self, bases: Classes) -> NDArray[np.int64] | None:
        """Return the shifts between classes of base events; None if the classes are too many.

        Returns
        -------
        ndarray of int64, shape (c, c), or None
            `stochastic_order.shift` of each pair of classes, microseconds.
        """
        if len(bases) ** 2 > _SHIFT_LIMIT:
            return None
        keys = tuple(bases.shapes.key(i) for i in range(len(bases)))
        shifts = self._shifts.get(keys)
        if shifts is None:
            shapes = [bases.shapes.histogram(i) for i in range(len(bases))]
            shifts = tabulate_shifts(shapes, shapes)
            if len(self._shifts) >= _KEPT_SHIFTS:
                self._shifts.pop(next(iter(self._shifts)))
            self._shifts[keys] = shifts
        return shifts


# Books of this process: those held by an operator, and those kept for later operators, the most
# recently used last. An OrderedDict would hash every key whenever its values are listed.
_LIVE: WeakSet[WindowBook] = WeakSet()
_KEPT: dict[Hashable, WindowBook] = {}


def share_book(window: TimingWindow, a: Stream, b: Stream) -> WindowBook:
    """Return the book shared by all operators of this process with the same s-windows.

    Parameters
    ----------
    window : TimingWindow
        The window of the condition.
    a, b : Stream
        The streams, which declare the shapes of their events.
    """
    declared: tuple[tuple[Histogram, ...], tuple[Histogram, ...]] = (), ()
    if a.has_shapes or b.has_shapes:
        declared = _declared_shapes(a), _declared_shapes(b)
    key = (window, *declared)
    book = _KEPT.pop(key, None)
    if book is None:
        cells = len(declared[0]) * len(declared[1])
        if cells and cells + _count_cells(_LIVE) > MAX_CELLS:
            _KEPT.clear()
            if cells + _count_cells(_LIVE) > MAX_CELLS:
                declared = (), ()
        book = WindowBook(window, *declared)
        _LIVE.add(book)
        while _KEPT and _count_cells(_KEPT.values()) + book.table.cells > _KEPT_CELLS:
            del _KEPT[next(iter(_KEPT))]
    _KEPT[key] = book
    return book


def _count_cells(books: Iterable[WindowBook]) -> int:
    return sum([book.table.cells for book in books])


def _declared_shapes(stream: Stream) -> tuple[Histogram, ...]:
    shapes = {template.histogram: None for template in stream.templates}
    if stream.min_uncertainty_us == stream.max_uncertainty_us:
        shapes[Histogram.from_interval(-stream.max_uncertainty_us, 0)] = None
    return tuple(shapes)
