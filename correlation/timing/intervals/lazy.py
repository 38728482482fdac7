"""Lazy timing correlation (LL10 Algorithms 4 and 5): a block of base events at once.

Problem. All satisfied pairs of the events of each group, with the targets decided by their position
where that is possible and the searches shared by a block of base events.

Algorithm. When enough events wait (Algorithm 4, the program's), a block of them is evaluated
against the max-sorted targets: the regions of all its base events are located (timing.locating),
then the base events are walked by descending max (Algorithm 5, line 4), the targets in [LL, RL] are
pairs (lines 6 to 8), those in [LH, LL) and (RL, RH] are probed (lines 9 to 11, Algorithm 3), each
by its own probability: there is no look-up table. Sorting and invalidation are the buffer's.

Reference. Lee and Lee 2010, section 4.2, Algorithms 4 and 5.

Cost. O(b log t + pairs + probed) for b base events and t targets in reach; memory O(pairs + probed)
with 32 bytes a base event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numba import njit

from correlation.timing.intervals.collecting import (
    _fill_certain_kernel,
    _probe_targets_kernel,
    make_columns,
)
from correlation.timing.intervals.locating import locate_block
from correlation.timing.intervals.pairs import Pairs, ProbeCounts, check_inputs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from correlation.timing.intervals.collecting import Columns
    from correlation.timing.intervals.pairs import Side
    from correlation.timing.intervals.window import TimingWindow, WindowScalars


def correlate_lazy(
    base: Side,
    target: Side,
    groups: NDArray[np.int64],
    window: TimingWindow,
    *,
    exclude_same: bool,
    target_lengths: tuple[int, int] | None = None,
) -> Pairs:
    """Find the satisfied pairs by the regions of a block; see `pairs.Correlate`."""
    base, target, groups = check_inputs(base, target, groups)
    located = locate_block(base, target, groups, window, target_lengths)
    out = make_columns(located.certain + located.probed)
    found, evaluations = _correlate_block_kernel(
        base.earliest,
        base.latest,
        target.earliest,
        target.latest,
        groups,
        located.rows,
        window.scalars(),
        exclude_same,
        out,
    )
    counts = ProbeCounts(int(evaluations), 0, int(evaluations))
    return Pairs(out[0][:found], out[1][:found], out[2][:found], counts)


@njit(cache=True)
def _correlate_block_kernel(
    base_earliest: NDArray[np.int64],
    base_latest: NDArray[np.int64],
    target_earliest: NDArray[np.int64],
    target_latest: NDArray[np.int64],
    groups: NDArray[np.int64],
    located: NDArray[np.int64],
    window: WindowScalars,
    exclude_same: bool,  # noqa: FBT001 - numba takes no keyword-only arguments
    out: Columns,
) -> tuple[int, int]:
    """Write the pairs; returns their number and how many probabilities were computed."""
    found = 0
    evaluations = 0
    row = 0
    for g in range(len(groups)):
        count = groups[g, 1] - groups[g, 0]
        for k in range(count - 1, -1, -1):
            i = groups[g, 0] + k
            sure = located[row + k, 1]
            right = located[row + k, 2]
            found = _fill_certain_kernel(i, sure, right, exclude_same, out[0], out[1], found)
            for side in (0, 2):
                begin = located[row + k, side]
                end = located[row + k, side + 1]
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
        row += count
    return found, evaluations
