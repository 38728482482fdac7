"""How far the streams are known to have come: low marks (spec: timing, section 7).

The low mark W of a stream is a time such that every event of it still to come has latest >= W.
Per Kafka partition it follows from the events read (the greatest `latest` less the stream's
longest delay D) and from heartbeats (read up to a wall time less D); the stream's mark is the
least over all its partitions, for a partition read later would otherwise look late. It never
moves back (docs/proofs.md, P-LOW-MARK).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from correlation.columns import Int64s
from correlation.limits import TIME_LIMIT_US, UNKNOWN_MARK

# read_up_to of the heartbeat that closes a stream: later than any time.
CLOSED = 2**61
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
    greatest_latest : int or None
        Greatest `latest` of the accepted events, in µs; None when there was none.
    """

    stream: str
    partition: int
    next_offset: int
    greatest_latest: int | None


class Heartbeat(NamedTuple):
    """Word that a partition has been read up to a time.

    Parameters
    ----------
    stream : str
        Its stream.
    partition : int or None
        Kafka partition; None for all of the stream.
    read_up_to_us : int
        Every event that occurred up to then, less the stream's longest delay, has been read;
        CLOSED when nothing will follow.
    at_offset : int or None
        It holds only once the partition has been read up to this offset; None: it holds now.
    """

    stream: str
    partition: int | None
    read_up_to_us: int
    at_offset: int | None


@dataclass(slots=True)
class _Partition:
    mark: int = UNKNOWN_MARK
    next_offset: int = 0
    # Offset that must have been read -> mark that holds then.
    waiting: dict[int, int] = field(default_factory=dict)


class LowMarks:
    """Low marks of the streams of a slot.

    Parameters
    ----------
    max_delays_us : mapping of stream to int
        D of each stream, in µs.
    partitions : mapping of stream to int
        Number of its Kafka partitions.
    """

    def __init__(self, max_delays_us: Mapping[str, int], partitions: Mapping[str, int]) -> None:
        self._max_delays_us = dict(max_delays_us)
        self._partitions = {
            stream: {number: _Partition() for number in range(partitions.get(stream, 1))}
            for stream in max_delays_us
        }
        self._marks = dict.fromkeys(max_delays_us, UNKNOWN_MARK)
        # Of streams and partitions that are not known yet: a stream may be closed, and all of it
        # sent, before anybody reads it. In order of arrival; the value is not used.
        self._unclaimed: dict[Heartbeat, None] = {}

    def values(self) -> dict[str, int]:
        """Low mark of each stream, in µs; UNKNOWN_MARK where nothing is known."""
        return dict(self._marks)

    def partition_values(self, stream: str) -> dict[int, int]:
        """Low mark of each Kafka partition of a stream, in µs."""
        return {number: found.mark for number, found in self._partitions[stream].items()}

    def advance(self, progress: Iterable[Progress], heartbeats: Iterable[Heartbeat]) -> set[str]:
        """Take in what a block brought; what is not known is passed over.

        Returns
        -------
        set of str
            Streams of which a heartbeat that closes them, or a partition, has come to hold.
        """
        for entry in progress:
            partition = self._partitions.get(entry.stream, {}).get(entry.partition)
            if partition is None:
                continue
            partition.next_offset = max(partition.next_offset, entry.next_offset)
            if entry.greatest_latest is not None:
                mark = entry.greatest_latest - self._max_delays_us[entry.stream]
                partition.mark = max(partition.mark, mark)
        closed = set()
        for heartbeat in heartbeats:
            self._take_heartbeat(heartbeat)
            if heartbeat.partition is None and heartbeat.read_up_to_us == CLOSED:
                closed.add(heartbeat.stream)
        for stream, partitions in self._partitions.items():
            for partition in partitions.values():
                if CLOSED in _apply_waiting(partition):
                    closed.add(stream)
            least = min(partition.mark for partition in partitions.values())
            self._marks[stream] = max(self._marks[stream], least)
        return closed

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

    def _take_heartbeat(self, heartbeat: Heartbeat) -> None:
        known = self._partitions.get(heartbeat.stream)
        if known is None or (heartbeat.partition is not None and heartbeat.partition not in known):
            self._keep_unclaimed(heartbeat)
            return
        mark = heartbeat.read_up_to_us
        if mark != CLOSED:
            mark -= self._max_delays_us[heartbeat.stream]
        if heartbeat.partition is None:
            for partition in known.values():
                partition.mark = max(partition.mark, mark)
        else:
            named = known[heartbeat.partition]
            offset = heartbeat.at_offset or 0
            named.waiting[offset] = max(named.waiting.get(offset, mark), mark)

    def _keep_unclaimed(self, heartbeat: Heartbeat) -> None:
        if heartbeat.read_up_to_us <= -TIME_LIMIT_US:
            return  # it tells nothing
        self._unclaimed.pop(heartbeat, None)
        self._unclaimed[heartbeat] = None
        if len(self._unclaimed) > _MOST_UNCLAIMED:
            del self._unclaimed[next(iter(self._unclaimed))]

    def describe(self) -> dict[str, Any]:
        """Give the marks as they stand in the slot's record; None where nothing is known."""
        return {
            name: {
                "mark": _known(mark),
                "partitions": {
                    str(number): _known(found.mark)
                    for number, found in self._partitions[name].items()
                },
            }
            for name, mark in self._marks.items()
        }

    def dump(self) -> dict[str, Any]:
        """Give the marks as a JSON-able dict."""
        streams = {
            stream: {
                "mark": self._marks[stream],
                "partitions": [
                    [number, found.mark, found.next_offset, list(found.waiting.items())]
                    for number, found in partitions.items()
                ],
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
            the mark never moves back.
        """
        for stream, found in dumped["streams"].items():
            if stream not in self._partitions:
                continue
            self._marks[stream] = found["mark"]
            if stream in moved:
                continue
            for number, mark, next_offset, waiting in found["partitions"]:
                if number in self._partitions[stream]:
                    self._partitions[stream][number] = _Partition(
                        mark, next_offset, dict(map(tuple, waiting))
                    )
        # The streams may be known by now; their marks move with the next block.
        for unclaimed in dumped["unclaimed"]:
            self._take_heartbeat(Heartbeat(*unclaimed))


def _known(mark: int) -> int | None:
    return None if mark == UNKNOWN_MARK else mark


def _apply_waiting(partition: _Partition) -> list[int]:
    """Let the heartbeats hold whose offset has been read; give their marks."""
    reached = [offset for offset in partition.waiting if partition.next_offset >= offset]
    marks = [partition.waiting.pop(offset) for offset in reached]
    partition.mark = max([partition.mark, *marks])
    return marks


def time_of_records(
    appended_us: Iterable[Int64s],
    heartbeats: Iterable[Heartbeat],
    skews_us: Mapping[str, int],
) -> int | None:
    """How late it is by what a block's records say: the same whenever they are read.

    Parameters
    ----------
    appended_us : iterable of int64[n]
        Kafka's timestamps of the block's events, in µs.
    heartbeats : iterable of Heartbeat
        Of the block.
    skews_us : mapping of stream to int
        How far clocks may be ahead, of each live stream: its heartbeats tell the time less that.

    Returns
    -------
    int or None
        In µs since 1970; None if no record says. One wrong clock makes it wrong for this block.
    """
    told = [
        heartbeat.read_up_to_us + skews_us[heartbeat.stream]
        for heartbeat in heartbeats
        if heartbeat.stream in skews_us and heartbeat.read_up_to_us != CLOSED
    ]
    return max([*told, *(int(column.max()) for column in appended_us)], default=None)
