"""The newest records of a topic: those with the newest timestamps, of limited number and size."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from confluent_kafka import Message

# Max size of the records, in bytes.
NEWEST_BYTES = 16 * 2**20
# Older records are dropped when the number or the size is this multiple of its limit.
_SPARE = 2


@dataclass(slots=True)
class NewestRecords:
    """The newest records of a topic.

    Parameters
    ----------
    most : int
        Max number of records to keep.
    shortened : collection of int
        Partitions of which not all records are read, but only the newest.
    messages : list of Message
        The records, by partition and offset after `prune`.
    in_time : bool
        False when the time limit ended the reading.
    """

    most: int
    shortened: Collection[int] = ()
    messages: list[Message] = field(default_factory=list)
    in_time: bool = True
    _bytes: int = 0
    # Timestamp of the first record that was read of each partition, in ms.
    _first_ms: dict[int, int] = field(default_factory=dict)

    @property
    def cut(self) -> list[int]:
        """Partitions with records in the time of the kept ones that were not read, in order."""
        oldest_ms = min((it.timestamp()[1] for it in self.messages), default=0)
        return sorted(it for it in self.shortened if self._first_ms.get(it, oldest_ms) > oldest_ms)

    def add(self, message: Message) -> None:
        """Add a record; older ones are dropped when they are too many or too large."""
        self.messages.append(message)
        self._first_ms.setdefault(message.partition() or 0, message.timestamp()[1])
        self._bytes += len(message.value() or b"")
        if len(self.messages) > _SPARE * self.most or self._bytes > _SPARE * NEWEST_BYTES:
            self.prune()

    def prune(self) -> None:
        """Keep the records with the newest timestamps, within the limits."""
        ordered = sorted(self.messages, key=_time_and_place, reverse=True)
        sizes = accumulate(len(it.value() or b"") for it in ordered)
        kept = [
            it
            for it, size in zip(ordered[: self.most], sizes, strict=False)
            if size <= NEWEST_BYTES
        ]
        self.messages = sorted(kept, key=lambda it: _time_and_place(it)[1:])
        self._bytes = sum(len(it.value() or b"") for it in kept)


def _time_and_place(message: Message) -> tuple[int, int, int]:
    """Return timestamp, partition and offset of a record."""
    return message.timestamp()[1], message.partition() or 0, message.offset() or 0
