"""Heartbeats of live streams, which advance the watermark of idle partitions.

Once a partition has been read to its end as of time t, every future event has
latest >= t - skew - D (spec: timing, section 7). The ticker therefore records the time and then the
end offsets, and sends a heartbeat when the query has completed a batch that reaches them. A
heartbeat carries the offset up to which the partition must have been read, so that a replay of the
topics yields the same result. Streams of recorded data (clock: replay) get no heartbeats: their
timestamps are unrelated to wall time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from correlation.engine.heartbeats import Heartbeat
from correlation.limits import TIME_LIMIT_US

if TYPE_CHECKING:
    from collections.abc import Iterable

    from correlation.resources.streams import Stream
    from kafka_client.partition_offsets import Place

# A heartbeat without effect on any stream; it triggers the first batch.
WAKE_UP = Heartbeat("wake-up", None, -TIME_LIMIT_US, None)


class Offsets(Protocol):
    """Queries that the ticker sends to Kafka."""

    def ends(self, places: Iterable[Place]) -> dict[Place, int]:
        """Return the end offsets."""

    def begins(self, places: Iterable[Place]) -> dict[Place, int]:
        """Return the offsets of the oldest records."""

    def after_last_records(
        self, ends: Mapping[Place, int], begins: Mapping[Place, int]
    ) -> dict[Place, int]:
        """Return the offset of the last record before each end, plus 1."""


class _Mark(NamedTuple):
    """A wall time, and an upper bound of the end offset of a partition at that time."""

    at_us: int
    end: int


class Tick(NamedTuple):
    """Result of a tick: heartbeats to send, and begin and end offsets of the partitions."""

    heartbeats: list[Heartbeat]
    begins: dict[Place, int]
    ends: dict[Place, int]


class Ticker:
    """Determines which partitions have been read to their end, and as of which time.

    Parameters
    ----------
    streams : mapping of name to Stream
        The streams in force.
    partitions : mapping of name to int
        Number of Kafka partitions of the topic of each stream.
    offsets : Offsets
        Queries of Kafka.
    clock : callable
        Time in µs since 1970 (`HeartbeatClock`).
    """

    def __init__(
        self,
        streams: Mapping[str, Stream],
        partitions: Mapping[str, int],
        offsets: Offsets,
        clock: Callable[[], int],
    ) -> None:
        self._streams = streams
        self._partitions = partitions
        self._offsets = offsets
        self._clock = clock
        self._marks: dict[Place, _Mark] = {}

    def _places(self) -> set[Place]:
        return {
            (stream.topic, number)
            for name, stream in self._streams.items()
            for number in range(self._partitions[name])
        }

    def tick(self, completed: Mapping[Place, int]) -> Tick:
        """Record the current end offsets, and return the heartbeats whose offsets were read.

        Parameters
        ----------
        completed : mapping of (topic, partition) to int
            End offsets of the query's completed batches.
        """
        places = self._places()
        # The clock is read first: records appended before that time are before the end offset.
        now_us = self._clock()
        ends = self._offsets.ends(places)
        begins = self._offsets.begins(places)
        ready: dict[Place, _Mark] = {}
        for place, end in ends.items():
            fresh, waiting = _Mark(now_us, end), self._marks.get(place)
            reached = completed.get(place, 0)
            if fresh.end <= reached:
                ready[place] = fresh
                self._marks.pop(place, None)
            elif waiting is None:
                self._marks[place] = fresh
            # A waiting mark is kept: under load a newer mark would never be reached.
            elif waiting.end <= reached:
                ready[place] = waiting
                self._marks[place] = fresh
        return Tick(self._heartbeats(ready, begins), begins, ends)

    def begins(self) -> dict[Place, int]:
        """Return the offset of the oldest record of each partition."""
        return self._offsets.begins(self._places())

    def _heartbeats(
        self, ready: Mapping[Place, _Mark], begins: Mapping[Place, int]
    ) -> list[Heartbeat]:
        live = {stream.topic for stream in self._streams.values() if stream.clock == "live"}
        wanted = {place: mark.end for place, mark in ready.items() if place[0] in live}
        offsets = self._offsets.after_last_records(wanted, begins)
        return [
            Heartbeat(name, place[1], ready[place].at_us - stream.max_skew_us, offset or None)
            for name, stream in self._streams.items()
            if stream.clock == "live"
            for place, offset in sorted(offsets.items())
            if place[0] == stream.topic
        ]
