"""The events of a stream that may still be needed, shared by all conditions on the stream.

A buffer is a list of immutable segments: a new block becomes a segment, and small young segments
are merged as in a log-structured merge tree, so that every event is moved O(log n) times.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from correlation.buffers.segment import Segment
from correlation.limits import KEEP_NOTHING, UNKNOWN_WATERMARK

# A segment of this many events is not merged further: older ones are dropped whole.
FULL_SEGMENT_EVENTS = 2**17


class StreamBuffer:
    """Buffered events of one stream in one slot.

    Parameters
    ----------
    segments : sequence of (int, Segment)
        Numbered segments; a number is never used for other content.
    max_latest : int
        Greatest `latest` of all events so far, in µs.
    forgotten_below : int
        All events so far with this `latest` or a later one are here, in µs.
    """

    __slots__ = ("forgotten_below", "max_latest", "segments")

    def __init__(
        self,
        segments: Sequence[tuple[int, Segment]] = (),
        max_latest: int = UNKNOWN_WATERMARK,
        forgotten_below: int = UNKNOWN_WATERMARK,
    ) -> None:
        self.segments = list(segments)
        self.max_latest = max_latest
        self.forgotten_below = forgotten_below

    def __len__(self) -> int:
        return sum(len(segment) for _, segment in self.segments)

    @property
    def nbytes(self) -> int:
        """Memory of the columns, in bytes."""
        return sum(segment.nbytes for _, segment in self.segments)

    def age(
        self,
        fresh: tuple[int, Segment] | None,
        keep: int,
        number: int,
        held: Collection[int] = (),
    ) -> int:
        """Add a block's events and remove what is not needed any more.

        Parameters
        ----------
        fresh : (int, Segment) or None
            The block's events, if there are any, and their number.
        keep : int
            Keep value: events with a smaller `latest` need not be kept, in µs.
        number : int
            First number free for segments that are rewritten.
        held : collection of int
            Numbers of segments that stay as they are until all of their events may go.

        Returns
        -------
        int
            First number that is still free.
        """
        if fresh is not None:
            segment = fresh[1]
            self.max_latest = max(self.max_latest, segment.max_latest)
            if segment.max_latest >= keep:
                self.insert(*fresh, keep, held)
        # What comes later is kept for its own keep value, so only what has come may be missing.
        self.forgotten_below = max(self.forgotten_below, min(keep, self.max_latest + 1))
        return self.drop(keep, number, held)

    def insert(self, number: int, segment: Segment, keep: int, held: Collection[int] = ()) -> None:
        """Add a block's events and merge small young segments with it.

        Parameters
        ----------
        number : int
            Of the segment that they become part of.
        segment : Segment
            The block's events.
        keep : int
            Keep value: events with a smaller `latest` are not taken along, in µs.
        held : collection of int
            Numbers of segments that are not merged.
        """
        young = [segment]
        size = len(segment)
        while self.segments and number not in held:
            last, segment_before = self.segments[-1]
            length = len(segment_before)
            if last in held or length > 2 * size or length + size > FULL_SEGMENT_EVENTS:
                break
            young.append(self.segments.pop()[1])
            size += length
        whole = len(young) == 1 and segment.min_latest >= keep
        merged = segment if whole else Segment.merge(young[::-1], keep)
        if merged is not None:
            self.segments.append((number, merged))

    def drop(self, keep: int, number: int, held: Collection[int] = ()) -> int:
        """Remove events whose `latest` is below the keep value.

        A segment goes when all of it may go, and is rewritten when half of it may, so that at
        most as many events wait for removal as are needed; segments that are held excepted.

        Parameters
        ----------
        keep : int
            Keep value, in µs.
        number : int
            First number free for new segments.
        held : collection of int
            Numbers of segments that are not rewritten.

        Returns
        -------
        int
            First number that is still free.
        """
        kept: list[tuple[int, Segment]] = []
        for entry in self.segments:
            segment = entry[1]
            if segment.max_latest < keep:
                continue
            if segment.min_latest < keep and entry[0] not in held:
                alive = int(np.count_nonzero(segment.latest >= keep))
                rewritten = Segment.merge([segment], keep) if 2 * alive <= len(segment) else None
                if rewritten is not None:
                    kept.append((number, rewritten))
                    number += 1
                    continue
            kept.append(entry)
        self.segments = kept
        return number


def describe_buffers(
    buffers: Mapping[str, StreamBuffer], keep_values: Mapping[str, int]
) -> list[list[object]]:
    """Give the gauges of a slot's buffers as they stand in its record: name, labels, value.

    Parameters
    ----------
    buffers : mapping of stream to StreamBuffer
        Of the slot.
    keep_values : mapping of stream to int
        Least `latest` that is still needed, in µs.
    """
    gauges: list[list[object]] = []
    for name, keep in keep_values.items():
        labels = {"stream": name}
        gauges.append(["buffered_events", labels, len(buffers[name])])
        gauges.append(["state_bytes", labels, buffers[name].nbytes])
        if UNKNOWN_WATERMARK // 2 < keep < KEEP_NOTHING // 2:
            gauges.append(["buffer_keep_timestamp_seconds", labels, keep / 1e6])
    return gauges
