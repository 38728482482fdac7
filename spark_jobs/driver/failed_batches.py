"""Plan a batch again after its query has failed, without a new process (P-REPLAN).

A start of the job does the same (`spark_jobs.driver.replanning`). There the processes of the former
query have ended, or belong to a job that has lost its claim. Here they may be alive: a Python
worker that was cancelled may still open a producer and write the batch. The job therefore claims
the installation again. From then on, a worker of the failed query writes nothing, as if it were a
worker of another job, and the marks of all parts of the sink are final.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException

from spark_jobs.driver.stale_checkpoint import check_checkpoint
from spark_jobs.errors import CheckpointStoreError, ProducerFencedError
from spark_jobs.sink.marker import read_marks
from spark_jobs.sink.state_topic import read_decided_state
from spark_jobs.sink.transactional_client import UnusableProducerError

if TYPE_CHECKING:
    from spark_jobs.driver.layout import Layout
    from spark_jobs.driver.parts import Parts
    from spark_jobs.driver.replanning import Replanning

_log = logging.getLogger(__name__)

_READ_SECONDS = 60.0
# The batch is then repeated as it is.
_NOT_PLANNED = (KafkaException, CheckpointStoreError, ProducerFencedError, UnusableProducerError)


def plan_again(parts: Parts, layout: Layout, replanning: Replanning) -> None:
    """Remove the unfinished batch of a query that has failed, unless a part of it is written.

    Parameters
    ----------
    parts : Parts
        Objects of the job. No query runs, no task runs, and all state stores are closed.
    layout : Layout
        Layout of the query.
    replanning : Replanning
        Removes the batch, and limits the batches that follow.

    Raises
    ------
    ClaimLostError
        When another job has claimed the installation.
    StaleCheckpointError
        When a later batch is in Kafka.
    """
    try:
        if not parts.checkpoint.has_unfinished_batch():
            return
        owner = parts.claim.replace()
        parts.reporter.state("failing", claim=owner.number)
        # The offsets that mark batches may have expired, as at the start of a job.
        topic = parts.settings.topics.state
        values = read_decided_state(parts.settings.client, topic, _READ_SECONDS, _READ_SECONDS)
        written = check_checkpoint(
            parts.checkpoint, layout, parts.settings, owner, read_marks(values)
        )
        replanning.discard_unwritten(written)
    except _NOT_PLANNED as error:
        _log.warning("the batch is repeated, and was not planned again: %s", error)
