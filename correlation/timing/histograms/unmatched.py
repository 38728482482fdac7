"""Base events with at least one target that satisfies the condition, for histograms.

Problem. For each base event, decide whether a satisfied target exists, without finding all targets.

Algorithm. One target in a certain piece (`histograms.pieces`) is enough. If the certain pieces are
empty, the targets in the probed pieces are decided one by one up to the first satisfied one. Base
events with doubtful targets but without a satisfied one are decided in integers afterwards.

Kept apart from `intervals.unmatched`: base events have any number of pieces instead of four limits,
and a target may be doubtful, whereas intervals are always decided at once.

Cost. O(log t) per piece for t targets; if the certain pieces are empty, one decision for each
target up to the first satisfied one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from correlation.timing.histograms.lazy import correlate_lazy
from correlation.timing.histograms.pieces import CERTAIN
from correlation.timing.histograms.search import _decide_quickly_kernel
from correlation.timing.intervals.arguments import as_column
from correlation.timing.intervals.search import DOUBTFUL, SATISFIED
from correlation.timing.intervals.searching import _search_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from correlation.timing.histograms.search import Search


def mark_matched(search: Search, matched: NDArray[np.bool_], left_out: NDArray[np.int64]) -> int:
    """Mark the base events with at least one satisfied target.

    Parameters
    ----------
    search : Search
        Search of the base events, with `exclude_same` false.
    matched : ndarray of bool, shape (b,)
        Set to True if a target is found; base events already marked are skipped.
    left_out : ndarray of int64, shape (b,)
        Position of the target that is the base event itself, else -1.

    Returns
    -------
    int
        Number of targets decided one by one.
    """
    doubtful = np.zeros(len(matched), np.bool_)
    decided = int(_mark_matched_kernel(search, left_out, matched, doubtful))
    groups = [
        (i, i + 1, low, high)
        for begin, end, low, high in search.groups.tolist()
        for i in (begin + np.flatnonzero(doubtful[begin:end])).tolist()
    ]
    if groups:
        pairs = correlate_lazy(search._replace(groups=as_column(groups)))
        others = pairs.target_index != left_out[pairs.base_index]
        matched[pairs.base_index[others]] = True
        decided += pairs.counts.evaluations
    return decided


@njit(cache=True)
def _mark_matched_kernel(
    search: Search,
    left_out: NDArray[np.int64],
    matched: NDArray[np.bool_],
    doubtful: NDArray[np.bool_],
) -> int:
    """Mark matched and doubtful base events; return the number of targets decided."""
    decided = 0
    for g in range(len(search.groups)):
        for i in range(search.groups[g, 0], search.groups[g, 1]):
            if matched[i] or _is_certain_kernel(search, g, i, left_out[i]):
                matched[i] = True
                continue
            verdict, more = _probe_first_kernel(search, g, i, left_out[i])
            decided += more
            matched[i] = verdict == SATISFIED
            doubtful[i] = verdict == DOUBTFUL
    return decided


@njit(cache=True)
def _is_certain_kernel(search: Search, g: int, i: int, left_out: int) -> bool:
    """Return whether a certain piece has a target."""
    latest = search.base_latest[i]
    begin = search.groups[g, 2]
    end = search.groups[g, 3]
    pieces = search.pieces
    code = search.base_codes[i]
    for p in range(pieces.starts[code], pieces.starts[code + 1]):
        if pieces.how[p] != CERTAIN:
            continue
        first = _search_kernel(search.target_latest, begin, end, latest + pieces.low[p])
        stop = _search_kernel(search.target_latest, first, end, latest + pieces.high[p] + 1)
        own = 1 if first <= left_out < stop else 0
        if stop - first > own:
            return True
    return False


@njit(cache=True)
def _probe_first_kernel(search: Search, g: int, i: int, left_out: int) -> tuple[int, int]:
    """Decide the targets of the probed pieces up to the first satisfied one.

    Returns SATISFIED, else DOUBTFUL if any target is doubtful, else VIOLATED; and the number of
    targets decided.
    """
    latest = search.base_latest[i]
    begin = search.groups[g, 2]
    end = search.groups[g, 3]
    pieces = search.pieces
    code = search.base_codes[i]
    decided = 0
    worst = 0
    for p in range(pieces.starts[code], pieces.starts[code + 1]):
        if pieces.how[p] == CERTAIN:
            continue
        begin = _search_kernel(search.target_latest, begin, end, latest + pieces.low[p])
        stop = _search_kernel(search.target_latest, begin, end, latest + pieces.high[p] + 1)
        for j in range(begin, stop):
            if j == left_out:
                continue
            decided += 1
            verdict = _decide_quickly_kernel(search, i, j)
            if verdict == SATISFIED:
                return SATISFIED, decided
            worst = max(worst, verdict)
        begin = stop
    return worst, decided
