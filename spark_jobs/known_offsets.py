"""How far the event topics were seen to go, and how far they were read, over all runs of a query.

From these follows how many records are lost when a topic is recreated, or truncated: as far as is
known, for what was written after the last look and before the loss was seen by nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from spark_jobs.offsets import Place


class KnownOffsets:
    """Greatest offsets that were seen and read of each partition; in the beginning none."""

    def __init__(self) -> None:
        self._ends: dict[Place, int] = {}
        self._read: dict[Place, int] = {}

    def note_ends(self, ends: Mapping[Place, int]) -> None:
        """Take in where partitions end, or are to be read to."""
        _raise_to(self._ends, ends)

    def note_read(self, completed: Mapping[Place, int]) -> None:
        """Take in up to where the completed batches have read."""
        _raise_to(self._read, completed)
        _raise_to(self._ends, completed)

    def unread(self, topics: Collection[str]) -> dict[Place, int]:
        """Count the records of some topics that were seen and are not read."""
        behind = {
            place: self._ends[place] - read
            for place, read in self._read.items()
            if place[0] in topics
        }
        return {place: count for place, count in behind.items() if count}

    def truncated(self, ends: Mapping[Place, int]) -> dict[Place, int]:
        """Count by how much partitions end before what was seen of them.

        Parameters
        ----------
        ends : mapping of (topic, partition) to int
            Where they end now.
        """
        behind = {place: self._ends.get(place, end) - end for place, end in ends.items()}
        return {place: count for place, count in behind.items() if count > 0}

    def set_ends(self, ends: Mapping[Place, int]) -> None:
        """Replace what is known of truncated partitions."""
        for place, end in ends.items():
            self._ends[place] = end
            self._read[place] = min(self._read.get(place, end), end)

    def forget(self, topics: Collection[str]) -> None:
        """Drop what is known of topics that are gone, or are others by now."""
        for known in (self._ends, self._read):
            for place in [place for place in known if place[0] in topics]:
                del known[place]


def _raise_to(known: dict[Place, int], offsets: Mapping[Place, int]) -> None:
    for place, offset in offsets.items():
        known[place] = max(known.get(place, offset), offset)
