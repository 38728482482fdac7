"""Simple-Sort timing correlation (LL10 Algorithm 1 over a max-sorted buffer).

Problem. All satisfied pairs of the events of each group, as in timing.simple.

Algorithm. Every target of a base event is decided, but for those that no event of these lengths can
match: the s of all satisfied pairs lie in [least, greatest] (docs/proofs.md, P-KEEP), and sorted by
max the targets outside stand together. Those below are the obsolete ones that the paper removes:
the base events being max-sorted too, they stay obsolete, and the walk begins behind them. At the
first target above it stops.

Reference. Lee and Lee 2010, section 4.2 (Simple-Sort), without its invalidation, which is the
buffer's.

Cost. O(base + target + pairs within [least, greatest]) with an exact decision for each of the last;
memory O(pairs).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numba import njit

from correlation.timing.intervals.collecting import _probe_targets_kernel, collect_parts
from correlation.timing.intervals.locating import range_lengths
from correlation.timing.intervals.pairs import check_inputs, count_events
from correlation.timing.intervals.satisfaction import bounds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from correlation.timing.intervals.collecting import Columns
    from correlation.timing.intervals.pairs import Pairs, Side
    from correlation.timing.intervals.window import TimingWindow, WindowScalars


def correlate_ssort(
    base: Side,
    target: Side,
    groups: NDArray[np.int64],
    window: TimingWindow,
    *,
    exclude_same: bool,
    target_lengths: tuple[int, int] | None = None,
) -> Pairs:
    """Find the satisfied pairs by deciding those not too far apart; see `pairs.Correlate`."""
    base, target, groups = check_inputs(base, target, groups)
    base_lengths, target_lengths = range_lengths(base, target, groups, target_lengths)
    scalars = window.scalars()
    reach = bounds(window, *base_lengths, *target_lengths)
    return collect_parts(
        count_events(groups),
        _decide_near_kernel,
        base.earliest,
        base.latest,
        target.earliest,
        target.latest,
        groups,
        scalars,
        reach,
        exclude_same,
    )


@njit(cache=True)
def _decide_near_kernel(
    base_earliest: NDArray[np.int64],
    base_latest: NDArray[np.int64],
    target_earliest: NDArray[np.int64],
    target_latest: NDArray[np.int64],
    groups: NDArray[np.int64],
    window: WindowScalars,
    reach: tuple[int, int],
    exclude_same: bool,  # noqa: FBT001 - numba takes no keyword-only arguments
    done: int,
    out: Columns,
) -> tuple[int, int, int, int]:
    """Give the fields of a `Part`."""
    found = 0
    evaluations = 0
    row = 0
    for g in range(len(groups)):
        first = groups[g, 2]
        end = groups[g, 3]
        for i in range(groups[g, 0], groups[g, 1]):
            row += 1
            if row <= done:
                continue
            while first < end and target_latest[first] < base_latest[i] + reach[0]:
                first += 1
            stop = first
            while stop < end and target_latest[stop] <= base_latest[i] + reach[1]:
                stop += 1
            if first == stop:
                continue
            if found + stop - first > len(out[0]):
                return row - 1, found, evaluations, stop - first
            found, decided = _probe_targets_kernel(
                i,
                first,
                stop,
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
