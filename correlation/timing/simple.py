"""Simple timing correlation (LL10 Algorithm 1): every base event with every target.

Problem. All satisfied pairs of the events of each group. The plain reference of the others.

Reference. Lee and Lee 2010, Algorithm 1, without its invalidation, which is the buffer's.

Cost. O(base x target) exact decisions; memory O(pairs).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from correlation.timing.exact import _decide_depths_kernel
from correlation.timing.pairs import PROBE, Pairs, ProbeCounts, check_inputs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from correlation.timing.pairs import Side
    from correlation.timing.window import TimingWindow, WindowScalars

_FIRST_ROOM = 1024


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
    base_index, target_index, evaluations = _decide_all_kernel(
        base.earliest,
        base.latest,
        target.earliest,
        target.latest,
        groups,
        window.scalars(),
        exclude_same,
    )
    decided_by = np.full(len(base_index), PROBE, np.uint8)
    counts = ProbeCounts(int(evaluations), 0, int(evaluations))
    return Pairs(base_index, target_index, decided_by, counts)


@njit(cache=True)
def _decide_all_kernel(
    base_earliest: NDArray[np.int64],
    base_latest: NDArray[np.int64],
    target_earliest: NDArray[np.int64],
    target_latest: NDArray[np.int64],
    groups: NDArray[np.int64],
    window: WindowScalars,
    exclude_same: bool,  # noqa: FBT001 - numba takes no keyword-only arguments
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    base_index = np.empty(_FIRST_ROOM, np.int64)
    target_index = np.empty(_FIRST_ROOM, np.int64)
    found = 0
    evaluations = 0
    for g in range(len(groups)):
        for i in range(groups[g, 0], groups[g, 1]):
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
                if found == len(base_index):
                    base_index = _double_room_kernel(base_index)
                    target_index = _double_room_kernel(target_index)
                base_index[found] = i
                target_index[found] = j
                found += 1
    return base_index[:found].copy(), target_index[:found].copy(), evaluations


@njit(cache=True)
def _double_room_kernel(column: NDArray[np.int64]) -> NDArray[np.int64]:
    larger = np.empty(2 * len(column), np.int64)
    larger[: len(column)] = column
    return larger
