"""Events of a segment that pass the filters of a condition.

Problem. Evaluate a condition only on the events that pass its filters; the buffers hold all events
of a stream, because conditions share them.

Algorithm. The chosen events of a segment are a segment too, computed once in the lifetime of the
segment and shared by all conditions with equal filters. If all events are chosen, it is the segment
itself. Conditions without a filter do not use this file.

Cost. One mask per segment and filter, and a copy of the chosen events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from correlation.buffers.buffer import StreamBuffer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from correlation.buffers.columns import Int64s
    from correlation.buffers.segment import Segment
    from correlation.resources.filters import Filter

# An event is chosen if one of the filters matches.
Filters = frozenset["Filter"]


class Chosen(NamedTuple):
    """The chosen events of a segment, and their rows in it: int64[k]."""

    segment: Segment | None
    rows: Int64s


# None if all events of a segment are chosen: an entry must not refer to its key.
_CHOSEN: WeakKeyDictionary[Segment, dict[Filters, Chosen | None]] = WeakKeyDictionary()


def choose_events(segment: Segment, filters: Filters) -> Chosen:
    """Choose the events that match one of the filters.

    Parameters
    ----------
    segment : Segment
        Events with their attributes.
    filters : frozenset of Filter
        Filters with constants of the declared types.

    Returns
    -------
    Chosen
        The events; `segment` is None if no event is chosen.
    """
    found = _CHOSEN.setdefault(segment, {})
    if filters not in found:
        mask = np.zeros(len(segment), np.bool_)
        for it in filters:
            mask |= it.mask(segment.columns, len(segment))
        rows = np.flatnonzero(mask)
        if len(rows) == len(segment):
            found[filters] = None
        else:
            found[filters] = Chosen(segment.take(rows) if len(rows) else None, rows)
    chosen = found[filters]
    return Chosen(segment, np.arange(len(segment))) if chosen is None else chosen


def matches_rows(segment: Segment, rows: Int64s, wanted: Filter | None) -> NDArray[np.bool_]:
    """Return which of the given events of a segment a filter matches; None matches all."""
    if wanted is None:
        return np.ones(len(rows), np.bool_)
    mask = np.zeros(len(segment), np.bool_)
    mask[choose_events(segment, frozenset({wanted})).rows] = True
    found: NDArray[np.bool_] = mask[rows]
    return found


def choose_buffered(buffer: StreamBuffer, filters: Filters) -> StreamBuffer:
    """Return the buffer with the chosen events; segments without such events are left out."""
    found = []
    for number, segment in buffer.segments:
        chosen = choose_events(segment, filters).segment
        if chosen is not None:
            found.append((number, chosen))
    return StreamBuffer(found, buffer.max_latest, buffer.forgotten_below)
