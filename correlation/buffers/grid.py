"""The symmetric grid: events without a key spread over many slots, each pair in one of them.

Problem. All events of two streams (or of one with itself) may meet, so no key says who may be kept
apart. Yet the work shall be spread, and every pair be looked at exactly once.

Algorithm. Each event is hashed into one of g groups, by its place in Kafka, which is its own and
the same whenever it is read. The cells of the grid are the unordered pairs {i, j} of groups,
g (g + 1) / 2 of them. An event of group h goes to the cells {h, 0} ... {h, g - 1}: g copies. In
the cell {i, j} events of group i meet those of group j only, under join keys that say so: the copy
of group h in the cell {h, k} has the key (h, k), and (h, k) meets (k, h), its crossed key.

Theorem (docs/proofs.md, P-GRID). Any two events, of equal groups or not, meet exactly once.

The copy with the key (h, h) is the event's home copy: it is where an event is counted, once.

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

# The only key of a grid of one cell: crossed, it is itself.
_ONE_CELL = b"0"
_KEY_BYTES = 2
# Work of a cell of two groups, in that of a cell of one.
_TWO_GROUPS, _ONE_GROUP = 2, 1


def assign_groups(partition: NDArray[np.int32], offset: Int64s, groups: int) -> Int64s:
    """Hash events into groups by their places in Kafka.

    Parameters
    ----------
    partition, offset : int32[n], int64[n]
        Of the events. Offsets alone are no good: a transaction may take every second one.
    groups : int
        g.

    Returns
    -------
    int64[n]
        From 0 to g - 1.
    """
    # The finaliser of splitmix64 (Steele, Lea and Flood, 2014): every bit depends on all others.
    mixed = offset.astype(np.uint64) ^ (partition.astype(np.uint64) << np.uint64(48))
    mixed += np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    found: Int64s = (mixed % np.uint64(groups)).astype(np.int64)
    return found


def cell_keys(own: Int64s, other: Int64s, groups: int) -> BytesColumn:
    """Give the join keys of copies.

    Parameters
    ----------
    own, other : int64[n]
        Groups of a copy's event, and of the events that it meets.
    groups : int
        g.
    """
    if groups == 1:
        data = np.frombuffer(_ONE_CELL * len(own), np.uint8)
        return BytesColumn(data, np.arange(len(own) + 1, dtype=np.int64))
    data = np.stack([own, other], axis=1).astype(np.uint8).ravel()
    return BytesColumn(data, np.arange(len(own) + 1, dtype=np.int64) * _KEY_BYTES)


def crossed_key(key: bytes) -> bytes:
    """Give the join key of the copies that those of a key meet."""
    return key[::-1]


def home_copies(key: BytesColumn, groups: int) -> NDArray[np.bool_]:
    """Tell the home copies: one of each event, whatever the number of groups.

    Parameters
    ----------
    key : BytesColumn
        As `cell_keys` gave them; with g = 1 they are not looked at.
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
    """Spread the cells over the slots, each to the one with the least work so far.

    Those of two groups come first, so that the small ones fill up what they leave. With as many
    groups as slots all slots have the same work (docs/proofs.md, P-GRID).

    Parameters
    ----------
    groups, slots : int
        How many there are.

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
