"""The correlation algorithms for shaped events by the names a condition uses.

Which one runs. simple computes every probability, ssort decides every pair in reach; the others
take the s-windows of the classes that meet where these are few and it pays (`shaped.windows`).
Without them indexed and lazy_lookup do as lazy does: there is nothing to index by, and no table of
shifts. auto is indexed with s-windows, and lazy without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from correlation.timing.choosing import AUTO
from correlation.timing.pairs import Pairs
from correlation.timing.shaped.eager import correlate_eager
from correlation.timing.shaped.indexed import correlate_indexed
from correlation.timing.shaped.lazy import correlate_lazy
from correlation.timing.shaped.lazy_lookup import correlate_lazy_lookup
from correlation.timing.shaped.locating import locate_block
from correlation.timing.shaped.search import make_search
from correlation.timing.shaped.simple import correlate_simple
from correlation.timing.shaped.ssort import correlate_ssort
from correlation.timing.shaped.windows import PRICE_AT_ONCE, mirror_grid

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from correlation.timing.shaped.classes import ShapedSide
    from correlation.timing.shaped.search import Search
    from correlation.timing.shaped.windows import WindowBook
    from correlation.timing.template_ranges import Grid

_COMPUTED = {"simple": correlate_simple, "ssort": correlate_ssort}
_LOCATED = {"eager": correlate_eager, "lazy": correlate_lazy}


def correlate_shaped(
    asked: str,
    base: ShapedSide,
    target: ShapedSide,
    groups: NDArray[np.int64],
    book: WindowBook,
    *,
    base_is_a: bool,
    exclude_same: bool,
) -> tuple[Pairs, str]:
    """Find the satisfied pairs; the result is the same whatever is asked for.

    Parameters
    ----------
    asked : str
        A name of `algorithms.ALGORITHMS`, or AUTO.
    base, target, groups, exclude_same
        As `pairs.Correlate` takes them, the sides with their classes.
    book : WindowBook
        The condition's.
    base_is_a : bool
        Whether the base events are of A.

    Returns
    -------
    Pairs, str
        The pairs, and the name of what found them.

    Raises
    ------
    ValueError
        If a group lies outside a side.
    """
    window = book.window if base_is_a else book.window.mirrored()

    def prepare(grid: Grid | None) -> Search:
        return make_search(base, target, groups, window, grid, exclude_same=exclude_same)

    search = prepare(None)
    if asked in _COMPUTED:
        return _COMPUTED[asked](search), asked
    name = asked if asked in _LOCATED else "lazy"
    grid = shifts = None
    if search.reach[0] <= search.reach[1]:
        grid = _find_grid(asked, base, target, book, search, base_is_a=base_is_a)
    if grid is not None:
        search = prepare(grid)
        if asked in {"indexed", AUTO}:
            return correlate_indexed(search), "indexed"
        shifts = book.find_shifts(base.classes) if asked == "lazy_lookup" else None
    if shifts is not None:
        return correlate_lazy_lookup(search, shifts), "lazy_lookup"
    return _LOCATED[name](search), name


def _find_grid(
    asked: str,
    base: ShapedSide,
    target: ShapedSide,
    book: WindowBook,
    search: Search,
    *,
    base_is_a: bool,
) -> Grid | None:
    """Give the s-windows of the classes, base events being of A, if they are to be used."""
    a, b = (base.classes, target.classes) if base_is_a else (target.classes, base.classes)
    price, probes = book.price(a, b), None
    if price > (PRICE_AT_ONCE if asked == "indexed" else 0):
        probes = locate_block(search).probed
    grid = book.find_grid(a, b, probes)
    return grid if grid is None or base_is_a else mirror_grid(grid, len(b))
