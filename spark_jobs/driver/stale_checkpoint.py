"""A checkpoint older than what was written with it: the sink would drop its new alarms.

The sink writes nothing of a batch whose number it has marked as written. A checkpoint that was
restored from a copy counts its batches from the copy's on, so new batches come under numbers that
are marked already. Spark writes the offsets of a batch into the checkpoint before any task of the
batch runs, and repeats the newest batch only. So no mark can say more than that the newest batch of
the checkpoint is written; one that does proves that the checkpoint is an old copy. A partition of
the sink that has not written anything has no mark; a new checkpoint has a query id of its own, and
no marks with it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import orjson

from spark_jobs.errors import StaleCheckpointError
from spark_jobs.sink.sink import target_of
from spark_jobs.sink.transactions import PartitionProducer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from spark_jobs.driver.checkpoint import Checkpoint, Layout
    from spark_jobs.settings import Properties, Settings
    from spark_jobs.sink.transactions import Target

# Each waits for Kafka most of the time.
_MOST_AT_ONCE = 8


def check_checkpoint(checkpoint: Checkpoint, layout: Layout, settings: Settings) -> None:
    """Check that the checkpoint knows of all batches that were written with it.

    Parameters
    ----------
    checkpoint : Checkpoint
        Of the job.
    layout : Layout
        Of the checkpoint.
    settings : Settings
        Of the job.

    Raises
    ------
    StaleCheckpointError
        When it does not.
    ProducerFencedError, UnusableProducerError
        When Kafka does not accept the job's transactional ids.
    """
    stored = checkpoint.read("query/metadata")
    if stored is None:
        return
    query = orjson.loads(stored)["id"]
    targets = [
        target_of(settings.prefix, query, number) for number in range(layout.shuffle_partitions)
    ]
    check_marks(checkpoint.newest_batch(), targets, settings.client)


def check_marks(newest: int, targets: Iterable[Target], properties: Properties) -> None:
    """Check that no partition of the sink has written a batch later than the newest.

    Parameters
    ----------
    newest : int
        Newest batch that was begun, -1 for none.
    targets : iterable of Target
        Of the partitions of the sink.
    properties : mapping
        librdkafka properties.

    Raises
    ------
    StaleCheckpointError
        When one has.
    ProducerFencedError, UnusableProducerError
        When Kafka does not accept a transactional id.
    """

    def next_batch(target: Target) -> int:
        # As a writer, not only a reader: this ends a transaction that a killed job left open, and
        # with it the doubt whether its mark counts.
        return PartitionProducer(target, properties).next_batch()

    with ThreadPoolExecutor(_MOST_AT_ONCE) as threads:
        written = max(threads.map(next_batch, targets), default=0) - 1
    if written > newest:
        raise StaleCheckpointError(newest, written)
