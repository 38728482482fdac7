"""Search among events with histograms: the input of the algorithms, and the decision of a pair.

Problem. Decide P(lower ≤ T_B - T_A ≤ upper) ≥ ct for events of known classes.

Algorithm. If the s-window of two classes is known, a pair of them is satisfied iff s lies in it
(PTJ Theorem 2). Without an s-window, quantiles decide most pairs (`histograms.quantiles`). For the
other pairs the probability is computed in float64. If it is nearer to ct than the rounding error,
the pair is written as doubtful and later decided in integers, each combination of classes and s
once (docs/proofs.md, P-HISTOGRAM). The reference algorithm, simple, does not use quantiles.

Cost. O(k) per pair for k intervals of an s-window; without an s-window, O(1) if quantiles decide,
otherwise O(n + m) for n and m buckets. `Search.missed` counts pairs decided without an s-window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

from correlation.timing.histograms.filter import _filter_pair_kernel, decide_exactly
from correlation.timing.histograms.pieces import (
    CERTAIN,
    Pieces,
    split_by_supports,
    split_by_windows,
)
from correlation.timing.histograms.quantiles import (
    KNOWN,
    Quantiles,
    _decide_by_quantiles_kernel,
    _know_quantiles_kernel,
    make_quantiles,
)
from correlation.timing.histograms.template_ranges import NOWHERE, _decide_cell_kernel, no_grid
from correlation.timing.intervals.collecting import _fill_certain_kernel, collect_parts
from correlation.timing.intervals.pairs import PROBE, Pairs, check_groups, count_events
from correlation.timing.intervals.search import (
    DOUBT,
    DOUBTFUL,
    SATISFIED,
    VIOLATED,
    collect_located,
    decide_pair,
    locate_event,
    probe_targets,
)
from correlation.timing.intervals.searching import _search_kernel
from correlation.timing.intervals.specialising import specialise

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from correlation.timing.histograms.classes import HistogramSide
    from correlation.timing.histograms.shapes import Shapes
    from correlation.timing.histograms.template_ranges import GridColumns
    from correlation.timing.intervals.collecting import Columns
    from correlation.timing.intervals.window import TimingWindow, WindowScalars


class Search(NamedTuple):
    """A search as passed to the kernels.

    Attributes
    ----------
    base_latest, base_codes : ndarray of int64, shape (b,)
        Latest times and classes of the base events, which play role A.
    target_latest, target_codes : ndarray of int64, shape (t,)
        Latest times and classes of the targets.
    groups : ndarray of int64, shape (k, 4)
        As in `pairs.Correlate`.
    base_shapes, target_shapes : Shapes
        Shapes of the classes.
    pieces : Pieces
        Pieces of the classes of base events.
    reach : (int, int)
        Min and max s of any piece.
    grid : GridColumns
        The known s-windows of the classes; width 0 if s-windows are not used.
    quantiles : Quantiles
        Quantiles of the classes, computed on first use.
    window : WindowScalars
        The condition.
    exclude_same : bool
        Leave out the pairs of equal positions.
    missed : ndarray of int64, shape (1,)
        Counts the pairs that were decided without an s-window.
    """

    base_latest: NDArray[np.int64]
    base_codes: NDArray[np.int64]
    target_latest: NDArray[np.int64]
    target_codes: NDArray[np.int64]
    groups: NDArray[np.int64]
    base_shapes: Shapes
    target_shapes: Shapes
    pieces: Pieces
    reach: tuple[int, int]
    grid: GridColumns
    quantiles: Quantiles
    window: WindowScalars
    exclude_same: bool
    missed: NDArray[np.int64]


def make_search(
    base: HistogramSide,
    target: HistogramSide,
    groups: NDArray[np.int64],
    window: TimingWindow,
    grid: GridColumns | None,
    *,
    exclude_same: bool,
) -> Search:
    """Build a search.

    Parameters
    ----------
    base, target, groups, window, exclude_same
        As in `pairs.Correlate`; the sides have classes.
    grid : GridColumns or None
        The s-windows of the classes, for base events in role A; None if they are not used.

    Raises
    ------
    ValueError
        A group lies outside a side.
    """
    scalars = window.scalars()
    if grid is None:
        pieces = split_by_supports(base.classes, target.classes, scalars)
    else:
        pieces = split_by_windows(base.classes, target.classes, grid, scalars)
    return Search(
        base.latest,
        base.codes,
        target.latest,
        target.codes,
        check_groups(groups, len(base.latest), len(target.latest)),
        base.classes.shapes,
        target.classes.shapes,
        pieces,
        pieces.reach,
        no_grid() if grid is None else grid,
        make_quantiles(len(base.classes), len(target.classes), scalars),
        scalars,
        exclude_same,
        np.zeros(1, np.int64),
    )


def correlate_parts(
    search: Search, kernel: Callable[[Search, int, Columns], tuple[int, int, int, int]]
) -> Pairs:
    """Find the satisfied pairs base event by base event.

    Parameters
    ----------
    search : Search
        The search.
    kernel : callable
        As in `collecting.collect_parts`; may write doubtful pairs.
    """
    return settle_pairs(search, collect_parts(count_events(search.groups), kernel, search))


def settle_pairs(search: Search, pairs: Pairs) -> Pairs:
    """Decide doubtful pairs in integers, and remove those that are violated."""
    base_index, target_index, decided_by, counts = pairs
    doubtful = np.flatnonzero(decided_by == DOUBT)
    if not len(doubtful):
        return pairs
    satisfied = settle(search, base_index[doubtful], target_index[doubtful])
    decided_by[doubtful] = PROBE
    kept = np.ones(len(base_index), np.bool_)
    kept[doubtful] = satisfied
    return Pairs(base_index[kept], target_index[kept], decided_by[kept], counts)


def settle(
    search: Search, base_index: NDArray[np.int64], target_index: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Decide pairs in integers, without floor and ceiling; return bool[n]."""
    return decide_exactly(
        search.base_shapes,
        search.base_codes[base_index],
        search.target_shapes,
        search.target_codes[target_index],
        search.target_latest[target_index] - search.base_latest[base_index],
        search.window,
    )


