"""Eager timing correlation (LL10 Algorithms 2 and 3): each base event as it arrives.

Problem. All satisfied pairs of the events of each group, with the targets decided by their position
where that is possible, and none of the base events waiting for another.

Algorithm. The base events of a group are taken one by one. For each, LH, LL, RL and RH are searched
among all targets (Algorithm 2, line 1); the targets in [LL, RL] are pairs (lines 2 to 4), those in
[LH, LL) and (RL, RH] are probed (lines 5 to 7, Algorithm 3). Nothing is shared between base events:
no order of them is used, and no size of the result known beforehand. Inserting the event and
invalidation (lines 8 and 9) are the buffer's.

Reference. Lee and Lee 2010, section 4.2, Algorithms 2 and 3.

Cost. O(b log t + pairs + probed) for b base events and t targets, each search over a whole group;
memory O(pairs), in parts that are put together at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numba import njit

from correlation.timing.intervals.collecting import (
    _fill_certain_kernel,
    _probe_targets_kernel,
    collect_parts,
)
from correlation.timing.intervals.locating import _locate_event_kernel, range_lengths
from correlation.timing.intervals.pairs import check_inputs, count_events

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from correlation.timing.intervals.collecting import Columns
    from correlation.timing.intervals.pairs import Pairs, Side
    from correlation.timing.intervals.window import TimingWindow, WindowScalars


def correlate_eager(
    base: Side,
    target: Side,
    groups: NDArray[np.int64],
    window: TimingWindow,
    *,
    exclude_same: bool,
    target_lengths: tuple[int, int] | None = None,
) -> Pairs:
    """Find the satisfied pairs by the regions of each base event; see `pairs.Correlate`."""
    base, target, groups = check_inputs(base, target, groups)
    _, target_lengths = range_lengths(base, target, groups, target_lengths)
    scalars = window.scalars()
    return collect_parts(
        count_events(groups),
        _correlate_events_kernel,
        base.earliest,
        base.latest,
        target.earliest,
        target.latest,
        groups,
        scalars,
        target_lengths,
        exclude_same,
    )


@njit(cache=True)
def _correlate_events_kernel(
    base_earliest: NDArray[np.int64],
    base_latest: NDArray[np.int64],
    target_earliest: NDArray[np.int64],
    target_latest: NDArray[np.int64],
    groups: NDArray[np.int64],
    window: WindowScalars,
    lengths: tuple[int, int],
    exclude_same: bool,  # noqa: FBT001 - numba takes no keyword-only arguments
    done: int,
    out: Columns,
) -> tuple[int, int, int, int]:
    """Give the fields of a `Part`."""
    found = 0
    evaluations = 0
    row = 0
    for g in range(len(groups)):
        for i in range(groups[g, 0], groups[g, 1]):
            row += 1
            if row <= done:
                continue
            left, sure, right, stop = _locate_event_kernel(
                base_earliest[i],
                base_latest[i],
                target_latest,
                groups[g, 2],
                groups[g, 3],
                lengths,
                window,
            )
            if found + stop - left > len(out[0]):
                return row - 1, found, evaluations, stop - left
            found = _fill_certain_kernel(i, sure, right, exclude_same, out[0], out[1], found)
            for begin, end in ((left, sure), (right, stop)):
                if begin == end:
                    continue
                found, decided = _probe_targets_kernel(
                    i,
                    begin,
                    end,
                    base_earliest,
                    base_latest,
                    target_earliest,
                    target_latest,
                    window,
                    exclude_same,
                    out,
                    found,
                )
                evaluations += decided
    return row, found, evaluations, 0
