"""Events of A that a block releases, and the segments of B in which their results are searched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from correlation.buffers.filtering import choose_events
from correlation.timing.intervals.best import NONE
from correlation.timing.intervals.pairs import Side

if TYPE_CHECKING:
    from collections.abc import Sequence

    from correlation.buffers.columns import Int64s
    from correlation.buffers.segment import Segment
    from correlation.operators import View
    from correlation.resources.filters import Filter


@dataclass(frozen=True, slots=True)
class Due:
    """Released events of A, each with its origin: row `rows[i]` of segment `places[i]`."""

    segment: Segment
    places: Int64s
    rows: Int64s

    @property
    def side(self) -> Side:
        """The events' times."""
        return Side(self.segment.earliest, self.segment.latest)


def list_segments(view: View, stream: str) -> list[Segment]:
    """Return the buffered segments of a stream, followed by the segment of the block."""
    segments = [segment for _, segment in view.buffers[stream].segments]
    fresh = view.fresh.get(stream)
    return segments if fresh is None else [*segments, fresh]


def has_within(segment: Segment, first: int, end: int) -> bool:
    """Return whether a segment has an event with `latest` in [first, end)."""
    if segment.max_latest < first or segment.min_latest >= end:
        return False
    return bool(((segment.latest >= first) & (segment.latest < end)).any())


def choose_targets(segments: Sequence[Segment], wanted: Filter) -> list[Segment]:
    """Return the segments of the events that pass a filter."""
    found = (choose_events(segment, frozenset({wanted})).segment for segment in segments)
    return [segment for segment in found if segment is not None]


def move_origins(due: Due, segments: Sequence[Segment], wanted: Filter) -> Due:
    """Return the released events of a self-correlation with their places among the targets.

    Parameters
    ----------
    due : Due
        Released events.
    segments : sequence of Segment
        All segments of the stream.
    wanted : Filter
        Filter of B; the targets are those of `choose_targets`. An event that is not a target gets
        the place and row NONE.
    """
    targets = 0
    places, rows = np.full((2, len(due.segment)), NONE, np.int64)
    for place, segment in enumerate(segments):
        chosen = choose_events(segment, frozenset({wanted}))
        if chosen.segment is None:
            continue
        moved = np.full(len(segment), NONE, np.int64)
        moved[chosen.rows] = np.arange(len(chosen.rows))
        mine = due.places == place
        rows[mine] = moved[due.rows[mine]]
        places[mine] = np.where(rows[mine] == NONE, NONE, targets)
        targets += 1
    return Due(due.segment, places, rows)
