"""Search among events with intervals: the input of the algorithms, and the decision of a pair.

Problem. Decide P(lower ≤ T_B - T_A ≤ upper) ≥ ct for pairs of a search. The operations here can be
specialised for other kinds of search: `histograms.search` does so for events with histograms.

Cost. O(1) a pair.
"""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING, NamedTuple, Protocol

from numba import njit

from correlation.timing.intervals.collecting import _fill_certain_kernel
from correlation.timing.intervals.exact import _decide_depths_kernel
from correlation.timing.intervals.pairs import PROBE, check_inputs, range_lengths
from correlation.timing.intervals.regions import _locate_event_kernel
from correlation.timing.intervals.satisfaction import bounds_of_scalars
from correlation.timing.intervals.specialising import refuse, specialise

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from correlation.timing.intervals.collecting import Columns
    from correlation.timing.intervals.pairs import Side
    from correlation.timing.intervals.window import TimingWindow, WindowScalars

# Results of a decision. DOUBTFUL: float64 is not precise enough to decide.
VIOLATED, SATISFIED, DOUBTFUL = range(3)
# Value of `Pairs.decided_by` until a doubtful pair is decided.
DOUBT = 255


class AnySearch(Protocol):
    """The fields that every kind of search has; see `IntervalSearch`."""

    @property
    def base_latest(self) -> NDArray[np.int64]: ...  # noqa: D102 - see `IntervalSearch`
    @property
    def target_latest(self) -> NDArray[np.int64]: ...  # noqa: D102
    @property
    def groups(self) -> NDArray[np.int64]: ...  # noqa: D102
    @property
    def reach(self) -> tuple[int, int]: ...  # noqa: D102
    @property
    def window(self) -> WindowScalars: ...  # noqa: D102
    @property
    def exclude_same(self) -> bool: ...  # noqa: D102


class IntervalSearch(NamedTuple):
    """A search as passed to the kernels.

    Attributes
    ----------
    base_earliest, base_latest : ndarray of int64, shape (b,)
        The base events, which play role A.
    target_earliest, target_latest : ndarray of int64, shape (t,)
        The targets.
    groups : ndarray of int64, shape (k, 4)
        As in `pairs.Correlate`.
    lengths : (int, int)
        Shortest and longest length of the targets.
    reach : (int, int)
        Min and max s of any satisfied pair.
    window : WindowScalars
        The condition.
    exclude_same : bool
        Leave out the pairs of equal positions.
    """

    base_earliest: NDArray[np.int64]
    base_latest: NDArray[np.int64]
    target_earliest: NDArray[np.int64]
    target_latest: NDArray[np.int64]
    groups: NDArray[np.int64]
    lengths: tuple[int, int]
    reach: tuple[int, int]
    window: WindowScalars
    exclude_same: bool


def make_search(
    base: Side,
    target: Side,
    groups: NDArray[np.int64],
    window: TimingWindow,
    target_lengths: tuple[int, int] | None,
    *,
    exclude_same: bool,
) -> IntervalSearch:
    """Check the arguments of an algorithm (see `pairs.Correlate`) and build its search.

    Raises
    ------
    ValueError
        The columns of a side differ in length, or a group lies outside a side.
    """
    base, target, groups = check_inputs(base, target, groups)
    base_lengths, target_lengths = range_lengths(base, target, groups, target_lengths)
    scalars = window.scalars()
    return IntervalSearch(
        *base,
        *target,
        groups,
        target_lengths,
        bounds_of_scalars(scalars, base_lengths, target_lengths),
        scalars,
        exclude_same,
    )


@singledispatch
def decide_pair(search: object, i: int, j: int) -> int:  # noqa: ARG001 - the interface
    """Return SATISFIED, VIOLATED or DOUBTFUL for base event i and target j.

    The caller checks floor and ceiling.
    """
    return refuse(search)


