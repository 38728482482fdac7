"""Parameters of the packing of records, which are sent to the tasks.

Spark also imports this module in processes that only describe the query, so its imports are few.
"""

from __future__ import annotations

from dataclasses import dataclass

from correlation.resources.streams import Stream
from correlation.resources.topics import Topics
from spark_jobs.worker.positions import Positions


@dataclass(frozen=True)
class Packing:
    """How records are packed: see `spark_jobs.worker.pack`.

    Parameters
    ----------
    topics : Topics
        Topics of the installation.
    streams : sequence of Stream
        The streams in force.
    slot_keys : sequence of int
        Keys of the slots.
    max_record_bytes : int
        Max length of a value; longer values are rejected without parsing.
    written : sequence of Positions
        By slot, positions up to which the output of earlier jobs is in Kafka: the records before
        them are not rejected or counted again. Empty if the offsets of the query say all.
    refills : bool
        Whether only events are packed, to fill the buffers of a rebuild.
    cache_folder : str
        Folder of the workers' blob files; empty: no such folder.
    """

    topics: Topics
    streams: tuple[Stream, ...]
    slot_keys: tuple[int, ...]
    max_record_bytes: int
    written: tuple[Positions, ...] = ()
    refills: bool = False
    cache_folder: str = ""
