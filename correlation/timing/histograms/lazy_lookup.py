"""Lazy timing correlation of events with histograms with a look-up table (LL10 Algorithms 6 and 7).

Problem. Find all satisfied pairs of the events of each group, with as few decisions one by one as
possible.

Algorithm. The pieces of all base events are located (`histograms.locating`), and the pairs of the
certain pieces are written. The left probed pieces are visited by descending max of the base events,
the right ones by ascending max. The look-up table, indexed by target position, stores a base event
that is satisfied with the target: its class and its latest time. On the left, a base event that is
stochastically not later than the entry is satisfied if the upper end does not cut; on the right, a
base event that is stochastically not earlier, if the lower end does not cut (docs/proofs.md,
P-STOCHASTIC-LOOKUP: LL10 Theorem 2 for any distributions). Events of classes u and v are in this
order if their latest times differ by shift(u, v) or more: one number per pair of classes. Of two
entries, the table stores the one that is more useful for the average class.

Kept apart from `intervals.lazy_lookup`: an entry is a class and a time instead of one time, entries
are compared by classes, and violated targets are not reused, so the loops differ in every step.

Reference. Lee and Lee 2010, Algorithms 6 and 7, section 6.

Cost. O(log t) per piece for t targets in reach, and a comparison or a decision for each probed
target; memory O(pairs + probed), 16 bytes per target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from correlation.timing.histograms.locating import BASE, BEGIN, END, HOW, locate_block
from correlation.timing.histograms.pieces import CERTAIN, LEFT, RIGHT
from correlation.timing.histograms.template_ranges import _decide_template_kernel
from correlation.timing.intervals.arguments import as_column
from correlation.timing.intervals.collecting import _fill_certain_kernel, make_columns
from correlation.timing.intervals.pairs import LOOKUP, PROBE, Pairs, ProbeCounts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from correlation.timing.histograms.search import Search
    from correlation.timing.histograms.shapes import Shapes
    from correlation.timing.intervals.collecting import Columns

_NO_ENTRY = -1


def correlate_lazy_lookup(search: Search, shifts: NDArray[np.int64]) -> Pairs:
    """Find the satisfied pairs by pieces and look-up tables.

    Parameters
    ----------
    search : Search
        A search with the s-windows of all classes, so that no pair is doubtful.
    shifts : ndarray of int64, shape (c, c)
        `stochastic_order.shift` of the classes of base events, microseconds.
    """
    located = locate_block(search)
    out = make_columns(located.certain + located.probed)
    found = int(_collect_certain_kernel(search, located.ranges, out))
    probed = hits = 0
    for side in (LEFT, RIGHT):
        table = np.full(len(search.target_latest), _NO_ENTRY, np.int64)
        times = np.empty(len(table), np.int64)
        # Mean shift of each class: the average loss of reach of its entries.
        short = shifts.mean(axis=1 if side == LEFT else 0) if len(shifts) else np.zeros(0)
        found, more, decided = _collect_probed_kernel(
            search,
            located.ranges,
            side,
            as_column(shifts),
            as_column(short.astype(np.int64)),
            (table, times),
            out,
            found,
        )
        probed += int(more)
        hits += int(decided)
    counts = ProbeCounts(probed, hits, probed - hits)
    return Pairs(out[0][:found], out[1][:found], out[2][:found], counts)


@njit(cache=True)
def _collect_certain_kernel(search: Search, ranges: NDArray[np.int64], out: Columns) -> int:
    """Write the pairs of the certain pieces; return their number."""
    found = 0
    for k in range(len(ranges)):
        if ranges[k, HOW] == CERTAIN:
            found = _fill_certain_kernel(
                ranges[k, BASE],
                ranges[k, BEGIN],
                ranges[k, END],
                search.exclude_same,
                out[0],
                out[1],
                found,
            )
    return found


@njit(cache=True)
def _collect_probed_kernel(
    search: Search,
    ranges: NDArray[np.int64],
    side: int,
    shifts: NDArray[np.int64],
    short: NDArray[np.int64],
    table: tuple[NDArray[np.int64], NDArray[np.int64]],
    out: Columns,
    found: int,
) -> tuple[int, int, int]:
    """Write the satisfied pairs of the left or of the right probed pieces from `found` on.

    Returns the number of pairs, of targets in these pieces and of look-up hits.
    """
    # Arrays are read from the search outside the loop only: inside, numba would count references.
    codes = search.target_codes
    targets = search.target_latest
    shapes = search.target_shapes
    grid = search.grid
    entries, times = table
    probed = 0
    hits = 0
    for n in range(len(ranges)):
        # Base events by descending max on the left, by ascending max on the right.
        k = len(ranges) - 1 - n if side == LEFT else n
        if ranges[k, HOW] != side:
            continue
        i = ranges[k, BASE]
        a = search.base_codes[i]
        latest = search.base_latest[i]
        uncut = latest + search.window.lower
        for j in range(ranges[k, BEGIN], ranges[k, END]):
            if search.exclude_same and i == j:
                continue
            probed += 1
            how = PROBE
            entry = entries[j]
            if side == LEFT:
                # A left piece ends where the upper end begins to cut.
                known = entry >= 0 and times[j] - latest >= shifts[entry, a]
            else:
                known = entry >= 0 and latest - times[j] >= shifts[a, entry]
                # On the right, the lower end may cut if the window is narrow.
                known = known and targets[j] + _find_earliest_kernel(shapes, codes[j]) >= uncut
            if known:
                how = LOOKUP
                hits += 1
            elif not _decide_template_kernel(grid, a, codes[j], targets[j] - latest):
                continue
            elif entry < 0 or (
                latest - short[a] >= times[j] - short[entry]
                if side == LEFT
                else latest + short[a] <= times[j] + short[entry]
            ):
                entries[j] = a
                times[j] = latest
            out[0][found] = i
            out[1][found] = j
            out[2][found] = how
            found += 1
    return found, probed, hits


@njit(cache=True)
def _find_earliest_kernel(shapes: Shapes, code: int) -> int:
    """Return the earliest time of a class, as offset from its latest time."""
    earliest: int = shapes.edges[shapes.starts[code] + code]
    return earliest
