"""Watermarks of the streams of a slot (spec: timing, section 7).

The watermark W of a stream is a time such that all its future events have latest >= W. The
watermark of a Kafka partition follows from the events read (maximum `latest` minus the stream's
max_delay D) and from heartbeats (`read_up_to` minus D). The watermark of a stream is the minimum
over its partitions, so that events of a partition that is read later do not count as late. A
watermark decreases only at a reset (docs/proofs.md, P-WATERMARK).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from correlation.buffers.columns import Int64s
from correlation.engine.heartbeats import CLOSED, RESET, Heartbeat
from correlation.engine.partition_watermark import PartitionWatermark
from correlation.limits import TIME_LIMIT_US, UNKNOWN_WATERMARK

# Maximum number of heartbeats kept for unknown streams; the oldest are dropped.
_MAX_UNCLAIMED = 1_000


class Progress(NamedTuple):
    """Progress of one Kafka partition in a block.

    Parameters
    ----------
    stream : str
        Name of the stream.
    partition : int
        Kafka partition.
    next_offset : int
        Last offset read plus 1.
    max_latest : int or None
        Maximum `latest` of the accepted events, in µs; None without events.
    """

    stream: str
    partition: int
    next_offset: int
    max_latest: int | None


class Changes(NamedTuple):
    """Streams that a block closed, wholly or in one partition, and streams that it reset."""

    closed: set[str]
    reset: set[str]


class Watermarks:
    """Watermarks of the streams of a slot.

    Parameters
    ----------
    max_delays_us : mapping of stream to int
        D of each stream, in µs.
    partitions : mapping of stream to int
        Number of Kafka partitions of each stream.
    max_skews_us : mapping of stream to int
        max_skew of each live stream, in µs.
    """

    def __init__(
        self,
        max_delays_us: Mapping[str, int],
        partitions: Mapping[str, int],
        max_skews_us: Mapping[str, int] | None = None,
    ) -> None:
        self._max_delays_us = dict(max_delays_us)
        self._max_skews_us = dict(max_skews_us or {})
        self._partitions = {
            stream: {number: PartitionWatermark() for number in range(partitions.get(stream, 1))}
            for stream in max_delays_us
        }
        self._watermarks = dict.fromkeys(max_delays_us, UNKNOWN_WATERMARK)
        # Maximum `latest` of all events so far; a reset does not lower it.
        self._max = dict.fromkeys(max_delays_us, UNKNOWN_WATERMARK)
        # Number of heartbeats refused because their time was ahead of Kafka's clock.
        self._refused = dict.fromkeys(max_delays_us, 0)
        # Streams with a reset since the last block.
        self._reset: set[str] = set()
        # Heartbeats of unknown streams and partitions, in order of arrival (a dict used as an
        # ordered set): a stream may be sent and closed before it is registered.
        self._unclaimed: dict[Heartbeat, None] = {}

    def values(self) -> dict[str, int]:
        """Return the watermark of each stream, in µs, or UNKNOWN_WATERMARK."""
        return dict(self._watermarks)

    def max_latest(self, stream: str) -> int:
        """Return the maximum `latest` of all events of a stream so far, in µs."""
        return self._max[stream]

    def ranges(self, progress: Iterable[Progress]) -> dict[str, dict[int, tuple[int, int]]]:
        """Return the offsets that a block reads: begin and end by stream and partition.

        Parameters
        ----------
        progress : iterable of Progress
            Progress of the block, before it is applied by `advance`.
        """
        found: dict[str, dict[int, tuple[int, int]]] = {}
        for stream, number, next_offset, _ in progress:
            partition = self._partitions.get(stream, {}).get(number)
            if partition is not None:
                mine = found.setdefault(stream, {})
                _, end = mine.get(number, (0, next_offset))
                mine[number] = (partition.next_offset, max(end, next_offset))
        return found

    def advance(self, progress: Iterable[Progress], heartbeats: Iterable[Heartbeat]) -> Changes:
        """Update the watermarks from a block; progress of unknown partitions is ignored.

        Parameters
        ----------
        progress : iterable of Progress
            Progress of the partitions, in any order.
        heartbeats : iterable of Heartbeat
            Heartbeats in the order of their records: a reset discards earlier heartbeats.
        """
        for entry in progress:
            self._take_progress(entry)
        closed = set()
        for heartbeat in heartbeats:
            used = self._take_heartbeat(heartbeat)
            if used and heartbeat.partition is None and heartbeat.read_up_to_us == CLOSED:
                closed.add(heartbeat.stream)
        for stream, partitions in self._partitions.items():
            for partition in partitions.values():
                was_reset, was_closed = partition.settle()
                if was_reset:
                    self._note_reset(stream)
                if was_closed:
                    closed.add(stream)
            watermark = min(partition.watermark for partition in partitions.values())
            self._watermarks[stream] = max(self._watermarks[stream], watermark)
        reset, self._reset = self._reset, set()
        return Changes(closed, reset)

    def _take_progress(self, entry: Progress) -> None:
        stream, number, next_offset, latest = entry
        partition = self._partitions.get(stream, {}).get(number)
        if partition is None:
            return
        watermark = None
        if latest is not None:
            watermark = latest - self._max_delays_us[stream]
            self._max[stream] = max(self._max[stream], latest)
        if partition.read(next_offset, watermark):
            self._note_reset(stream)

    def _note_reset(self, stream: str) -> None:
        self._watermarks[stream] = UNKNOWN_WATERMARK
        self._reset.add(stream)

    def note_read(self, stream: str, offsets: Mapping[int, int]) -> None:
        """Set the offsets up to which partitions have been read, possibly for other streams.

        Parameters
        ----------
        stream : str
            Name of the stream.
        offsets : mapping of partition to int
            Next offset to read. It is smaller than before if the partition was truncated and its
            offsets are written again.
        """
        for number, offset in offsets.items():
            partition = self._partitions.get(stream, {}).get(number)
            if partition is not None:
                partition.next_offset = offset

    def _take_heartbeat(self, heartbeat: Heartbeat) -> bool:
        """Apply a heartbeat and return True; return False if it is refused."""
        stream, number, watermark, offset, _ = heartbeat
        known = self._partitions.get(stream)
        if known is None or (number is not None and number not in known):
            self._keep_unclaimed(heartbeat)
            return True
        max_skew_us = self._max_skews_us.get(stream)
        if max_skew_us is not None and heartbeat.is_ahead(max_skew_us):
            self._refused[stream] += 1
            return False
        named = list(known.values()) if number is None else [known[number]]
        if watermark == RESET:
            for partition in named:
                partition.reset(offset or 0)
            self._note_reset(stream)
            return True
        if watermark != CLOSED:
            watermark -= self._max_delays_us[stream]
        for partition in named:
            if number is None:
                partition.raise_to(watermark)
            else:
                partition.hold(offset or 0, watermark)
        return True

    def _keep_unclaimed(self, heartbeat: Heartbeat) -> None:
        if heartbeat.read_up_to_us == -TIME_LIMIT_US:
            return  # a heartbeat at the earliest possible time has no effect
        self._unclaimed.pop(heartbeat, None)
        self._unclaimed[heartbeat] = None
        if len(self._unclaimed) > _MAX_UNCLAIMED:
            del self._unclaimed[next(iter(self._unclaimed))]

    def describe(self) -> dict[str, Any]:
        """Return the watermarks for the slot's record; unknown watermarks are None."""
        return {
            name: {
                "watermark": _known(watermark),
                "refused_heartbeats": self._refused[name],
                "partitions": {
                    str(number): _known(found.watermark)
                    for number, found in self._partitions[name].items()
                },
            }
            for name, watermark in self._watermarks.items()
        }

    def dump(self) -> dict[str, Any]:
        """Return the watermarks as a JSON-able dict."""
        streams = {
            stream: {
                "watermark": self._watermarks[stream],
                "max_latest": self._max[stream],
                "refused": self._refused[stream],
                "partitions": [[number, *found.dump()] for number, found in partitions.items()],
            }
            for stream, partitions in self._partitions.items()
        }
        return {"streams": streams, "unclaimed": list(map(list, self._unclaimed))}

    def load(self, dumped: Mapping[str, Any], moved: Collection[str] = ()) -> None:
        """Restore the output of `dump` for the streams and partitions that still exist.

        Parameters
        ----------
        dumped : mapping
            Output of `dump`.
        moved : collection of str
            Streams whose topic was changed or recreated: their partitions start from the
            beginning, and their watermarks are kept.
        """
        for stream, found in dumped["streams"].items():
            if stream not in self._partitions:
                continue
            self._watermarks[stream] = found["watermark"]
            self._max[stream] = found["max_latest"]
            self._refused[stream] = found["refused"]
            if stream in moved:
                continue
            for number, *partition in found["partitions"]:
                if number in self._partitions[stream]:
                    self._partitions[stream][number] = PartitionWatermark.load(partition)
        # The streams may be known by now; the next block updates their watermarks.
        for unclaimed in dumped["unclaimed"]:
            self._take_heartbeat(Heartbeat(*unclaimed))


