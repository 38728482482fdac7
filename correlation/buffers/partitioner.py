"""Assigns the events of a stream to slots, by their keys or over the cells of a grid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from correlation.buffers.columns import BytesColumn, Int64s
from correlation.buffers.events import Events
from correlation.buffers.grid import assign_groups, cell_keys, home_copies, slots_of_cells
from correlation.resources.partitioning import Partitioning


class Assignment(NamedTuple):
    """Where events go: copy i is event row[i], goes to slot[i] and meets equal join_key[i]."""

    slot: NDArray[np.int32]
    row: Int64s
    join_key: BytesColumn


@dataclass(frozen=True, slots=True)
class Partitioner:
    """Assigns the events of one stream to slots.

    Parameters
    ----------
    partitioning : Partitioning
        Of the stream.
    slots : int
        Number of slots of the job.
    """

    partitioning: Partitioning
    slots: int

    def assign(self, events: Events) -> Assignment:
        """Give slot and join key of every copy.

        Parameters
        ----------
        events : Events
            Their keys are not looked at by a grid, their places not by a key.
        """
        count, groups = len(events), self.partitioning.groups
        if self.partitioning.by == "grid":
            group = assign_groups(events.partition, events.offset, groups)
            own, other = np.repeat(group, groups), np.tile(np.arange(groups), count)
            slot = slots_of_cells(groups, self.slots)[own, other]
            row = np.repeat(np.arange(count, dtype=np.int64), groups)
            return Assignment(slot, row, cell_keys(own, other, groups))
        slot = np.empty(count, np.int32)
        _hash_rows_kernel(events.key.data, events.key.offsets, np.uint64(self.slots), slot)
        return Assignment(slot, np.arange(count, dtype=np.int64), events.key)

    def spread(self, events: Events) -> Iterator[tuple[int, Events]]:
        """Give each slot its copies of the events, under the keys by which they meet there.

        Parameters
        ----------
        events : Events
            Of the stream.

        Yields
        ------
        int, Events
            Slot and copies, in the order of the events; only home copies have `extra`, which would
            travel for nothing with the others.
        """
        if not len(events):
            return
        slot, row, join_key = self.assign(events)
        # Of 16 bits, as numpy sorts them by radix: a job has fewer slots (limits.SLOTS_LIMIT).
        order = np.argsort(slot.astype(np.int16), kind="stable")
        numbers, starts = np.unique(slot[order], return_index=True)
        for number, copies in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True):
            key = join_key.take(copies)
            mine = replace(events.take(row[copies]), key=key)
            groups = self.partitioning.groups
            if groups > 1:
                home = home_copies(key, groups)
                extra = {name: _where(home, column) for name, column in mine.extra.items()}
                mine = replace(mine, extra=extra)
            yield number, mine


def _where(chosen: NDArray[np.bool_], column: BytesColumn) -> BytesColumn:
    """Leave empty what is not chosen."""
    one_more = BytesColumn(column.data, np.append(column.offsets, column.offsets[-1]))
    return one_more.take(np.where(chosen, np.arange(len(column)), len(column)))


@njit(cache=True)
def _hash_rows_kernel(
    data: NDArray[np.uint8], offsets: Int64s, slots: np.uint64, out: NDArray[np.int32]
) -> None:
    """FNV-1a of each row with 32-bit arithmetic, its bits mixed down before the remainder."""
    mask = np.uint64(0xFFFFFFFF)
    for i in range(len(out)):
        value = np.uint64(2166136261)
        for j in range(offsets[i], offsets[i + 1]):
            value = ((value ^ np.uint64(data[j])) * np.uint64(16777619)) & mask
        value = ((value ^ (value >> np.uint64(16))) * np.uint64(0x45D9F3B)) & mask
        out[i] = np.int32((value ^ (value >> np.uint64(16))) % slots)
