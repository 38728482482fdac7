"""Slot keys: the integers that spread the slots evenly over Spark's shuffle partitions.

Spark sends a row to the partition `pmod(hash(key), partitions)`. The slot numbers themselves would
collide, so each slot gets the smallest unused integer that maps to the slot's partition. The hash
is computed by Spark itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# An integer maps to a given partition with chance 1/partitions; 64 candidates per slot suffice.
_CANDIDATES_PER_PARTITION = 64


def slot_keys(session: SparkSession, slots: int, partitions: int) -> tuple[int, ...]:
    """Return a key for each slot; slot s maps to shuffle partition s modulo `partitions`.

    Parameters
    ----------
    session : SparkSession
        Session that computes the hash function.
    slots : int
        Number of slots.
    partitions : int
        Number of shuffle partitions.

    Returns
    -------
    tuple of int
        Distinct keys, one per slot.
    """
    rounds = -(-slots // partitions)
    count = partitions * rounds * _CANDIDATES_PER_PARTITION
    values = ", ".join(f"({key})" for key in range(count))
    # Spark evaluates literals while planning the query, without running a job.
    rows = session.sql(
        f"SELECT key, pmod(hash(key), {partitions}) FROM VALUES {values} AS candidates (key)"  # noqa: S608 - integers
    )
    waiting: dict[int, list[int]] = {}
    for key, partition in sorted(map(tuple, rows.collect())):
        waiting.setdefault(partition, []).append(key)
    return tuple(waiting[slot % partitions][slot // partitions] for slot in range(slots))