def _known(watermark: int) -> int | None:
    return None if watermark == UNKNOWN_WATERMARK else watermark


def time_of_records(
    record_timestamp_us: Iterable[Int64s],
    heartbeats: Iterable[Heartbeat],
    skews_us: Mapping[str, int],
) -> int | None:
    """Compute the current time from a block's records, independent of when they are read.

    Parameters
    ----------
    record_timestamp_us : iterable of int64[n]
        Kafka's timestamps of the block's events, in µs.
    heartbeats : iterable of Heartbeat
        Heartbeats of the block.
    skews_us : mapping of stream to int
        max_skew of each live stream, in µs. Heartbeats further ahead of their record are ignored.

    Returns
    -------
    int or None
        Maximum of the timestamps and of `read_up_to` plus max_skew, in µs since 1970; None if the
        block has neither. A wrong clock falsifies the time of this block only.
    """
    read_up_to_us = [
        heartbeat.read_up_to_us + skews_us[heartbeat.stream]
        for heartbeat in heartbeats
        if heartbeat.stream in skews_us
        and heartbeat.read_up_to_us not in {CLOSED, RESET}
        and not heartbeat.is_ahead(skews_us[heartbeat.stream])
    ]
    return max(
        [*read_up_to_us, *(int(column.max()) for column in record_timestamp_us)], default=None
    )
