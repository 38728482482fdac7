"""Assignment of the events of a stream to slots, by key or by the cells of a grid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from numba import njit
from numpy.typing import NDArray

from correlation.buffers.columns import BytesColumn, Int64s
from correlation.buffers.events import Events
from correlation.buffers.grid import assign_groups, cell_keys, slots_of_cells
from correlation.resources.partitioning import Partitioning
from correlation.resources.streams import Stream

# Number of hashes of ids.
_HASHES = 2**31


class Assignment(NamedTuple):
    """Slots of copies: copy i of event row[i] goes to slot[i] under the key join_key[i]."""

    slot: NDArray[np.int32]
    row: Int64s
    join_key: BytesColumn


@dataclass(frozen=True, slots=True)
class Partitioner:
    """Assignment of the events of one stream to slots.

    Parameters
    ----------
    partitioning : Partitioning
        Partitioning of the stream.
    slots : int
        Number of slots of the job.
    by_id : bool
        Whether ids and times decide the groups of a grid, otherwise partitions and offsets.
    """

    partitioning: Partitioning
    slots: int
    by_id: bool = False

    @classmethod
    def of_stream(cls, stream: Stream, slots: int) -> Self:
        """Return the assignment of a stream.

        Parameters
        ----------
        stream : Stream
            The stream. Of its sets of tokens, those with equal ids and times are one set, so they
            must be in the same cells.
        slots : int
            Number of slots of the job.
        """
        return cls(stream.partitioning, slots, by_id=stream.tokens is not None)

    def assign(self, events: Events) -> Assignment:
        """Return slot and join key of every copy.

        Parameters
        ----------
        events : Events
            Events of the stream. A grid does not use their keys.
        """
        count, groups = len(events), self.partitioning.groups
        if self.partitioning.by == "grid":
            group = self._assign_groups(events)
            own, other = np.repeat(group, groups), np.tile(np.arange(groups), count)
            slot = slots_of_cells(groups, self.slots)[own, other]
            row = np.repeat(np.arange(count, dtype=np.int64), groups)
            return Assignment(slot, row, cell_keys(own, other, groups))
        slot = _hash_rows(events.key, self.slots)
        return Assignment(slot, np.arange(count, dtype=np.int64), events.key)

    def _assign_groups(self, events: Events) -> Int64s:
        """Return the group of each event."""
        groups = self.partitioning.groups
        if self.by_id and groups > 1:
            return assign_groups(_hash_rows(events.id, _HASHES), events.latest, groups)
        return assign_groups(events.partition, events.offset, groups)

    def spread(self, events: Events) -> Iterator[tuple[int, Events]]:
        """Yield each slot with its copies of the events, under their join keys.

        Parameters
        ----------
        events : Events
            Events of the stream.

        Yields
        ------
        int, Events
            Slot and copies, in the order of the events.
        """
        if not len(events):
            return
        slot, row, join_key = self.assign(events)
        # numpy sorts 16-bit integers by radix sort; slot numbers fit (limits.SLOTS_LIMIT).
        order = np.argsort(slot.astype(np.int16), kind="stable")
        numbers, starts = np.unique(slot[order], return_index=True)
        groups = self.partitioning.groups
        if len(numbers) == 1 and groups == 1:
            yield int(numbers[0]), replace(events, key=join_key)
            return
        for number, copies in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True):
            key = join_key.take(copies)
            mine = replace(events.take(row[copies]), key=key)
            yield number, mine


def _hash_rows(column: BytesColumn, count: int) -> NDArray[np.int32]:
    """Return a number below `count` for each value."""
    found = np.empty(len(column), np.int32)
    _hash_rows_kernel(column.data, column.offsets, np.uint64(count), found)
    return found


@njit(cache=True)
def _hash_rows_kernel(
    data: NDArray[np.uint8], offsets: Int64s, count: np.uint64, out: NDArray[np.int32]
) -> None:
    """Compute a number below `count` for each row: 32-bit FNV-1a, with mixed bits, modulo it."""
    mask = np.uint64(0xFFFFFFFF)
    for i in range(len(out)):
        value = np.uint64(2166136261)
        for j in range(offsets[i], offsets[i + 1]):
            value = ((value ^ np.uint64(data[j])) * np.uint64(16777619)) & mask
        value = ((value ^ (value >> np.uint64(16))) * np.uint64(0x45D9F3B)) & mask
        out[i] = np.int32((value ^ (value >> np.uint64(16))) % count)
