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
    values = ", ".join(f"({key})" for key in range(count))
    # Literals are evaluated while the query is planned: no job is run for it.
    rows = session.sql(
        f"SELECT key, pmod(hash(key), {partitions}) FROM VALUES {values} AS candidates (key)"  # noqa: S608 - integers
    )
    waiting: dict[int, list[int]] = {}
    for key, partition in sorted(map(tuple, rows.collect())):
        waiting.setdefault(partition, []).append(key)
    return tuple(waiting[slot % partitions][slot // partitions] for slot in range(slots))
