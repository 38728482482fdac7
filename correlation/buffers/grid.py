"""Symmetric grid: distributes events without a key over slots so that each pair meets in one slot.

Problem. All events of two streams (or of one stream with itself) may meet, so no key partitions
them. The work must still be distributed over slots, and every pair must be evaluated exactly once.

Algorithm. Each event is hashed into one of g groups by its partition and offset, which identify the
event and do not change when it is read again. Events of streams with tokens are hashed by their ids
and times instead: all copies of an event that was sent twice are then in the same cells. The cells
of the grid are the g (g + 1) / 2 unordered pairs {i, j} of groups. An event of group h goes to the
cells {h, 0} ... {h, g - 1}: g copies. In the cell {i, j} events of group i meet only events of
group j, by their join keys: the copy of group h in the cell {h, k} has the key (h, k), and (h, k)
meets (k, h), its crossed key.

Theorem (docs/proofs.md, P-GRID). Any two events, of equal groups or not, meet exactly once.

The copy with the key (h, h) is the event's home copy. Only home copies are counted as events.

Reference. The symmetric fragment-and-replicate join (Stamos and Young, 1993).

Cost. g copies of each event. A cell {i, j} of two groups has twice the events and the pairs of a
cell {h, h}: see `slots_of_cells`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from correlation.buffers.columns import BytesColumn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from correlation.buffers.columns import Int64s

# The only key of a grid of one cell; its crossed key is the same key.
_ONE_CELL = b"0"
_KEY_BYTES = 2
# Relative work of a cell of two groups and of a cell of one group.
_TWO_GROUPS, _ONE_GROUP = 2, 1


def assign_groups(first: NDArray[np.int32], second: Int64s, groups: int) -> Int64s:
    """Hash events into groups by two numbers.

    Parameters
    ----------
    first, second : int32[n], int64[n]
        Kafka partition and offset of the events, or hash of the id and time. They are hashed
        because offsets modulo g are not uniform: transaction markers may take every second offset.
    groups : int
        g.

    Returns
    -------
    int64[n]
        Group of each event, from 0 to g - 1.
    """
    # Finaliser of splitmix64 (Steele, Lea and Flood, 2014): each bit depends on all input bits.
    mixed = second.astype(np.uint64) ^ (first.astype(np.uint64) << np.uint64(48))
    mixed += np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    found: Int64s = (mixed % np.uint64(groups)).astype(np.int64)
    return found


def cell_keys(own: Int64s, other: Int64s, groups: int) -> BytesColumn:
    """Build the join keys of copies.

    Parameters
    ----------
    own, other : int64[n]
        Group of each copy's event, and group of the events that the copy meets.
    groups : int
        g.
    """
    if groups == 1:
        data = np.frombuffer(_ONE_CELL * len(own), np.uint8)
        return BytesColumn(data, np.arange(len(own) + 1, dtype=np.int64))
    data = np.stack([own, other], axis=1).astype(np.uint8).ravel()
    return BytesColumn(data, np.arange(len(own) + 1, dtype=np.int64) * _KEY_BYTES)


def crossed_key(key: bytes) -> bytes:
    """Return the crossed key: the join key of the copies that copies with this key meet."""
    return key[::-1]


def home_copies(key: BytesColumn, groups: int) -> NDArray[np.bool_]:
    """Find the home copies, one per event.

    Parameters
    ----------
    key : BytesColumn
        Output of `cell_keys`; ignored if g = 1.
    groups : int
        g.
    """
    if groups == 1:
        return np.ones(len(key), np.bool_)
    first = key.offsets[:-1]
    found: NDArray[np.bool_] = key.data[first] == key.data[first + 1]
    return found


@cache
def slots_of_cells(groups: int, slots: int) -> NDArray[np.int32]:
    """Assign each cell to the slot with the minimum work so far.

    Cells of two groups are assigned first, then cells of one group balance the remaining
    differences. If g equals the number of slots, all slots have the same work (docs/proofs.md,
    P-GRID).

    Parameters
    ----------
    groups, slots : int
        Number of groups g, and number of slots.

    Returns
    -------
    int32[g, g]
        Slot of each cell {i, j}, at [i, j] and [j, i].
    """
    load = np.zeros(slots, np.int64)
    slot_of = np.zeros((groups, groups), np.int32)
    pairs = [(i, j) for i in range(groups) for j in range(i + 1, groups)]
    for i, j in [*pairs, *((h, h) for h in range(groups))]:
        slot = int(np.argmin(load))
        load[slot] += _ONE_GROUP if i == j else _TWO_GROUPS
        slot_of[i, j] = slot_of[j, i] = slot
    slot_of.setflags(write=False)
    return slot_of
