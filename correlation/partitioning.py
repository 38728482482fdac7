"""Which slot an event goes to, and which events can meet there.

Partitioning by `key`: events with equal keys meet. Partitioning by `grid`: no key is needed; the
events are hashed into g groups and each goes to the cells of its row and column of the symmetric
g x g grid (correlation.grid). With g = 1 there is one cell, in which all events meet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from correlation.columns import BytesColumn, Int64s
from correlation.errors import InvalidFieldError
from correlation.events import Events
from correlation.grid import assign_groups, cell_keys, count_cells, home_copies, slots_of_cells
from correlation.limits import GROUPS_LIMIT


@dataclass(frozen=True, slots=True)
class Partitioning:
    """How the events of a stream are spread over the slots.

    Parameters
    ----------
    by : {"key", "grid"}
        Equal keys meet, or all events meet.
    groups : int
        g of the grid: each event is held g times.

    Raises
    ------
    InvalidFieldError
        When `by` is unknown, or `groups` out of range, or given where there is no grid.
    """

    by: Literal["key", "grid"] = "key"
    groups: int = 1

    def __post_init__(self) -> None:
        if self.by not in {"key", "grid"}:
            raise InvalidFieldError("partitioning.by", f"unknown: {self.by!r}", "use key or grid")
        if not 1 <= self.groups <= GROUPS_LIMIT:
            raise InvalidFieldError(
                "partitioning.groups",
                f"{self.groups} is not from 1 to {GROUPS_LIMIT}",
                f"use at most {GROUPS_LIMIT}: more would be more cells than a job has slots",
            )
        if self.by == "key" and self.groups != 1:
            raise InvalidFieldError(
                "partitioning.groups",
                "goes with a grid only",
                'leave it out, or write "by": "grid"',
            )

    def __str__(self) -> str:
        if self.by == "key":
            return "key"
        return f"grid with {self.groups} group{'' if self.groups == 1 else 's'}"

    @property
    def cells(self) -> int:
        """Number of cells of the grid; 1 of streams by key, where there is none."""
        return count_cells(self.groups)

    def home_copies(self, key: BytesColumn) -> NDArray[np.bool_]:
        """Tell, by their join keys, which copies stand for their events: one of each.

        Parameters
        ----------
        key : BytesColumn
            As `Partitioner.spread` gave them.
        """
        return home_copies(key, self.groups)


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
            if self.partitioning.groups > 1:
                home = self.partitioning.home_copies(key)
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
