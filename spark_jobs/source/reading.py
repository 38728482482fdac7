"""Parameters of the source.

Spark also imports this module in processes that only describe the query, so its imports are few.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from spark_jobs.worker.packing import Packing
from spark_jobs.worker.positions import Positions

if TYPE_CHECKING:
    from spark_jobs.settings import Properties


@dataclass(frozen=True)
class Reading:
    """Records to read, and how they are packed.

    Parameters
    ----------
    name : str
        Unique id of the run of the query. Connections of workers to Kafka are kept for a run.
    group : str
        Consumer group of the clients, which librdkafka requires. They never join it.
    properties : mapping
        librdkafka properties.
    packing : Packing
        Packs the records of a task.
    tasks : int
        Max number of tasks.
    """

    name: str
    group: str
    properties: Properties = field(repr=False)
    packing: Packing
    tasks: int


@dataclass(frozen=True)
class StreamReading(Reading):
    """A reading of topics without end.

    Parameters
    ----------
    partitions : mapping of topic to int
        Number of partitions of each event topic. Heartbeats and config records are read, too.
    max_records : int
        Max number of events and heartbeats of a batch.
    starts : Positions
        Offsets at which a query without offsets in its checkpoint begins; other partitions begin
        with their oldest record.
    ends : Positions
        Offsets at which partitions end; others have no end.
    """

    partitions: Mapping[str, int] = field(default_factory=dict)
    max_records: int = 1
    starts: Positions = field(default_factory=dict)
    ends: Positions = field(default_factory=dict)


@dataclass(frozen=True)
class RangeReading(Reading):
    """A reading of ranges of offsets.

    Parameters
    ----------
    ranges : mapping of topic to (mapping of partition to (int, int))
        First offset, and end offset, of each partition.
    """

    ranges: Mapping[str, Mapping[int, tuple[int, int]]] = field(default_factory=dict)
