"""Buffer of the events of a stream that may still be needed, shared by all its conditions.

A buffer is a list of immutable segments. The events of a new block become a segment, and small new
segments are merged as in a log-structured merge tree, so each event is moved O(log n) times.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from correlation.buffers.segment import Segment
from correlation.limits import KEEP_NOTHING, UNKNOWN_WATERMARK

# Maximum number of events of a merged segment; larger segments are only dropped or rewritten.
FULL_SEGMENT_EVENTS = 2**17
# Maximum size of a merged segment in bytes: Spark copies a whole segment several times. Segments of
# events without large sets of tokens are far smaller.
FULL_SEGMENT_BYTES = 2**26


class StreamBuffer:
    """Buffered events of one stream in one slot.

    Parameters
    ----------
    segments : sequence of (int, Segment)
        Segments with their numbers; a number is never reused for other content.
    max_latest : int
        Maximum `latest` of all events so far, in µs.
    forgotten_below : int
        All events so far whose `latest` is at least this are in the buffer, in µs.

    Attributes
    ----------
    collected : int
        Number of events that the last `age` deleted, or did not add because they were not needed.
    """

    __slots__ = ("collected", "forgotten_below", "max_latest", "segments")

    def __init__(
        self,
        segments: Sequence[tuple[int, Segment]] = (),
        max_latest: int = UNKNOWN_WATERMARK,
        forgotten_below: int = UNKNOWN_WATERMARK,
    ) -> None:
        self.segments = list(segments)
        self.max_latest = max_latest
        self.forgotten_below = forgotten_below
        self.collected = 0

    def __len__(self) -> int:
        return sum(len(segment) for _, segment in self.segments)

    @property
    def nbytes(self) -> int:
        """Memory of the columns, in bytes."""
        return sum(segment.nbytes for _, segment in self.segments)

    def count_needed(self, keep_values: Collection[int]) -> dict[int, int]:
        """Count the events that are needed by each of several keep values.

        Parameters
        ----------
        keep_values : collection of int
            Keep values, in µs.

        Returns
        -------
        dict of int to int
            For each keep value, the number of events whose `latest` is at least this.
        """
        times = np.fromiter(keep_values, np.int64, len(keep_values))
        counts = np.zeros(len(times), np.int64)
        for _, segment in self.segments:
            counts += segment.count_from(times)
        return dict(zip(times.tolist(), counts.tolist(), strict=True))

    def age(
        self,
        fresh: tuple[int, Segment] | None,
        keep: int,
        number: int,
        held: Collection[int] = (),
    ) -> int:
        """Add a block's events and remove events that are no longer needed.

        Parameters
        ----------
        fresh : (int, Segment) or None
            The block's events and their segment number; None without events.
        keep : int
            Keep value: events with a smaller `latest` are not needed, in µs.
        number : int
            First free number for rewritten segments.
        held : collection of int
            Numbers of segments that must not change until all their events can be dropped.

        Returns
        -------
        int
            First number that is still free.
        """
        before = len(self)
        if fresh is not None:
            segment = fresh[1]
            before += len(segment)
            self.max_latest = max(self.max_latest, segment.max_latest)
        # Future events are dropped by later keep values, so only events so far can be missing.
        self.forgotten_below = max(self.forgotten_below, min(keep, self.max_latest + 1))
        if fresh is not None and fresh[1].max_latest >= keep:
            self.insert(*fresh, keep, held)
        number = self.drop(keep, number, held)
        self.collected = before - len(self)
        return number

    def insert(self, number: int, segment: Segment, keep: int, held: Collection[int] = ()) -> None:
        """Add a block's events and merge small new segments with them.

        Parameters
        ----------
        number : int
            Number of the new or merged segment.
        segment : Segment
            The block's events.
        keep : int
            Keep value: events with a smaller `latest` are dropped by the merge, in µs.
        held : collection of int
            Numbers of segments that must not be merged.
        """
        young = [segment]
        size, nbytes = len(segment), segment.nbytes
        while self.segments and number not in held:
            last, segment_before = self.segments[-1]
            length = len(segment_before)
            full = (
                length + size > FULL_SEGMENT_EVENTS
                or segment_before.nbytes + nbytes > FULL_SEGMENT_BYTES
            )
            if full or last in held or length > 2 * size:
                break
            young.append(self.segments.pop()[1])
            size += length
            nbytes += segment_before.nbytes
        whole = len(young) == 1 and segment.min_latest >= keep
        below = self.forgotten_below
        merged = segment if whole else Segment.merge(young[::-1], keep, below)
        if merged is not None:
            self.segments.append((number, merged))

    def drop(self, keep: int, number: int, held: Collection[int] = ()) -> int:
        """Remove events whose `latest` is below the keep value.

        A segment is dropped when none of its events is needed, and rewritten when at most half of
        them are needed. So, except in held segments, at least half of the events are needed.

        Parameters
        ----------
        keep : int
            Keep value, in µs.
        number : int
            First free number for rewritten segments.
        held : collection of int
            Numbers of segments that must not be rewritten.

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
                rewritten = None
                if 2 * alive <= len(segment):
                    rewritten = Segment.merge([segment], keep, self.forgotten_below)
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
    """Return the gauges of a slot's buffers for its record: name, labels, value.

    Parameters
    ----------
    buffers : mapping of stream to StreamBuffer
        Buffers of the slot.
    keep_values : mapping of stream to int
        Keep value of each stream: minimum `latest` that is still needed, in µs.
    """
    gauges: list[list[object]] = []
    for name, keep in keep_values.items():
        labels = {"stream": name}
        gauges.append(["buffered_events", labels, len(buffers[name])])
        gauges.append(["state_bytes", labels, buffers[name].nbytes])
        gauges += keep_gauge("buffer_keep_timestamp_seconds", labels, keep)
    return gauges


def keep_gauge(name: str, labels: Mapping[str, str], keep: int) -> list[list[object]]:
    """Return the gauge of a keep value in µs; none if all events are kept, or no event."""
    if UNKNOWN_WATERMARK // 2 < keep < KEEP_NOTHING // 2:
        return [[name, labels, keep / 1e6]]
    return []
