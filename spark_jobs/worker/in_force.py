"""Parameters of a run of the query.

Spark also imports this module in processes that only describe the query, so its imports are few.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from correlation.engine.origin import Origin
from correlation.resources.streams import Stream
from correlation.resources.topics import Topics
from spark_jobs.worker.positions import Positions


@dataclass(frozen=True, slots=True)
class InForce:
    """Parameters of a run of the query, which are sent to the tasks.

    Parameters
    ----------
    run_id : str
        Id of this run. Cached programs of an earlier run, which may have other streams, are not
        used.
    topics : Topics
        Topics of the installation.
    streams : mapping of name to Stream
        The streams in force.
    partitions : mapping of stream to int
        Number of Kafka partitions of the stream's topic.
    slot_keys : tuple of int
        Key of each slot.
    cache_folder : str
        Folder of the workers' blob files.
    read_up_to : mapping of stream to (mapping of partition to int)
        End offsets of the batches before this run. They hold for slots that this run has not
        advanced yet.
    origin : Origin
        Ids of the topics from which the records come, and streams without a topic.
    paces_metrics : bool
        Whether a slot with many conditions may leave out its metrics in a batch. The last batch of
        a run that ends by itself must write them.
    generation : int
        Number of the distribution of the state over slots; part of the keys of published records.
    checkpoint : str
        Id of the checkpoint.
    config_topic_id : str or None
        Kafka's id of the config topic.
    positions : Positions
        Positions of the batches before this run, in topics that were not recreated since.
    written : tuple of Positions
        As of `Packing`.
    is_flushing : bool
        As of `StreamsInForce`.
    """

    run_id: str
    topics: Topics
    streams: Mapping[str, Stream]
    partitions: Mapping[str, int]
    slot_keys: tuple[int, ...]
    cache_folder: str
    read_up_to: Mapping[str, Mapping[int, int]]
    origin: Origin = field(default_factory=Origin)
    paces_metrics: bool = True
    generation: int = 0
    checkpoint: str = ""
    config_topic_id: str | None = None
    positions: Positions = field(default_factory=dict)
    written: tuple[Positions, ...] = ()
    is_flushing: bool = False
