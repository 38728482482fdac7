"""Detect a checkpoint that is older than the output in Kafka: the sink would drop its new alarms.

The sink skips a batch whose number is marked as written. A checkpoint restored from a copy
continues with the batch numbers of the copy, so new batches get numbers that are already marked.
Spark writes the offsets of a batch into the checkpoint before any task of the batch runs, and
repeats only the newest batch. A valid mark is therefore at most the newest batch of the checkpoint.
A higher mark proves that the checkpoint is an old copy. A partition of the sink without output has
no mark. A new checkpoint has a new query id, which has no marks.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import orjson

from spark_jobs.errors import StaleCheckpointError
from spark_jobs.sink.sink import merge_target, target_of
from spark_jobs.sink.transactions import PartitionProducer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from spark_jobs.driver.checkpoint import Checkpoint, Layout
    from spark_jobs.settings import Properties, Settings
    from spark_jobs.sink.transactions import Target

# Each thread waits for Kafka most of the time.
_MAX_AT_ONCE = 8


def check_checkpoint(checkpoint: Checkpoint, layout: Layout, settings: Settings) -> None:
    """Check that the checkpoint contains all batches that were written with it.

    Parameters
    ----------
    checkpoint : Checkpoint
        Checkpoint of the job.
    layout : Layout
        Layout of the checkpoint.
    settings : Settings
        Settings of the job.

    Raises
    ------
    StaleCheckpointError
        When a later batch is in Kafka.
    ProducerFencedError, UnusableProducerError
        When Kafka does not accept the job's transactional ids.
    """
    stored = checkpoint.read("query/metadata")
    if stored is None:
        return
    query = orjson.loads(stored)["id"]
    targets = [
        *(target_of(settings.prefix, query, number) for number in range(layout.shuffle_partitions)),
        merge_target(settings.prefix, query),
    ]
    check_marks(checkpoint.newest_batch(), targets, settings.client)


def check_marks(newest: int, targets: Iterable[Target], properties: Properties) -> None:
    """Check that no partition of the sink has written a batch after the newest batch.

    Parameters
    ----------
    newest : int
        Newest batch that was begun, or -1.
    targets : iterable of Target
        Targets of the partitions of the sink.
    properties : mapping
        librdkafka properties.

    Raises
    ------
    StaleCheckpointError
        When a partition has written a later batch.
    ProducerFencedError, UnusableProducerError
        When Kafka does not accept a transactional id.
    """

    def next_batch(target: Target) -> int:
        # A producer is opened to end a transaction that a killed job left open: only then is its
        # mark decided.
        return PartitionProducer(target, properties).next_batch()

    with ThreadPoolExecutor(_MAX_AT_ONCE) as threads:
        written = max(threads.map(next_batch, targets), default=0) - 1
    if written > newest:
        raise StaleCheckpointError(newest, written)
