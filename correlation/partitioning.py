"""Which slot an event goes to, and which events can meet there.

Partitioning by `key`: events with equal keys meet. Partitioning by `grid`: no key is needed; the
events are hashed into g groups and each goes to the cells of its row and column of the symmetric
g x g grid. With g = 1 there is one cell, in which all events meet.
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


@dataclass(frozen=True, slots=True)
class Partitioning:
    """How the events of a stream are spread over the slots.

    Parameters
    ----------
    by : {"key", "grid"}
        Equal keys meet, or all events meet.
    groups : int
        g of the grid; 1 in this version.

    Raises
    ------
    InvalidFieldError
        When `by` is unknown, or `groups` is not 1.
    """

    by: Literal["key", "grid"] = "key"
    groups: int = 1

    def __post_init__(self) -> None:
        if self.by not in {"key", "grid"}:
            raise InvalidFieldError("partitioning.by", f"unknown: {self.by!r}", "use key or grid")
        if self.groups != 1:
            raise InvalidFieldError(
                "partitioning.groups", f"is {self.groups}", "use 1: the grid has one cell so far"
            )


class Assignment(NamedTuple):
    """Where events go: copy i is event row[i], goes to slot[i] and meets equal join_key[i]."""

    slot: NDArray[np.int32]
    row: Int64s
    join_key: BytesColumn


_CELL = b"0"


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

    def assign(self, key: BytesColumn) -> Assignment:
        """Give slot and join key of every event.

        Parameters
        ----------
        key : BytesColumn
            Keys of n events; not looked at by a grid.
        """
        rows = np.arange(len(key), dtype=np.int64)
        if self.partitioning.by == "grid":
            cells = np.frombuffer(_CELL * len(key), np.uint8)
            offsets = np.arange(len(key) + 1, dtype=np.int64)
            return Assignment(np.zeros(len(key), np.int32), rows, BytesColumn(cells, offsets))
        slot = np.empty(len(key), np.int32)
        _hash_rows_kernel(key.data, key.offsets, np.uint64(self.slots), slot)
        return Assignment(slot, rows, key)

    def spread(self, events: Events) -> Iterator[tuple[int, Events]]:
        """Give each slot its copies of the events, under the keys by which they meet there.

        Parameters
        ----------
        events : Events
            Of the stream.
        """
        slot, row, join_key = self.assign(events.key)
        for number in np.unique(slot).tolist():
            copies = np.flatnonzero(slot == number)
            yield number, replace(events.take(row[copies]), key=join_key.take(copies))


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
