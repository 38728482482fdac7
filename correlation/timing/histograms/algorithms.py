"""The correlation algorithms for events with histograms by the names a condition uses.

Choice of the algorithm. simple computes every probability; ssort decides every pair in reach. The
other algorithms use the known s-windows of the classes that meet (`histograms.windows`). indexed
requires all of these s-windows; lazy_lookup requires all of them and few classes of base events;
otherwise both work as lazy does. auto selects indexed if all s-windows are known and the probed
targets are many compared with their classes, and lazy otherwise.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from correlation.timing.histograms.indexed import correlate_indexed
from correlation.timing.histograms.lazy import correlate_lazy
from correlation.timing.histograms.lazy_lookup import correlate_lazy_lookup
from correlation.timing.histograms.locating import locate_block
from correlation.timing.histograms.search import correlate_parts, make_search
from correlation.timing.intervals.choosing import AUTO
from correlation.timing.intervals.eager import _correlate_events_kernel
from correlation.timing.intervals.pairs import Pairs
from correlation.timing.intervals.simple import _decide_all_kernel
from correlation.timing.intervals.ssort import _decide_near_kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from correlation.timing.histograms.classes import HistogramSide
    from correlation.timing.histograms.search import Search
    from correlation.timing.histograms.template_ranges import GridColumns
    from correlation.timing.histograms.windows import WindowBook

# The kernels of simple, ssort and eager accept any kind of search.
_COMPUTED: dict[str, Callable[[Search], Pairs]] = {
    "simple": partial(correlate_parts, kernel=_decide_all_kernel),
    "ssort": partial(correlate_parts, kernel=_decide_near_kernel),
}
_LOCATED: dict[str, Callable[[Search], Pairs]] = {
    "eager": partial(correlate_parts, kernel=_correlate_events_kernel),
    "lazy": correlate_lazy,
}
# Cost of a class of targets per base event in indexed (two searches), in decisions by s-window:
# for 4 to 16 classes and a few hundred targets in reach, both algorithms took about as long.
_PROBES_PER_CLASS = 16


def correlate_histograms(
    asked: str,
    base: HistogramSide,
    target: HistogramSide,
    groups: NDArray[np.int64],
    book: WindowBook,
    *,
    base_is_a: bool,
    exclude_same: bool,
) -> tuple[Pairs, str]:
    """Find the satisfied pairs; all algorithms have the same result.

    Parameters
    ----------
    asked : str
        A name of `algorithms.ALGORITHMS`, or AUTO.
    base, target, groups, exclude_same
        As in `pairs.Correlate`; the sides have classes.
    book : WindowBook
        The s-windows of the condition.
    base_is_a : bool
        Whether the base events are of A.

    Returns
    -------
    Pairs, str
        The pairs, and the name of the algorithm that found them.

    Raises
    ------
    ValueError
        A group lies outside a side.
    """
    window = book.window if base_is_a else book.window.mirrored()

    def prepare(grid: GridColumns | None) -> Search:
        return make_search(base, target, groups, window, grid, exclude_same=exclude_same)

    search = prepare(None)
    if asked in _COMPUTED:
        return _COMPUTED[asked](search), asked
    grid = None
    if search.reach[0] <= search.reach[1]:
        grid = book.find_grid(
            base.classes, target.classes, base_is_a=base_is_a, at_once=asked == "indexed"
        )
    if grid is not None:
        search = prepare(grid.columns)
    found = _correlate(asked, base, search, book, is_complete=grid is not None and grid.is_complete)
    book.note_missed(search)
    return found


def _correlate(
    asked: str, base: HistogramSide, search: Search, book: WindowBook, *, is_complete: bool
) -> tuple[Pairs, str]:
    """Find the pairs by the requested algorithm, or by lazy if required s-windows are missing."""
    if is_complete and (asked == "indexed" or (asked == AUTO and _has_few_classes(search))):
        return correlate_indexed(search), "indexed"
    shifts = book.find_shifts(base.classes) if is_complete and asked == "lazy_lookup" else None
    if shifts is not None:
        return correlate_lazy_lookup(search, shifts), "lazy_lookup"
    name = asked if asked in _LOCATED else "lazy"
    return _LOCATED[name](search), name


def _has_few_classes(search: Search) -> bool:
    """Return whether the classes of targets cost less than the targets in probed pieces."""
    bases = int((search.groups[:, 1] - search.groups[:, 0]).sum())
    return locate_block(search).probed >= _PROBES_PER_CLASS * bases * search.grid.width
