"""Lazy timing correlation with look-up tables (LL10 Algorithms 6 and 7), the default.

Problem. Find all satisfied pairs of the events of each group (a block of base events against a
max-sorted buffer of targets) with as few evaluations of probabilities as possible.

Algorithm. Two passes over the base events of each group, which are max-sorted as well.
1. *Locate*: find the positions of LH, LL, RL and RH among the targets (intervals.locating).
2. *Collect*: the targets in [LL, RL] are pairs without an evaluation (Algorithm 6, lines 4 to 9).
   The left probe region is visited by descending max of the base events and of the targets of each,
   the right one by ascending max (lines 13 to 25). Earlier decisions are reused in two ways:
   - *Satisfied*, from base event to base event: the look-up table, indexed by target position,
     stores the max earliest time (left; min on the right) of the satisfied base events so far. A
     base event with earliest ≤ the entry (left; ≥ on the right) is satisfied without an evaluation
     (Algorithm 7; Theorem 2, generalised in docs/proofs.md, P-LOOKUP, to one-sided and narrow
     windows: on the left the upper end must not cut, on the right the lower end).
   - *Violated*, from target to target of one base event (the other half of Corollary 2, and the
     paper's Example 1): the max earliest time (left; min on the right) of the violated targets so
     far. A target with earliest ≤ this time (left; ≥ on the right) is violated without an
     evaluation (docs/proofs.md, P-LOOKUP-VIOLATED). Between base events violations can be reused
     only in the opposite visiting order, so the look-up table does not store them.

Reference. Lee and Lee 2010, section 4.2, Corollary 2, Theorem 2.

Cost. O(b log t + pairs + probed) for b base events and t targets in reach; memory O(pairs), with
32 bytes per base event and 8 per target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from correlation.timing.intervals.collecting import _collect_certain_kernel, make_columns
from correlation.timing.intervals.exact import _decide_depths_kernel
from correlation.timing.intervals.locating import locate_block
from correlation.timing.intervals.pairs import LOOKUP, PROBE, Pairs, ProbeCounts, check_inputs
from correlation.timing.intervals.window import UNBOUNDED_US

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from correlation.timing.intervals.collecting import Columns
    from correlation.timing.intervals.locating import Located
    from correlation.timing.intervals.pairs import Side
    from correlation.timing.intervals.window import TimingWindow, WindowScalars

# First column of the probe region in `Located.rows`.
_LEFT, _RIGHT = 0, 2


def correlate_lazy_lookup(
    base: Side,
    target: Side,
    groups: NDArray[np.int64],
    window: TimingWindow,
    *,
    exclude_same: bool,
    target_lengths: tuple[int, int] | None = None,
) -> Pairs:
    """Find the satisfied pairs by regions and look-up tables; see `pairs.Correlate`."""
    base, target, groups = check_inputs(base, target, groups)
    located = locate_block(base, target, groups, window, target_lengths)
    out = make_columns(located.certain + located.probed)
    base_index, target_index, decided_by = out
    found = _collect_certain_kernel(groups, located.rows, exclude_same, base_index, target_index)
    found, counts = collect_probed(
        base, target, groups, located, window.scalars(), out, found, exclude_same=exclude_same
    )
    return Pairs(base_index[:found], target_index[:found], decided_by[:found], counts)


def collect_probed(
    base: Side,
    target: Side,
    groups: NDArray[np.int64],
    located: Located,
    window: WindowScalars,
    out: Columns,
    found: int,
    *,
    exclude_same: bool,
) -> tuple[int, ProbeCounts]:
    """Write the satisfied pairs of the probe regions.

    Parameters
    ----------
    base, target, groups, exclude_same
        Checked arguments of `pairs.Correlate`.
    located : Located
        Regions of the base events.
    window : WindowScalars
        The condition.
    out : Columns
        Columns with room for `located.probed` pairs from `found` on.
    found : int
        Number of pairs already in the columns.

    Returns
    -------
    int, ProbeCounts
        New number of pairs in the columns, and the counts of the probe regions.
    """
    probed = hits = 0
    if located.probed:
        found, probed, hits = _collect_sides_kernel(
            base,
            target,
            groups,
            located.rows,
            window,
            exclude_same,
            np.empty(len(target.latest), np.int64),
            out,
            found,
        )
    return int(found), ProbeCounts(int(probed), int(hits), int(probed - hits))


@njit(cache=True)
def _collect_sides_kernel(
    base: Side,
    target: Side,
    groups: NDArray[np.int64],
    located: NDArray[np.int64],
    window: WindowScalars,
    exclude_same: bool,  # noqa: FBT001 - numba takes no keyword-only arguments
    table: NDArray[np.int64],
    out: Columns,
    found: int,
) -> tuple[int, int, int]:
    """Write the satisfied pairs of both probe regions from `found` on.

    Returns the number of pairs, the size of the probe regions and the number of look-up hits.
    """
    found, probed, hits = _collect_side_kernel(
        _LEFT, base, target, groups, located, window, exclude_same, table, out, found
    )
    found, more_probed, more_hits = _collect_side_kernel(
        _RIGHT, base, target, groups, located, window, exclude_same, table, out, found
    )
    return found, probed + more_probed, hits + more_hits


# Force-inlined so that the side is a constant: a comparison at run time costs up to 10 %.
@njit(cache=True, forceinline=True)
def _collect_side_kernel(
    column: int,
    base: Side,
    target: Side,
    groups: NDArray[np.int64],
    located: NDArray[np.int64],
    window: WindowScalars,
    exclude_same: bool,  # noqa: FBT001 - numba takes no keyword-only arguments
    table: NDArray[np.int64],
    out: Columns,
    found: int,
) -> tuple[int, int, int]:
    """Write the satisfied pairs of the probe regions of one side.

    Base events, and the targets of each, are visited by descending max on the left and by ascending
    max on the right. The max (left) or min (right) earliest time is stored for each target over its
    satisfied base events, and for the base event over its violated targets. The upper end must not
    cut on the left, the lower end on the right.
    """
    base_index, target_index, decided_by = out
    base_earliest, base_latest = base
    target_earliest, target_latest = target
    is_left = column == _LEFT
    nothing = -UNBOUNDED_US if is_left else UNBOUNDED_US
    probe_region = 0
    hits = 0
    row = 0
    for g in range(len(groups)):
        count = groups[g, 1] - groups[g, 0]
        _reset_table_kernel(table, located[row : row + count, column : column + 2], nothing)
        for n in range(count):
            k = count - 1 - n if is_left else n
            i = groups[g, 0] + k
            begin = located[row + k, column]
            end = located[row + k, column + 1]
            if begin == end:
                continue
            earliest = base_earliest[i]
            latest = base_latest[i]
            violated = nothing
            for m in range(end - begin):
                j = end - 1 - m if is_left else begin + m
                if exclude_same and i == j:
                    continue
                probe_region += 1
                start = target_earliest[j]
                stop = target_latest[j]
                if start <= violated if is_left else start >= violated:
                    hits += 1
                    continue
                lower_depth = window.lower + latest - start
                upper_depth = stop - window.upper - earliest
                is_uncut = (upper_depth if is_left else lower_depth) <= 0
                is_known = earliest <= table[j] if is_left else earliest >= table[j]
                how = PROBE
                if is_known and is_uncut:
                    how = LOOKUP
                    hits += 1
                elif _decide_depths_kernel(
                    lower_depth, upper_depth, latest - earliest, stop - start, window
                ):
                    table[j] = max(table[j], earliest) if is_left else min(table[j], earliest)
                else:
                    if is_uncut:
                        violated = start
                    continue
                base_index[found] = i
                target_index[found] = j
                decided_by[found] = how
                found += 1
        row += count
    return found, probe_region, hits


@njit(cache=True)
def _reset_table_kernel(table: NDArray[np.int64], ranges: NDArray[np.int64], empty: int) -> None:
    """Clear the entries from the first to the last position of the ranges."""
    begin = len(table)
    end = 0
    for k in range(len(ranges)):
        if ranges[k, 0] < ranges[k, 1]:
            begin = min(begin, ranges[k, 0])
            end = max(end, ranges[k, 1])
    for j in range(begin, end):
        table[j] = empty