@singledispatch
def probe_targets(
    search: object,
    i: int,  # noqa: ARG001 - the interface
    begin: int,  # noqa: ARG001
    end: int,  # noqa: ARG001
    out: Columns,  # noqa: ARG001
    found: int,  # noqa: ARG001
) -> tuple[int, int]:
    """Decide (i, begin) to (i, end - 1) one by one and write the pairs that are not violated.

    All of them lie between floor and ceiling. Returns the new number of pairs, and the number of
    pairs decided.
    """
    return refuse(search)


@singledispatch
def locate_event(
    search: object,
    i: int,  # noqa: ARG001 - the interface
    begin: int,  # noqa: ARG001
    end: int,  # noqa: ARG001
) -> tuple[int, int, int, int]:
    """Locate the targets in [begin, end) that base event i can match.

    Returns the first target, two numbers for `collect_located`, and the end of the targets.
    """
    return refuse(search)


@singledispatch
def collect_located(
    search: object,
    i: int,  # noqa: ARG001 - the interface
    located: tuple[int, int, int, int],  # noqa: ARG001
    out: Columns,  # noqa: ARG001
    found: int,  # noqa: ARG001
) -> tuple[int, int]:
    """Write the pairs of base event i; `located` is the result of `locate_event`.

    Targets are decided by position where possible, and probed elsewhere. Returns the new number of
    pairs, and the number of pairs decided one by one.
    """
    return refuse(search)


@njit(cache=True)
def _decide_pair_kernel(search: IntervalSearch, i: int, j: int) -> int:
    earliest = search.base_earliest[i]
    latest = search.base_latest[i]
    start = search.target_earliest[j]
    stop = search.target_latest[j]
    window = search.window
    if _decide_depths_kernel(
        window.lower + latest - start,
        stop - window.upper - earliest,
        latest - earliest,
        stop - start,
        window,
    ):
        return SATISFIED
    return VIOLATED


@njit(cache=True)
def _probe_targets_kernel(
    search: IntervalSearch, i: int, begin: int, end: int, out: Columns, found: int
) -> tuple[int, int]:
    """Decide targets one by one (LL10 Algorithm 3)."""
    base_index, target_index, decided_by = out
    starts = search.target_earliest
    stops = search.target_latest
    earliest = search.base_earliest[i]
    latest = search.base_latest[i]
    window = search.window
    evaluations = 0
    for j in range(begin, end):
        if search.exclude_same and i == j:
            continue
        evaluations += 1
        if _decide_depths_kernel(
            window.lower + latest - starts[j],
            stops[j] - window.upper - earliest,
            latest - earliest,
            stops[j] - starts[j],
            window,
        ):
            base_index[found] = i
            target_index[found] = j
            decided_by[found] = PROBE
            found += 1
    return found, evaluations


@njit(cache=True)
def _locate_regions_kernel(
    search: IntervalSearch, i: int, begin: int, end: int
) -> tuple[int, int, int, int]:
    """Find left, sure, right, stop (LL10 Algorithm 2, line 1)."""
    located: tuple[int, int, int, int] = _locate_event_kernel(
        search.base_earliest[i],
        search.base_latest[i],
        search.target_latest,
        begin,
        end,
        search.lengths,
        search.window,
    )
    return located


@njit(cache=True)
def _collect_regions_kernel(
    search: IntervalSearch, i: int, located: tuple[int, int, int, int], out: Columns, found: int
) -> tuple[int, int]:
    """Write the pairs of the regions (LL10 Algorithm 2, lines 2 to 7)."""
    left, sure, right, stop = located
    evaluations = 0
    found = _fill_certain_kernel(i, sure, right, search.exclude_same, out[0], out[1], found)
    for begin, end in ((left, sure), (right, stop)):
        if begin == end:
            continue
        found, decided = _probe_targets_kernel(search, i, begin, end, out, found)
        evaluations += decided
    return found, evaluations


specialise(locate_event, IntervalSearch, _locate_regions_kernel)
specialise(collect_located, IntervalSearch, _collect_regions_kernel)
specialise(decide_pair, IntervalSearch, _decide_pair_kernel)
specialise(probe_targets, IntervalSearch, _probe_targets_kernel)
