"""Simple timing correlation (LL10 Algorithm 1): every base event with every target.

Problem. All satisfied pairs of the events of each group. The plain reference of the others.

Reference. Lee and Lee 2010, Algorithm 1, without its invalidation, which is the buffer's.

Cost. O(base x target) exact decisions; memory O(pairs).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numba import njit

from correlation.timing.intervals.collecting import collect_parts
from correlation.timing.intervals.exact import _decide_depths_kernel
from correlation.timing.intervals.pairs import PROBE, check_inputs, count_events

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from correlation.timing.intervals.collecting import Columns
    from correlation.timing.intervals.pairs import Pairs, Side
    from correlation.timing.intervals.window import TimingWindow, WindowScalars


def correlate_simple(
    base: Side,
    target: Side,
    groups: NDArray[np.int64],
    window: TimingWindow,
    *,
    exclude_same: bool,
    target_lengths: tuple[int, int] | None = None,  # noqa: ARG001 - the common interface
) -> Pairs:
    """Find the satisfied pairs by deciding every pair; see `pairs.Correlate`."""
    base, target, groups = check_inputs(base, target, groups)
    scalars = window.scalars()
    return collect_parts(
        count_events(groups),
        _decide_all_kernel,
        base.earliest,
        base.latest,
        target.earliest,
        target.latest,
        groups,
        scalars,
        exclude_same,
    )


@njit(cache=True)
def _decide_all_kernel(
    base_earliest: NDArray[np.int64],
    base_latest: NDArray[np.int64],
    target_earliest: NDArray[np.int64],
    target_latest: NDArray[np.int64],
    groups: NDArray[np.int64],
    window: WindowScalars,
    exclude_same: bool,  # noqa: FBT001 - numba takes no keyword-only arguments
    done: int,
    out: Columns,
) -> tuple[int, int, int, int]:
    """Give the fields of a `Part`."""
    base_index, target_index, decided_by = out
    found = 0
    evaluations = 0
    row = 0
    for g in range(len(groups)):
        targets = groups[g, 3] - groups[g, 2]
        for i in range(groups[g, 0], groups[g, 1]):
            row += 1
            if row <= done:
                continue
            if found + targets > len(base_index):
                return row - 1, found, evaluations, targets
            a = base_latest[i] - base_earliest[i]
            for j in range(groups[g, 2], groups[g, 3]):
                if exclude_same and i == j:
                    continue
                evaluations += 1
                s = target_latest[j] - base_latest[i]
                b = target_latest[j] - target_earliest[j]
                if not window.floor <= s <= window.ceiling:
                    continue
                if not _decide_depths_kernel(
                    window.lower - s + b, s - window.upper + a, a, b, window
                ):
                    continue
                base_index[found] = i
                target_index[found] = j
                decided_by[found] = PROBE
                found += 1
    return row, found, evaluations, 0
