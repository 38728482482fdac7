"""Best target of each base event, or existence of a target, for events with histograms.

Problem. As in intervals.best and intervals.unmatched, if some or all events have histograms.

Algorithm. The targets in reach of the base events are gathered in one segment
(`histograms.gathering`), so that all targets of a base event are compared at once:
`histograms.best`, `histograms.unmatched`.

Cost. O(n log n) for n targets in reach. best visits all satisfied pairs, for one part of the base
events at a time; unmatched visits the targets of a base event up to the first satisfied one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from correlation.buffers.segment import match_groups
from correlation.timing.histograms.best import choose_best
from correlation.timing.histograms.classes import side_of
from correlation.timing.histograms.gathering import NONE, gather_targets
from correlation.timing.histograms.lazy import correlate_lazy
from correlation.timing.histograms.search import make_search
from correlation.timing.histograms.unmatched import mark_matched
from correlation.timing.intervals.arguments import as_column
from correlation.timing.intervals.pairs import SATISFACTION_REGION

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from correlation.buffers.columns import Int64s
    from correlation.buffers.segment import Segment
    from correlation.timing.histograms.search import Search
    from correlation.timing.histograms.windows import WindowBook
    from correlation.timing.intervals.window import TimingWindow

# Max base events whose pairs are in memory at once.
_PART = 512


@dataclass(frozen=True, slots=True)
class HistogramTargets:
    """Base events and all targets in their reach.

    Parameters
    ----------
    base, segment : Segment
        Base events, of A, and targets, of B.
    window : TimingWindow
        The condition.
    search : Search
        Search of the base events among the targets.
    book : WindowBook
        The s-windows of the condition.
    left_out : int64[b]
        Row of the target that is the base event itself, else -1.
    """

    base: Segment
    segment: Segment
    window: TimingWindow
    search: Search
    book: WindowBook
    left_out: Int64s

    def find_best(self) -> tuple[Int64s, Int64s, int]:
        """Find the best target of each base event with a satisfied target.

        Returns
        -------
        base_rows, target_rows : int64[k]
            The pairs.
        looked_at : int
            Number of targets in reach of the base events.
        """
        found = [(np.zeros(0, np.int64), np.zeros(0, np.int64))]
        looked_at = 0
        for groups in _split(self.search.groups):
            pairs = correlate_lazy(self.search._replace(groups=groups))
            looked_at += pairs.counts.probe_region + int(
                (pairs.decided_by == SATISFACTION_REGION).sum()
            )
            others = pairs.target_index != self.left_out[pairs.base_index]
            found.append(
                choose_best(
                    self.base,
                    self.segment,
                    pairs.base_index[others],
                    pairs.target_index[others],
                    self.window,
                )
            )
        self.book.note_missed(self.search)
        bases, targets = zip(*found, strict=True)
        return np.concatenate(bases), np.concatenate(targets), looked_at

    def mark_matched(self, matched: NDArray[np.bool_]) -> int:
        """Mark the base events with at least one satisfied target.

        Parameters
        ----------
        matched : bool[b]
            Set to True if a target is found; base events already marked are skipped.

        Returns
        -------
        int
            Number of targets decided one by one.
        """
        decided = mark_matched(self.search, matched, self.left_out)
        self.book.note_missed(self.search)
        return decided


def find_histogram_targets(
    base: Segment,
    targets: Sequence[Segment],
    own: tuple[Int64s, Int64s] | None,
    reach: tuple[int, int],
    book: WindowBook,
) -> HistogramTargets | None:
    """Gather the targets of base events.

    Parameters
    ----------
    base : Segment
        Events of A.
    targets : sequence of Segment
        Segments of B.
    own : (int64[b], int64[b]) or None
        In a self-correlation: index in `targets` of each base event's segment, and its row there.
    reach : (int, int)
        Min and max of max_B - max_A of any satisfied pair, in µs.
    book : WindowBook
        The s-windows of the condition.

    Returns
    -------
    HistogramTargets or None
        None if no target is in reach.
    """
    gathered = gather_targets(base, targets, reach)
    if gathered is None:
        return None
    nothing = np.full(len(base), NONE, np.int64)
    left_out = as_column(nothing if own is None else gathered.find(*own))
    sides = side_of(base), side_of(gathered.segment)
    groups = match_groups(base, gathered.segment)
    grid = book.find_grid(sides[0].classes, sides[1].classes, base_is_a=True)
    columns = None if grid is None else grid.columns
    search = make_search(*sides, groups, book.window, columns, exclude_same=False)
    return HistogramTargets(base, gathered.segment, book.window, search, book, left_out)


def _split(groups: Int64s) -> Iterator[Int64s]:
    """Split groups into parts of at most `_PART` base events."""
    part: list[tuple[int, int, int, int]] = []
    room = _PART
    for begin, end, low, high in groups.tolist():
        first = begin
        while first < end:
            last = min(first + room, end)
            part.append((first, last, low, high))
            room -= last - first
            first = last
            if not room:
                yield as_column(part)
                part, room = [], _PART
    if part:
        yield as_column(part)