@njit(cache=True)
def _decide_kernel(search: Search, i: int, j: int) -> int:
    """Return SATISFIED, VIOLATED or DOUBTFUL by probability, without floor and ceiling."""
    verdict: int = _filter_pair_kernel(
        search.base_shapes,
        search.base_codes[i],
        search.target_shapes,
        search.target_codes[j],
        search.target_latest[j] - search.base_latest[i],
        search.window,
    )
    return verdict


@njit(cache=True)
def _decide_quickly_kernel(search: Search, i: int, j: int) -> int:
    """Decide by s-window or by quantiles if possible, otherwise as `_decide_kernel` does."""
    a = search.base_codes[i]
    b = search.target_codes[j]
    s = search.target_latest[j] - search.base_latest[i]
    grid = search.grid
    if grid.width > 0:
        place = grid.bases[a] + grid.targets[b]
        known: int = _decide_cell_kernel(grid.cells, grid.spans, place, grid.sign * s)
        if known != DOUBTFUL:
            return known
    search.missed[0] += 1
    quantiles = search.quantiles
    lost = quantiles.lost
    kept = quantiles.kept
    _know_quantiles_kernel(quantiles.bases, search.base_shapes, a, lost, kept)
    _know_quantiles_kernel(quantiles.targets, search.target_shapes, b, lost, kept)
    verdict: int = _decide_by_quantiles_kernel(
        quantiles.bases, a, quantiles.targets, b, s, search.window
    )
    return verdict if verdict != DOUBTFUL else _decide_kernel(search, i, j)


