"""Sources: which records of Kafka the events of a segment are.

The events of a segment are those of ranges of offsets, without the events that were dropped. They
can therefore be read again from the log (docs/proofs.md, P-REBUILD). A range has the keep value
with which its events were cut last: keep values fall when a condition with a wider window begins,
or after a reset, and events that were dropped before do not come back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from correlation.buffers.events import Events
from correlation.limits import UNKNOWN_WATERMARK


class Source(NamedTuple):
    """A range of offsets of a partition.

    Parameters
    ----------
    partition : int
        Kafka partition.
    begin, end : int
        First offset, and last offset plus 1.
    kept_from : int
        Minimum `latest` of the events, in µs; events of the range with a smaller `latest` were
        dropped.
    """

    partition: int
    begin: int
    end: int
    kept_from: int = UNKNOWN_WATERMARK


Sources = tuple[Source, ...]


def find_sources(events: Events, ranges: Mapping[int, tuple[int, int]]) -> Sources:
    """Return the sources of the events of a block.

    Parameters
    ----------
    events : Events
        All events that a slot has in the block, of one stream; at least one.
    ranges : mapping of int to (int, int)
        Offsets that the block has read, by partition. A range is extended to the events: offsets
        are lower than before if a topic was recreated.
    """
    found = []
    for partition in np.unique(events.partition).tolist():
        offsets = events.offset[events.partition == partition]
        first, last = int(offsets.min()), int(offsets.max())
        begin, end = ranges.get(partition, (first, last + 1))
        found.append(Source(partition, min(begin, first), max(end, last + 1)))
    return tuple(found)


def join_sources(found: Iterable[Sources | None]) -> Sources | None:
    """Return the sources of several segments; None if some are unknown."""
    joined: list[Source] = []
    for sources in found:
        if sources is None:
            return None
        joined += sources
    return tuple(joined)


def unite_sources(found: Iterable[Sources | None]) -> Sources | None:
    """Return the sources of the events of several slots; None if some are unknown.

    Overlapping ranges with the same keep value become one range. An event that its slot has dropped
    may be in the range of another slot, with a smaller keep value.
    """
    joined = join_sources(found)
    if joined is None:
        return None
    united: list[Source] = []
    for source in sorted(joined, key=lambda it: (it.partition, it.kept_from, it.begin)):
        last = united[-1] if united else None
        if (
            last is not None
            and (last.partition, last.kept_from) == (source.partition, source.kept_from)
            and last.end >= source.begin
        ):
            united[-1] = last._replace(end=max(last.end, source.end))
        else:
            united.append(source)
    return tuple(united)


def cut_sources(sources: Sources, keep: int, forgotten_below: int) -> Sources:
    """Return the sources after events below a keep value were dropped, with few ranges.

    Ranges that were cut with the same keep value become one range if no offset is between them. If
    the keep value is at least `forgotten_below`, even if there are: the events between them were
    dropped, so their `latest` is smaller.

    Parameters
    ----------
    sources : tuple of Source
        Sources of a segment.
    keep : int
        Keep value, in µs.
    forgotten_below : int
        All events so far whose `latest` is at least this are in the buffer, in µs.
    """
    cut = sorted(it._replace(kept_from=max(it.kept_from, keep)) for it in sources)
    merged: list[Source] = []
    for source in cut:
        last = merged[-1] if merged else None
        if (
            last is not None
            and last.partition == source.partition
            and last.kept_from == source.kept_from
            and (last.end >= source.begin or source.kept_from >= forgotten_below)
        ):
            merged[-1] = last._replace(end=max(last.end, source.end))
        else:
            merged.append(source)
    return tuple(merged)


def select_events(events: Events, sources: Sources) -> NDArray[np.bool_]:
    """Mark the events that belong to sources, bool[n]."""
    found = np.zeros(len(events), np.bool_)
    for partition, begin, end, kept_from in sources:
        found |= (
            (events.partition == partition)
            & (events.offset >= begin)
            & (events.offset < end)
            & (events.latest >= kept_from)
        )
    return found


def narrow_sources(sources: Sources, events: Events) -> Sources:
    """Return the sources with the smallest ranges that contain some events of theirs."""
    found = []
    for source in sources:
        offsets = events.offset[select_events(events, (source,))]
        if len(offsets):
            found.append(source._replace(begin=int(offsets.min()), end=int(offsets.max()) + 1))
    return tuple(found)
