"""The newest results in memory: bounded in number for each partition, and in bytes altogether.

Records are in the order in which they were read. Of each partition the memory holds all records
from `first` to `next`, so that a reader knows whether it has missed any.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections import deque
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from service.alarms.records import Place, ResultRecord

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Next offset to be read of each partition.
Positions = dict[Place, int]
_NUMBER = itemgetter(0)


class Start(NamedTuple):
    """Where the reading of a partition starts: its oldest record, and the first that is read."""

    begin: int
    first: int


class Batch(NamedTuple):
    """Records after a number.

    Attributes
    ----------
    records : list of ResultRecord
        The records.
    number : int
        Number of the last one.
    missed : list of str
        Topics of which the reader has missed records.
    gone : set of Place
        Partitions of the reader's position that are not followed any more.
    """

    records: list[ResultRecord]
    number: int
    missed: list[str]
    gone: set[Place]


@dataclass(slots=True)
class _Partition:
    """A followed partition; `begin` is its oldest record when the reading started."""

    topic: str
    begin: int
    start: int
    first: int
    next: int
    # Number and record, in the order of offsets.
    records: deque[tuple[int, ResultRecord]] = field(default_factory=deque)
    nbytes: int = 0


class RecentRecords:
    """The newest records; one thread adds them, any thread may read.

    Parameters
    ----------
    most : int
        Max number of records of a partition.
    most_bytes : int
        Max size of all records, in bytes.
    """

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._partitions: dict[Place, _Partition] = {}
        # All records by number.
        self._log: list[tuple[int, ResultRecord]] = []
        self._number = 0
        self._nbytes = 0
        self.followed_total = 0

    def follow(self, topic: str, tag: bytes, starts: Mapping[int, Start]) -> None:
        """Add partitions of a topic.

        Parameters
        ----------
        topic : str
            Name of the topic.
        tag : bytes
            Tag of its id.
        starts : mapping of int to Start
            Start of each new partition.
        """
        with self._lock:
            for partition, start in starts.items():
                self._partitions[Place(tag, partition)] = _Partition(
                    topic, start.begin, start.first, start.first, start.first
                )

    def forget(self, topic: str) -> None:
        """Remove a topic and its records."""
        with self._lock:
            for place in [it for it, found in self._partitions.items() if found.topic == topic]:
                self._nbytes -= self._partitions.pop(place).nbytes
            self._log = [it for it in self._log if it[1].age.topic != topic]

    def topics(self) -> dict[str, tuple[bytes, int]]:
        """Return the tag and the number of partitions of each topic."""
        with self._lock:
            found: dict[str, tuple[bytes, int]] = {}
            for place, it in self._partitions.items():
                found[it.topic] = (place.tag, found.get(it.topic, (b"", 0))[1] + 1)
            return found

    def positions(self) -> Positions:
        """Return the next offset to be read of each partition."""
        with self._lock:
            return {place: it.next for place, it in self._partitions.items()}

    def add(self, records: Sequence[ResultRecord], positions: Positions) -> None:
        """Add records of followed partitions; the oldest are dropped where they are too many.

        Parameters
        ----------
        records : sequence of ResultRecord
            Records in the order of their offsets.
        positions : dict
            Next offset to be read of partitions, after the records.
        """
        with self._lock:
            for record in records:
                found = self._partitions[record.place]
                self._number += 1
                entry = (self._number, record)
                self._log.append(entry)
                found.records.append(entry)
                found.nbytes += record.nbytes
                self._nbytes += record.nbytes
                if len(found.records) > self._most:
                    self._drop_oldest(found)
                while self._nbytes > self._most_bytes:
                    self._drop_oldest(max(self._partitions.values(), key=lambda it: it.nbytes))
            self.followed_total += len(records)
            for place, offset in positions.items():
                found = self._partitions[place]
                found.next = max(found.next, offset)

    def newest(self) -> tuple[list[ResultRecord], Positions]:
        """Return all records, the newest first, and the position after them."""
        with self._lock:
            records = [it for _, it in self._log]
            positions = {place: it.next for place, it in self._partitions.items()}
        records.sort(key=lambda it: it.age, reverse=True)
        return records, positions

    def find(self, topic: str, partition: int, offset: int) -> ResultRecord | None:
        """Return a record; None if it is not in memory."""
        with self._lock:
            for place, it in self._partitions.items():
                if (it.topic, place.partition) == (topic, partition):
                    first = bisect_left(it.records, offset, key=lambda entry: entry[1].age.offset)
                    found = it.records[first][1] if first < len(it.records) else None
                    return found if found is not None and found.age.offset == offset else None
        return None

    def begin_after(self, positions: Positions) -> tuple[Positions, list[str] | None]:
        """Return where a reader continues after a position, and the topics with missed records.

        Parameters
        ----------
        positions : dict
            Position of the reader. A partition that it lacks is new.

        Returns
        -------
        (dict, list of str) or (dict, None)
            The position, and the topics; None if nothing was missed. A topic of the position that
            is not followed any more has no name in the list.
        """
        with self._lock:
            missed: set[str] = set()
            found = {}
            for place, it in self._partitions.items():
                offset = positions.get(place, it.begin)
                found[place] = max(offset, it.first)
                if offset < it.first:
                    missed.add(it.topic)
            is_complete = not missed and positions.keys() <= self._partitions.keys()
        return found, None if is_complete else sorted(missed)

    def oldest(self) -> Positions:
        """Return the position before all records."""
        with self._lock:
            return {place: it.first for place, it in self._partitions.items()}

    def last_number(self) -> tuple[int, Positions]:
        """Return the number of the last record, and the position after it."""
        with self._lock:
            return self._number, {place: it.next for place, it in self._partitions.items()}

    def after(self, number: int, positions: Positions, most: int, most_bytes: int) -> Batch:
        """Return the records after a number.

        Parameters
        ----------
        number : int
            Number of the last record that the reader has seen.
        positions : dict
            Position of the reader; partitions that are followed since then are added.
        most, most_bytes : int
            Max number and size of the records; one record is always returned.
        """
        with self._lock:
            for place, it in self._partitions.items():
                positions.setdefault(place, it.start)
            missed = self._missed(positions)
            gone = positions.keys() - self._partitions.keys()
            records: list[ResultRecord] = []
            nbytes = 0
            first = bisect_right(self._log, number, key=_NUMBER)
            for found, record in self._log[first : first + most]:
                nbytes += record.nbytes
                if records and nbytes > most_bytes:
                    break
                records.append(record)
                number = found
        return Batch(records, number, missed, gone)

    def missed(self, positions: Positions) -> list[str]:
        """Return the topics of which a reader at a position has missed records."""
        with self._lock:
            return self._missed(positions)

    def _missed(self, positions: Positions) -> list[str]:
        return sorted(
            {
                it.topic
                for place, it in self._partitions.items()
                if positions.get(place, it.start) < it.first
            }
        )

    def _drop_oldest(self, found: _Partition) -> None:
        number, record = found.records.popleft()
        del self._log[bisect_left(self._log, number, key=_NUMBER)]
        found.first = record.age.offset + 1
        found.nbytes -= record.nbytes
        self._nbytes -= record.nbytes
