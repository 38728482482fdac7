"""Base events with at least one target that satisfies the condition.

Problem. For each base event, decide whether a satisfied target exists, without finding all targets.

Algorithm. Regions as in intervals.lazy (LL10 Algorithm 2): one target in the satisfaction region is
enough. If the satisfaction region is empty, the targets in the probe regions are decided one by
one up to the first satisfied one, beginning next to the satisfaction region, where the probability
is highest.

Cost. O(log t) per base event of t targets; if the satisfaction region is empty, O(1) more for each
decided target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numba import njit

from correlation.timing.intervals.arguments import as_column
from correlation.timing.intervals.exact import _decide_depths_kernel
from correlation.timing.intervals.pairs import check_inputs, range_lengths
from correlation.timing.intervals.regions import _locate_event_kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from correlation.timing.intervals.pairs import Side
    from correlation.timing.intervals.window import TimingWindow, WindowScalars


def mark_matched(
    base: Side,
    target: Side,
    groups: NDArray[np.int64],
    window: TimingWindow,
    matched: NDArray[np.bool_],
    *,
    left_out: NDArray[np.int64],
    target_lengths: tuple[int, int] | None = None,
) -> int:
    """Mark the base events with at least one satisfied target.

    Parameters
    ----------
    base, target, groups, window, target_lengths
        As in `pairs.Correlate`.
    matched : ndarray of bool, shape (b,)
        Set to True if a target is found; base events already marked are skipped.
    left_out : ndarray of int64, shape (b,)
        Position of the target that is the base event itself, else -1.

    Returns
    -------
    int
        Number of targets decided one by one.
    """
    base, target, groups = check_inputs(base, target, groups)
    _, lengths = range_lengths(base, target, groups, target_lengths)
    return int(
        _mark_matched_kernel(
            base, target, groups, window.scalars(), lengths, as_column(left_out), matched
        )
    )


@njit(cache=True)
def _mark_matched_kernel(
    base: Side,
    target: Side,
    groups: NDArray[np.int64],
    window: WindowScalars,
    lengths: tuple[int, int],
    left_out: NDArray[np.int64],
    matched: NDArray[np.bool_],
) -> int:
    decided = 0
    for g in range(len(groups)):
        for i in range(groups[g, 0], groups[g, 1]):
            if matched[i]:
                continue
            left, sure, right, stop = _locate_event_kernel(
                base.earliest[i],
                base.latest[i],
                target.latest,
                groups[g, 2],
                groups[g, 3],
                lengths,
                window,
            )
            certain = right - sure
            if sure <= left_out[i] < right:
                certain -= 1
            if certain > 0:
                matched[i] = True
                continue
            for k in range(sure - left + stop - right):
                j = sure - 1 - k if k < sure - left else right + k - (sure - left)
                if j == left_out[i]:
                    continue
                decided += 1
                if _decide_depths_kernel(
                    window.lower + base.latest[i] - target.earliest[j],
                    target.latest[j] - window.upper - base.earliest[i],
                    base.latest[i] - base.earliest[i],
                    target.latest[j] - target.earliest[j],
                    window,
                ):
                    matched[i] = True
                    break
    return decided