@njit(cache=True)
def _probe_kernel(
    search: Search, i: int, begin: int, end: int, out: Columns, found: int
) -> tuple[int, int]:
    """Decide (i, begin) to (i, end - 1) one by one and write the pairs that are not violated.

    All of them lie between floor and ceiling. Returns the new number of pairs, and the number of
    pairs decided.
    """
    # Arrays are read from the search outside the loop only: inside, numba would count references.
    own = i if search.exclude_same and begin <= i < end else -1
    decided = end - begin if own < 0 else end - begin - 1
    codes = search.target_codes
    targets = search.target_latest
    latest = search.base_latest[i]
    a = search.base_codes[i]
    bases = search.base_shapes
    shapes = search.target_shapes
    lost = search.quantiles.lost
    kept = search.quantiles.kept
    of_base = search.quantiles.bases
    of_target = search.quantiles.targets
    window = search.window
    base_index, target_index, decided_by = out
    places = search.grid.targets
    cells = search.grid.cells
    spans = search.grid.spans
    sign = search.grid.sign
    row = search.grid.bases[a] if search.grid.width > 0 else NOWHERE
    missed = 0
    for j in range(begin, end):
        if j == own:
            continue
        b = codes[j]
        s = targets[j] - latest
        verdict = DOUBTFUL
        if row >= 0:
            verdict = _decide_cell_kernel(cells, spans, row + places[b], sign * s)
        how = PROBE
        if verdict == DOUBTFUL:
            if missed == 0:
                _know_quantiles_kernel(of_base, bases, a, lost, kept)
            missed += 1
            if not of_target[b, KNOWN]:
                _know_quantiles_kernel(of_target, shapes, b, lost, kept)
            verdict = _decide_by_quantiles_kernel(of_base, a, of_target, b, s, window)
            if verdict == DOUBTFUL:
                verdict = _filter_pair_kernel(bases, a, shapes, b, s, window)
                how = PROBE if verdict == SATISFIED else DOUBT
        if verdict == VIOLATED:
            continue
        base_index[found] = i
        target_index[found] = j
        decided_by[found] = how
        found += 1
    search.missed[0] += missed
    return found, decided


@njit(cache=True)
def _locate_pieces_kernel(
    search: Search, i: int, begin: int, end: int
) -> tuple[int, int, int, int]:
    """Find the first target, begin and end of the class's pieces, and the end of the targets."""
    latest = search.base_latest[i]
    first = search.pieces.starts[search.base_codes[i]]
    last = search.pieces.starts[search.base_codes[i] + 1]
    if first == last:
        return begin, first, last, begin
    low = latest + search.pieces.low[first]
    high = latest + search.pieces.high[last - 1]
    begin = _search_kernel(search.target_latest, begin, end, low)
    stop = _search_kernel(search.target_latest, begin, end, high + 1)
    return begin, first, last, stop


@njit(cache=True)
def _collect_pieces_kernel(
    search: Search, i: int, located: tuple[int, int, int, int], out: Columns, found: int
) -> tuple[int, int]:
    """Search the ends of each piece; write targets in certain pieces, and probe the others."""
    begin, first, last, end = located
    latest = search.base_latest[i]
    evaluations = 0
    for p in range(first, last):
        # The first begin and the last end are already located.
        if p > first:
            low = latest + search.pieces.low[p]
            begin = _search_kernel(search.target_latest, begin, end, low)
        stop = end
        if p < last - 1:
            high = latest + search.pieces.high[p]
            stop = _search_kernel(search.target_latest, begin, end, high + 1)
        if search.pieces.how[p] == CERTAIN:
            found = _fill_certain_kernel(i, begin, stop, search.exclude_same, out[0], out[1], found)
        elif begin < stop:
            found, decided = probe_targets(search, i, begin, stop, out, found)
            evaluations += decided
        begin = stop
    return found, evaluations


specialise(locate_event, Search, _locate_pieces_kernel)
specialise(collect_located, Search, _collect_pieces_kernel)
specialise(decide_pair, Search, _decide_kernel)
specialise(probe_targets, Search, _probe_kernel)
