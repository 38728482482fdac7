"""Input and output of the correlation algorithms, and their common interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from numba import njit

from correlation.timing.alarm_format import BY_LOOKUP, BY_PROBE, BY_REGION
from correlation.timing.intervals.arguments import as_column
from correlation.timing.intervals.window import UNBOUNDED_US

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from correlation.timing.intervals.window import TimingWindow

# Values of `Pairs.decided_by`.
SATISFACTION_REGION = 0
PROBE = 1
LOOKUP = 2
# Their names in alarms.
DECIDED_BY = (BY_REGION, BY_PROBE, BY_LOOKUP)

_GROUP_COLUMNS = 4


class Side(NamedTuple):
    """The events of one stream, sorted by latest inside every group.

    Attributes
    ----------
    earliest, latest : ndarray of int64, shape (n,)
        Microseconds.
    """

    earliest: NDArray[np.int64]
    latest: NDArray[np.int64]


class ProbeCounts(NamedTuple):
    """Number of pairs in the probe regions, satisfied or violated, by the way of the decision.

    Attributes
    ----------
    probe_region : int
        Pairs in probe regions; in algorithms without regions, all pairs evaluated.
    lookup_hits : int
        Pairs in probe regions decided by the look-up tables, without a probability.
    evaluations : int
        Pairs in probe regions decided one by one: by probability or an equivalent test.
    """

    probe_region: int
    lookup_hits: int
    evaluations: int


class Pairs(NamedTuple):
    """The satisfied pairs, in no particular order.

    Attributes
    ----------
    base_index, target_index : ndarray of int64, shape (k,)
        Positions in the two sides.
    decided_by : ndarray of uint8, shape (k,)
        0 satisfaction region (by position alone), 1 probe, 2 look-up table.
    counts : ProbeCounts
        Counts of the search.
    """

    base_index: NDArray[np.int64]
    target_index: NDArray[np.int64]
    decided_by: NDArray[np.uint8]
    counts: ProbeCounts


class Correlate(Protocol):
    """A correlation algorithm; all algorithms return the same set of pairs."""

    def __call__(
        self,
        base: Side,
        target: Side,
        groups: NDArray[np.int64],
        window: TimingWindow,
        *,
        exclude_same: bool,
        target_lengths: tuple[int, int] | None = None,
    ) -> Pairs:
        """Find the satisfied pairs.

        Parameters
        ----------
        base, target : Side
            The events; a base event plays role A (mirror the window when base events are of B).
        groups : ndarray of int64, shape (k, 4)
            base_lo, base_hi, target_lo, target_hi: half-open ranges of events with equal join
            keys, each sorted by latest. Ranges of one side do not overlap.
        window : TimingWindow
            The condition.
        exclude_same : bool
            Leave out the pairs of equal base and target index (one segment with itself).
        target_lengths : (int, int), optional
            Bounds of the lengths of the targets in `groups`, microseconds; computed from all of
            them if missing.

        Returns
        -------
        Pairs

        Raises
        ------
        ValueError
            The columns of a side differ in length, or a group lies outside a side.
        """


def check_inputs(
    base: Side, target: Side, groups: NDArray[np.int64]
) -> tuple[Side, Side, NDArray[np.int64]]:
    """Check the arrays and return them as kernel arguments.

    Raises
    ------
    ValueError
        The columns of a side differ in length, or a group lies outside a side.
    """
    sides = []
    for name, side in (("base", base), ("target", target)):
        columns = Side(*(as_column(column) for column in side))
        if columns.earliest.shape != columns.latest.shape or columns.latest.ndim != 1:
            raise ValueError(f"{name}: earliest and latest differ in shape")
        sides.append(columns)
    ranges = check_groups(groups, len(sides[0].latest), len(sides[1].latest))
    return sides[0], sides[1], ranges


def check_groups(groups: NDArray[np.int64], bases: int, targets: int) -> NDArray[np.int64]:
    """Check the groups and return them as a kernel argument.

    Parameters
    ----------
    groups : ndarray of int64, shape (k, 4)
        As in `Correlate`.
    bases, targets : int
        Number of events of either side.

    Raises
    ------
    ValueError
        A group lies outside a side.
    """
    ranges = as_column(groups).reshape(-1, _GROUP_COLUMNS)
    for name, size, low, high in (
        ("base", bases, ranges[:, 0], ranges[:, 1]),
        ("target", targets, ranges[:, 2], ranges[:, 3]),
    ):
        if len(ranges) and (low.min() < 0 or (low > high).any() or high.max() > size):
            raise ValueError(f"groups: a range is outside the {name} events")
    return ranges


def count_events(groups: NDArray[np.int64]) -> int:
    """Count the base events of all groups."""
    return int((groups[:, 1] - groups[:, 0]).sum())


def range_lengths(
    base: Side,
    target: Side,
    groups: NDArray[np.int64],
    target_lengths: tuple[int, int] | None,
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the shortest and longest length of either side; `target_lengths` is kept if given.

    Parameters
    ----------
    base, target, groups, target_lengths
        Checked arguments of `pairs.Correlate`.

    Returns
    -------
    base_lengths, target_lengths : (int, int)
        Microseconds; 0, 0 without events.
    """
    base_lengths = _range_lengths_kernel(base.earliest, base.latest, groups[:, :2])
    if target_lengths is None:
        target_lengths = _range_lengths_kernel(target.earliest, target.latest, groups[:, 2:])
    return base_lengths, target_lengths


@njit(cache=True)
def _range_lengths_kernel(
    earliest: NDArray[np.int64], latest: NDArray[np.int64], ranges: NDArray[np.int64]
) -> tuple[int, int]:
    """Return the shortest and longest length of the events in the ranges; 0, 0 without events."""
    shortest = UNBOUNDED_US
    longest = 0
    for g in range(len(ranges)):
        for i in range(ranges[g, 0], ranges[g, 1]):
            length = latest[i] - earliest[i]
            shortest = min(shortest, length)
            longest = max(longest, length)
    return min(shortest, longest), longest
