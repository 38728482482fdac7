"""Satisfied pairs by base event: a range of certain targets, and bits for probed targets.

Problem. Find all satisfied pairs of the events of each group, as `pairs.Correlate` does, without
writing the certain pairs one by one.

Definitions. For a base event with a pair, *certain* is its satisfaction region as positions in the
targets. *left* and *right* are its probe regions from the first to the last satisfied target. Each
target in left and right has one bit; the highest bit of a byte is the first target, and each region
begins with a new byte.

Algorithm. LL10 Algorithms 6 and 7 (intervals.lazy_lookup), with room for the probe regions only.
The pairs found by look-up tables and exact decisions are marked and packed.

Cost. O(b log t + probed) time for b base events and t targets in reach; memory 32 bytes per base
event, 8 per target and at most 18 per probed target. Certain pairs add no cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from correlation.timing.intervals.collecting import make_columns
from correlation.timing.intervals.lazy_lookup import collect_probed
from correlation.timing.intervals.locating import locate_block
from correlation.timing.intervals.pairs import DECIDED_BY, ProbeCounts, check_inputs

if TYPE_CHECKING:
    from correlation.timing.intervals.pairs import Side
    from correlation.timing.intervals.window import TimingWindow

Int64s = NDArray[np.int64]


class Spans(NamedTuple):
    """The satisfied pairs of k base events, each with one pair or more.

    Attributes
    ----------
    base, group : int64[k]
        Position of the base event, ascending within its group, and number of its group.
    left, certain, right : int64[k, 2]
        Half-open ranges of target positions; equal ends if a range is empty.
    bits : uint8[n]
        The packed bits of all base events.
    bits_at : int64[k, 3]
        Begin of the left region in `bits`, begin of the right one, and end of the right one.
    pairs : int64[k]
        Number of pairs.
    decided : int64[3]
        Number of pairs by the way of the decision, in the order of DECIDED_BY.
    counts : ProbeCounts
        Counts of the search.
    """

    base: Int64s
    group: Int64s
    left: Int64s
    certain: Int64s
    right: Int64s
    bits: NDArray[np.uint8]
    bits_at: Int64s
    pairs: Int64s
    decided: Int64s
    counts: ProbeCounts

    def reach(self) -> Int64s:
        """Return, for each base event, the half-open range of its targets."""
        left, certain, right = self.left, self.certain, self.right
        has_left, has_certain = left[:, 0] < left[:, 1], certain[:, 0] < certain[:, 1]
        has_right = right[:, 0] < right[:, 1]
        begin = np.where(has_left, left[:, 0], np.where(has_certain, certain[:, 0], right[:, 0]))
        end = np.where(has_right, right[:, 1], np.where(has_certain, certain[:, 1], left[:, 1]))
        return np.column_stack((begin, end))


def correlate_spans(
    base: Side,
    target: Side,
    groups: NDArray[np.int64],
    window: TimingWindow,
    *,
    target_lengths: tuple[int, int] | None = None,
) -> Spans:
    """Find the satisfied pairs by base event.

    Parameters
    ----------
    base, target, groups, window, target_lengths
        As in `pairs.Correlate`.

    Raises
    ------
    ValueError
        The columns of a side differ in length, or a group lies outside a side.
    """
    base, target, groups = check_inputs(base, target, groups)
    located = locate_block(base, target, groups, window, target_lengths)
    base_index, target_index, decided_by = columns = make_columns(located.probed)
    # The two segments always differ: factored output excludes self-correlations.
    found, counts = collect_probed(
        base, target, groups, located, window.scalars(), columns, 0, exclude_same=False
    )
    decided = np.bincount(decided_by[:found], minlength=len(DECIDED_BY)).astype(np.int64)
    decided[0] += located.certain
    listed = _list_events(groups, located.rows, len(base.latest))
    marks = np.zeros(located.probed, np.bool_)
    _mark_found_kernel(
        base_index[:found],
        target_index[:found],
        listed.row_of,
        located.rows,
        listed.marks_at,
        marks,
    )
    ranges = np.empty((len(located.rows), 7), np.int64)
    _trim_regions_kernel(located.rows, listed.marks_at, marks, ranges)
    rows = np.flatnonzero(ranges[:, 6])
    ranges = ranges[rows]
    bits, bits_at = _pack_marks(ranges, located.rows[rows], listed.marks_at[rows], marks)
    return Spans(
        listed.base[rows],
        listed.group[rows],
        ranges[:, 0:2],
        ranges[:, 2:4],
        ranges[:, 4:6],
        bits,
        bits_at,
        ranges[:, 6],
        decided,
        counts,
    )


class _Listed(NamedTuple):
    """The r base events of all groups, in the order of the rows of `Located`."""

    base: Int64s
    group: Int64s
    # Row of each base event of the side; -1 outside the groups.
    row_of: Int64s
    # Begin of the marks of the left probe region; the marks of the right one follow.
    marks_at: Int64s


def _list_events(groups: Int64s, located: Int64s, events: int) -> _Listed:
    sizes = groups[:, 1] - groups[:, 0]
    group = np.repeat(np.arange(len(groups)), sizes)
    starts = np.cumsum(sizes) - sizes
    base = groups[group, 0] + np.arange(len(group)) - starts[group]
    row_of = np.full(events, -1, np.int64)
    row_of[base] = np.arange(len(base))
    probed = located[:, 1] - located[:, 0] + located[:, 3] - located[:, 2]
    return _Listed(base, group, row_of, np.cumsum(probed) - probed)


def _pack_marks(
    ranges: Int64s, located: Int64s, marks_at: Int64s, marks: NDArray[np.bool_]
) -> tuple[NDArray[np.uint8], Int64s]:
    """Pack the marks of either region; each region begins with a new byte."""
    left_bytes = (ranges[:, 1] - ranges[:, 0] + 7) // 8
    right_bytes = (ranges[:, 5] - ranges[:, 4] + 7) // 8
    ends = np.cumsum(left_bytes + right_bytes)
    bits_at = np.column_stack((ends - left_bytes - right_bytes, ends - right_bytes, ends))
    bits = np.zeros(int(ends[-1]) if len(ends) else 0, np.uint8)
    _pack_marks_kernel(ranges, located, marks_at, marks, bits_at, bits)
    return bits, bits_at


@njit(cache=True)
def _mark_found_kernel(
    base_index: NDArray[np.int64],
    target_index: NDArray[np.int64],
    row_of: NDArray[np.int64],
    located: NDArray[np.int64],
    marks_at: NDArray[np.int64],
    marks: NDArray[np.bool_],
) -> None:
    """Mark the satisfied targets of the probe regions."""
    for k in range(len(base_index)):
        row = row_of[base_index[k]]
        j = target_index[k]
        place = marks_at[row] + j - located[row, 0]
        if j >= located[row, 2]:
            place -= located[row, 2] - located[row, 1]
        marks[place] = True


@njit(cache=True)
def _trim_regions_kernel(
    located: NDArray[np.int64],
    marks_at: NDArray[np.int64],
    marks: NDArray[np.bool_],
    ranges: NDArray[np.int64],
) -> None:
    """Fill in, for each row, the ends of left, certain and right, and the number of pairs."""
    for row in range(len(located)):
        sure, right = located[row, 1], located[row, 2]
        ranges[row, 2] = sure
        ranges[row, 3] = right
        pairs = right - sure
        place = marks_at[row]
        for side, first, end in ((0, located[row, 0], sure), (4, right, located[row, 3])):
            ranges[row, side] = sure if side == 0 else right
            ranges[row, side + 1] = ranges[row, side]
            seen = 0
            for j in range(first, end):
                if marks[place]:
                    if seen == 0:
                        ranges[row, side] = j
                    ranges[row, side + 1] = j + 1
                    seen += 1
                place += 1
            pairs += seen
        ranges[row, 6] = pairs


@njit(cache=True)
def _pack_marks_kernel(
    ranges: NDArray[np.int64],
    located: NDArray[np.int64],
    marks_at: NDArray[np.int64],
    marks: NDArray[np.bool_],
    bits_at: NDArray[np.int64],
    bits: NDArray[np.uint8],
) -> None:
    for row in range(len(ranges)):
        skipped = located[row, 0]
        for side in range(2):
            first, end = ranges[row, 4 * side], ranges[row, 4 * side + 1]
            place = marks_at[row] + first - skipped
            for k in range(end - first):
                if marks[place + k]:
                    bits[bits_at[row, side] + k // 8] |= np.uint8(128 >> (k % 8))
            skipped += located[row, 2] - located[row, 1]
