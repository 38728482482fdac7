"""How far the streams are known to have come: watermarks (spec: timing, section 7).

The watermark W of a stream is a time such that every event of it still to come has latest >= W.
Per Kafka partition it follows from the events read (the greatest `latest` less the stream's
max_delay D) and from heartbeats (read up to a wall time less D); the stream's watermark is the
least over all its partitions, for a partition read later would otherwise look late. It never
moves back (docs/proofs.md, P-WATERMARK).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from correlation.buffers.columns import Int64s
from correlation.engine.heartbeats import CLOSED, RESET, Heartbeat
from correlation.engine.partition_watermark import PartitionWatermark
from correlation.limits import TIME_LIMIT_US, UNKNOWN_WATERMARK

# Heartbeats that are kept for streams to come, the newest of them.
_MOST_UNCLAIMED = 1_000


class Progress(NamedTuple):
    """What a block read of one Kafka partition.

    Parameters
    ----------
    stream : str
        The stream the partition's records belong to.
    partition : int
        Kafka partition.
    next_offset : int
        One more than the last offset read.
    max_latest : int or None
        Greatest `latest` of the accepted events, in µs; None when there was none.
    """

    stream: str
    partition: int
    next_offset: int
    max_latest: int | None


class Changes(NamedTuple):
    """Streams whose watermark a block closed (or that of a partition), or took back."""

    closed: set[str]
    reset: set[str]


class Watermarks:
    """Watermarks of the streams of a slot.

    Parameters
    ----------
    max_delays_us : mapping of stream to int
        D of each stream, in µs.
    partitions : mapping of stream to int
        Number of its Kafka partitions.
    max_skews_us : mapping of stream to int
        How far clocks may be ahead, of each live stream, in µs.
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
        # Greatest `latest` of all events so far; a reset does not take it back.
        self._max = dict.fromkeys(max_delays_us, UNKNOWN_WATERMARK)
        # Heartbeats that were not used, for their time was ahead of Kafka's clock.
        self._refused = dict.fromkeys(max_delays_us, 0)
        # Streams with a reset since the last block.
        self._reset: set[str] = set()
        # Of streams and partitions that are not known yet: a stream may be closed, and all of it
        # sent, before anybody reads it. In order of arrival; the value is not used.
        self._unclaimed: dict[Heartbeat, None] = {}

    def values(self) -> dict[str, int]:
        """Watermark of each stream, in µs; UNKNOWN_WATERMARK where nothing is known."""
        return dict(self._watermarks)

    def partition_values(self, stream: str) -> dict[int, int]:
        """Watermark of each Kafka partition of a stream, in µs."""
        return {number: found.watermark for number, found in self._partitions[stream].items()}

    def max_latest(self, stream: str) -> int:
        """Greatest `latest` of all events of a stream so far, in µs."""
        return self._max[stream]

    def advance(self, progress: Iterable[Progress], heartbeats: Iterable[Heartbeat]) -> Changes:
        """Take in what a block brought; what is not known is passed over.

        Parameters
        ----------
        progress : iterable of Progress
            In any order.
        heartbeats : iterable of Heartbeat
            In the order of their records: a reset takes back those before it.
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
            least = min(partition.watermark for partition in partitions.values())
            self._watermarks[stream] = max(self._watermarks[stream], least)
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
        """Set up to where partitions have been read already, perhaps for other streams.

        Parameters
        ----------
        stream : str
            Name of the stream.
        offsets : mapping of partition to int
            Nothing before this offset is still to come. It is less than what was read before
            where the partition was truncated: records are written to the same offsets again.
        """
        for number, offset in offsets.items():
            partition = self._partitions.get(stream, {}).get(number)
            if partition is not None:
                partition.next_offset = offset

    def _take_heartbeat(self, heartbeat: Heartbeat) -> bool:
        """Take in a heartbeat; return False for one that is refused."""
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
            return  # it tells nothing
        self._unclaimed.pop(heartbeat, None)
        self._unclaimed[heartbeat] = None
        if len(self._unclaimed) > _MOST_UNCLAIMED:
            del self._unclaimed[next(iter(self._unclaimed))]

    def describe(self) -> dict[str, Any]:
        """Give the watermarks as they stand in the slot's record; None where nothing is known."""
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
        """Give the watermarks as a JSON-able dict."""
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
        """Take back what `dump` gave, for the streams and partitions that are still there.

        Parameters
        ----------
        dumped : mapping
            As `dump` gave it.
        moved : collection of str
            Streams on another topic by now, perhaps of the same name: the partitions begin anew,
            the watermark never moves back.
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
        # The streams may be known by now; their watermarks move with the next block.
        for unclaimed in dumped["unclaimed"]:
            self._take_heartbeat(Heartbeat(*unclaimed))


def _known(watermark: int) -> int | None:
    return None if watermark == UNKNOWN_WATERMARK else watermark


def time_of_records(
    record_timestamp_us: Iterable[Int64s],
    heartbeats: Iterable[Heartbeat],
    skews_us: Mapping[str, int],
) -> int | None:
    """How late it is by what a block's records say: the same whenever they are read.

    Parameters
    ----------
    record_timestamp_us : iterable of int64[n]
        Kafka's timestamps of the block's events, in µs.
    heartbeats : iterable of Heartbeat
        Of the block.
    skews_us : mapping of stream to int
        How far clocks may be ahead, of each live stream: its heartbeats tell the time less that.
        A heartbeat that is further ahead than that tells nothing.

    Returns
    -------
    int or None
        In µs since 1970; None if no record says. One wrong clock makes it wrong for this block.
    """
    told = [
        heartbeat.read_up_to_us + skews_us[heartbeat.stream]
        for heartbeat in heartbeats
        if heartbeat.stream in skews_us
        and heartbeat.read_up_to_us not in {CLOSED, RESET}
        and not heartbeat.is_ahead(skews_us[heartbeat.stream])
    ]
    return max([*told, *(int(column.max()) for column in record_timestamp_us)], default=None)
