"""Objects that a job uses during its whole life."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from kafka_client.topic_offsets import KafkaOffsets
    from spark_jobs.driver.checkpoint import Checkpoint
    from spark_jobs.driver.claim import Claim
    from spark_jobs.driver.config_topic import ConfigTopic
    from spark_jobs.driver.config_watch import ConfigWatch
    from spark_jobs.driver.layout import Layout
    from spark_jobs.driver.memory import MemoryUse
    from spark_jobs.driver.reports import Reporter
    from spark_jobs.settings import Settings


@dataclass(frozen=True)
class Parts:
    """Objects that the job uses.

    Parameters
    ----------
    settings, session, layout, checkpoint, config_topic, watch, offsets, reporter, claim
        See their classes.
    marks : mapping of str to int
        Batches that were written when the job started; see `spark_jobs.sink.marker.read_marks`.
    ahead : str
        See `SinkOptions`.
    written : int
        Newest batch of the checkpoint that was written when the job started, or -1.
    memory : MemoryUse
        Memory of the job's processes.
    stop : threading.Event
        Set when the job must stop.
    """

    settings: Settings
    session: SparkSession
    layout: Layout
    checkpoint: Checkpoint
    config_topic: ConfigTopic
    watch: ConfigWatch
    offsets: KafkaOffsets
    reporter: Reporter
    claim: Claim
    marks: Mapping[str, int]
    ahead: str
    written: int
    memory: MemoryUse
    stop: threading.Event

    @property
    def wanted_slots(self) -> int:
        """Requested number of slots."""
        return self.watch.slots or self.settings.slots
