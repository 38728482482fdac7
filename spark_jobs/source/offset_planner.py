"""Plan the offsets of a batch, and the tasks that read it.

The end offsets of heartbeats are asked first, then those of events, then that of the config topic.
A batch therefore has all conditions that were registered before its newest event was sent, and a
heartbeat does not overtake the events that were sent before it, unless the limit of the batch
divides them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from kafka_client.clients import UserAdmin
from kafka_client.partition_offsets import Edge, Place, list_offsets
from spark_jobs.worker.positions import as_places, as_positions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from spark_jobs.source.reading import StreamReading
    from spark_jobs.worker.positions import Positions

_ANSWER_SECONDS = 60.0
# A task costs about as much as the packing of this number of records.
_TASK_RECORDS = 5_000
Range = tuple[str, int, int, int]


class OffsetPlanner:
    """Plans the batches of a query; keeps a connection.

    Parameters
    ----------
    reading : StreamReading
        Parameters.
    """

    def __init__(self, reading: StreamReading) -> None:
        topics = reading.packing.topics
        self._reading = reading
        self._admin = UserAdmin(reading.properties)
        self._config = (topics.config, 0)
        self._groups: list[list[Place]] = [
            [(topics.heartbeats, 0)],
            [
                (topic, number)
                for topic, count in reading.partitions.items()
                for number in range(count)
            ],
            [self._config],
        ]
        self._fixed = as_places(reading.ends)
        # Ends of the existing partitions as of the last look.
        self._newest: dict[Place, int] = {}

    @property
    def newest(self) -> Positions:
        """Offsets up to which the partitions can be read, as of the last look."""
        return as_positions(
            {place: min(end, self._fixed.get(place, end)) for place, end in self._newest.items()}
        )

    def starts(self) -> Positions:
        """Return the offsets at which a new query begins.

        Raises
        ------
        KafkaException
            The broker does not answer in time, or returns an error.
        """
        given = as_places(self._reading.starts)
        places = [place for group in self._groups for place in group]
        others = self._begins(place for place in places if not given.get(place))
        return as_positions({place: given.get(place) or others.get(place, 0) for place in places})

    def ends(self, start: Positions, max_records: int | None) -> Positions:
        """Return the end offsets of a batch.

        Parameters
        ----------
        start : Positions
            Offsets at which it begins.
        max_records : int or None
            Max number of its events and heartbeats.

        Raises
        ------
        KafkaException
            The broker does not answer in time, or returns an error.
        """
        self._look()
        begins = self._with_begins(as_places(start))
        ends = {place: self._end_of(place, at) for place, at in begins.items()}
        if max_records is not None:
            limited = {place: end for place, end in ends.items() if place != self._config}
            ends |= share_limit(begins, limited, max_records)
        return as_positions(ends)

    def stop_at_present(self) -> None:
        """Let all partitions end at their present end.

        Raises
        ------
        KafkaException
            The broker does not answer in time, or returns an error.
        """
        self._look()
        self._fixed |= as_places(self.newest)

    def distribute(self, start: Positions, end: Positions) -> list[list[Range]]:
        """Distribute the records of a batch over tasks.

        Parameters
        ----------
        start, end : Positions
            Offsets at which the batch begins and ends. A partition without a begin begins with its
            oldest record.

        Raises
        ------
        KafkaException
            The broker does not answer in time, or returns an error.
        """
        begins, ends = self._with_begins(as_places(start)), as_places(end)
        found = [
            (*place, at, ends[place])
            for place, at in begins.items()
            if place in ends and at < ends[place]
        ]
        return distribute(found, self._reading.tasks)

    def _end_of(self, place: Place, begin: int) -> int:
        """Return where a batch that begins at an offset ends; before it in a truncated partition.

        A topic that is missing now may exist again later. A fixed end does not move the query back.
        """
        end = self._newest.get(place, begin)
        return min(end, max(self._fixed.get(place, end), begin))

    def _look(self) -> None:
        """Ask for the end offsets."""
        found: dict[Place, int] = {}
        for group in self._groups:
            found |= list_offsets(
                self._admin, group, Edge.COMMITTED_END, _ANSWER_SECONDS, skip_unknown=True
            )
        self._newest = found

    def _with_begins(self, known: Mapping[Place, int]) -> dict[Place, int]:
        """Return the begin of each partition: a known offset, or that of its oldest record."""
        places = [place for group in self._groups for place in group]
        others = self._begins(place for place in places if place not in known)
        return {place: known.get(place, others.get(place, 0)) for place in places}

    def _begins(self, places: Iterable[Place]) -> dict[Place, int]:
        return list_offsets(self._admin, places, Edge.BEGIN, _ANSWER_SECONDS, skip_unknown=True)


def share_limit(
    begins: Mapping[Place, int], ends: Mapping[Place, int], max_records: int
) -> dict[Place, int]:
    """Return end offsets with at most a number of records, and at least one of each partition.

    The records are shared in proportion to those that are unread, so that no stream gets ahead.

    Parameters
    ----------
    begins, ends : mapping of (topic, partition) to int
        Begin and end of the unread records; an end may be before its begin.
    max_records : int
        Max number of records.
    """
    sizes = {place: max(end - begins[place], 0) for place, end in ends.items()}
    unread = sum(sizes.values())
    if unread <= max_records:
        return dict(ends)
    return {
        place: begins[place] + max(sizes[place] * max_records // unread, 1) if sizes[place] else end
        for place, end in ends.items()
    }


def distribute(ranges: Sequence[Range], tasks: int) -> list[list[Range]]:
    """Distribute ranges of offsets over tasks of similar size.

    Parameters
    ----------
    ranges : sequence of (str, int, int, int)
        Topic, partition, first offset, and end offset.
    tasks : int
        Max number of tasks. Few records are read by fewer tasks.
    """
    records = sum(end - begin for _, _, begin, end in ranges)
    count = min(tasks, len(ranges), math.ceil(records / _TASK_RECORDS))
    shares: list[list[Range]] = [[] for _ in range(count)]
    sizes = [0] * count
    for one in sorted(ranges, key=lambda it: it[2] - it[3]):
        smallest = sizes.index(min(sizes))
        shares[smallest].append(one)
        sizes[smallest] += one[3] - one[2]
    return shares
