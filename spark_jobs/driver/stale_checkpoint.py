"""Detect a checkpoint that is older than the output in Kafka: the sink would drop its new alarms.

The sink skips a batch whose number is marked as written. A checkpoint restored from a copy
continues with the batch numbers of the copy, so new batches get numbers that are already marked.
Spark writes the offsets of a batch into the checkpoint before any task of the batch runs, and
repeats only the newest batch. A valid mark is therefore at most the newest batch of the checkpoint.
A higher mark proves that the checkpoint is an old copy. A partition of the sink without output has
no mark. A new checkpoint has a new query id, which has no marks.

The marks are read twice. Before the job claims the installation, an old copy of a checkpoint is
refused without effect on the job that uses the newer one. After the claim, when open transactions
have ended, the marks are final.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, TypeVar

from confluent_kafka import KafkaException

from kafka_client.users import user_of
from spark_jobs.errors import StaleCheckpointError
from spark_jobs.sink.batches import mark_group, merge_target, target_of
from spark_jobs.sink.marker import Marker
from spark_jobs.sink.ownership import MERGED, claims_of
from spark_jobs.sink.transactional_client import as_own_error
from spark_jobs.sink.transactions import PartitionProducer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from spark_jobs.driver.checkpoint import Checkpoint
    from spark_jobs.driver.layout import Layout
    from spark_jobs.settings import Properties, Settings
    from spark_jobs.sink.options import Owner
    from spark_jobs.sink.transactions import Target

# Each thread waits for Kafka most of the time.
_MAX_AT_ONCE = 8
_Part = TypeVar("_Part")


def check_copy(checkpoint: Checkpoint, layout: Layout, settings: Settings) -> None:
    """Check the checkpoint against the present marks; nothing is written to Kafka.

    Parameters
    ----------
    checkpoint, layout, settings
        See `check_checkpoint`.

    Raises
    ------
    StaleCheckpointError
        When a later batch is in Kafka.
    UnusableProducerError
        When Kafka does not answer in time, or the right to a group is missing.
    """
    query = checkpoint.query_id()
    if query is None:
        return
    topics, client = settings.topics, settings.client

    def next_batch(group: str) -> int:
        with closing(Marker(topics, group, client, decided=False)) as marker:
            try:
                return marker.next_batch()
            except KafkaException as error:
                raise as_own_error(error, group, group, user_of(client)) from error

    groups = (mark_group(settings.prefix, query, part) for part in _parts(layout))
    _compare(checkpoint.newest_batch(), next_batch, groups)


def check_checkpoint(
    checkpoint: Checkpoint,
    layout: Layout,
    settings: Settings,
    owner: Owner,
    marks: Mapping[str, int],
) -> int:
    """Check that the checkpoint contains all batches that were written with it.

    Parameters
    ----------
    checkpoint : Checkpoint
        Checkpoint of the job.
    layout : Layout
        Layout of the checkpoint.
    settings : Settings
        Settings of the job.
    owner : Owner
        Claim of the job.
    marks : mapping of str to int
        See `spark_jobs.sink.marker.read_marks`.

    Returns
    -------
    int
        Newest batch that a part of the sink has written, or -1.

    Raises
    ------
    ClaimLostError
        When another job has claimed the installation.
    StaleCheckpointError
        When a later batch is in Kafka.
    ProducerFencedError, UnusableProducerError
        When Kafka does not accept the job's transactional ids.
    """
    query = checkpoint.query_id()
    if query is None:
        return -1
    targets = [
        *(
            target_of(settings.prefix, query, number, owner, marks)
            for number in range(layout.shuffle_partitions)
        ),
        merge_target(settings.prefix, query, owner, marks),
    ]
    # An earlier version, whose transactional ids were these, may have left transactions open.
    claims_of(settings.topics, settings.client).fence(target.group for target in targets)
    return check_marks(checkpoint.newest_batch(), targets, settings.client)


def check_marks(newest: int, targets: Iterable[Target], properties: Properties) -> int:
    """Check that no partition of the sink has written a batch after the newest batch.

    Parameters
    ----------
    newest : int
        Newest batch that was begun, or -1.
    targets : iterable of Target
        Targets of the partitions of the sink.
    properties : mapping
        librdkafka properties.

    Returns
    -------
    int
        Newest batch that a partition has written, or -1.

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

    return _compare(newest, next_batch, targets)


def _parts(layout: Layout) -> list[int | str]:
    return [*range(layout.shuffle_partitions), MERGED]


def _compare(newest: int, next_batch: Callable[[_Part], int], parts: Iterable[_Part]) -> int:
    with ThreadPoolExecutor(_MAX_AT_ONCE) as threads:
        written = max(threads.map(next_batch, parts), default=0) - 1
    if written > newest:
        raise StaleCheckpointError(newest, written)
    return written
