"""Heartbeats of live streams: the proof that time has passed where no events come.

Once a partition has been read to its end as of wall time t, every event that is still to come has
latest >= t - skew - D (spec: timing, section 7). So the ticker notes the time and then the end
offsets; when the query has completed a batch that reaches them, it sends a heartbeat. It carries
the offset up to which the partition must have been read, so that it means the same to whoever
replays the topics. Streams of recorded data (clock: replay) get none: their times say nothing
about now.
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

# A heartbeat that tells nothing of any stream: it makes the first batch run.
WAKE_UP = Heartbeat("wake-up", None, -TIME_LIMIT_US, None)


class Offsets(Protocol):
    """What the ticker asks Kafka."""

    def ends(self, places: Iterable[Place]) -> dict[Place, int]:
        """Give the end offsets."""

    def begins(self, places: Iterable[Place]) -> dict[Place, int]:
        """Give the offsets of the oldest records."""

    def after_last_records(
        self, ends: Mapping[Place, int], begins: Mapping[Place, int]
    ) -> dict[Place, int]:
        """Give one more than the offset of the last record before each end."""


class _Mark(NamedTuple):
    """At this wall time the partition ended no further than here."""

    at_us: int
    end: int


class Tick(NamedTuple):
    """What a tick brought: heartbeats to be sent, where the partitions begin and where they end."""

    heartbeats: list[Heartbeat]
    begins: dict[Place, int]
    ends: dict[Place, int]


class Ticker:
    """Says which partitions have been read to their end, and as of when.

    Parameters
    ----------
    streams : mapping of name to Stream
        The streams in force.
    partitions : mapping of name to int
        Number of Kafka partitions of its topic.
    offsets : Offsets
        Of Kafka.
    clock : callable
        Wall time in µs since 1970.
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
        """Note how far the partitions go now, and give the heartbeats that have come true.

        Parameters
        ----------
        completed : mapping of (topic, partition) to int
            Up to where the query's completed batches have read.
        """
        places = self._places()
        # The time is taken first: what is appended up to it stands before the end.
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
            # A mark is waited for: under load a newer one would never come true.
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
