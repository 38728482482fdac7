"""Slot keys: the integers by which Spark spreads the slots evenly over its shuffle partitions.

Spark sends a row to the partition `pmod(hash(key), partitions)`. The slot numbers themselves would
collide there, so each slot gets the least integer that lands where the slot belongs. Spark's own
function is asked, nothing of it is written again here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Each integer hits a given partition with chance 1/partitions: so many per slot are plenty.
_CANDIDATES_PER_PARTITION = 64


def slot_keys(session: SparkSession, slots: int, partitions: int) -> tuple[int, ...]:
    """Give each slot a key, slot s on shuffle partition s modulo `partitions`.

    Parameters
    ----------
    session : SparkSession
        Whose hash function is asked.
    slots : int
        Number of slots.
    partitions : int
        Number of shuffle partitions.

    Returns
    -------
    tuple of int
        Distinct keys, one for each slot.
    """
    rounds = -(-slots // partitions)
    count = partitions * rounds * _CANDIDATES_PER_PARTITION
    rows = session.range(count).selectExpr(
        "cast(id AS int) AS key", f"pmod(hash(cast(id AS int)), {partitions}) AS partition"
    )
    waiting: dict[int, list[int]] = {}
    for key, partition in sorted(tuple(row) for row in rows.collect()):
        waiting.setdefault(partition, []).append(key)
    return tuple(waiting[slot % partitions][slot // partitions] for slot in range(slots))
