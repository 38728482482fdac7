"""Errors of this package."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Sequence


class SparkJobError(Exception):
    """Base of all errors of this package."""


class SettingError(SparkJobError):
    """Spark, or its Kafka client, rejects the value of a setting."""


class CheckpointMismatchError(SparkJobError):
    """The checkpoint was created with another value of a fixed setting, such as the slots."""


class RebuildError(SparkJobError):
    """The state cannot be rebuilt from Kafka: records of buffered events are missing."""


class RescaleRefusedError(SparkJobError):
    """The state cannot be distributed to another number of slots now; the job continues."""


class UnequalSlotsError(RescaleRefusedError):
    """The slots have different states of conditions.

    Parameters
    ----------
    conditions : sequence of str
        Names of the conditions.
    """

    def __init__(self, conditions: Sequence[str]) -> None:
        super().__init__(
            f"the slots have different states of condition {', '.join(conditions)}, because the "
            "watermark or the declaration of one of its streams was changed; wait until the events "
            "from before the change have left the buffers, or pause the condition"
        )
        self.conditions = frozenset(conditions)


class StaleCheckpointError(SparkJobError):
    """The checkpoint is older than the output in Kafka; the sink would drop its new alarms.

    Parameters
    ----------
    newest : int
        Newest batch in the checkpoint.
    written : int
        Newest batch in Kafka.
    """

    def __init__(self, newest: int, written: int) -> None:
        super().__init__(
            "COINCIDE_CHECKPOINT: the checkpoint is older than its output in Kafka: "
            f"its newest batch is {newest}, but batch {written} is in Kafka. Either it was "
            "restored from an old copy, or another job uses a newer copy. "
            "Restore a newer copy, or start once with --rebuild: the job then rebuilds its state "
            "from Kafka"
        )
        self.newest, self.written = newest, written

    @classmethod
    def from_text(cls, text: str) -> Self | None:
        """Parse the error from a message that quotes it, such as the report of a failed task."""
        found = re.search(r"its newest batch is (-?\d+), but batch (\d+) is in Kafka", text)
        return None if found is None else cls(int(found[1]), int(found[2]))


class CheckpointStoreError(SparkJobError):
    """The file system of the checkpoint cannot be read or written; the job tries again.

    Parameters
    ----------
    location : str
        Folder or URL of the checkpoint.
    cause : str
        The error that the file system reported.
    """

    def __init__(self, location: str, cause: str) -> None:
        super().__init__(
            f"the checkpoint's store: {cause}; free space or check permissions at {location}"
        )
        self.location, self.cause = location, cause


class LostLayoutError(CheckpointStoreError):
    """The folder of the checkpoint was removed or replaced while the job runs."""


class ConfigTopicError(SparkJobError):
    """The config topic was recreated, and the operator has not accepted the new topic."""


class DeliveryError(SparkJobError):
    """Kafka did not accept the records of a batch; the batch is retried."""


class ProducerFencedError(SparkJobError):
    """Another worker has taken over this partition of the sink."""


class RivalJobError(SparkJobError):
    """Another job of the same installation runs with another checkpoint."""


class ClaimLostError(SparkJobError):
    """A job that started later has claimed the installation; this job may not write any more.

    Parameters
    ----------
    prefix : str
        Prefix of the installation.
    owner, own : str
        Ids of the checkpoints of the other job and of this job.
    """

    def __init__(self, prefix: str, owner: str, own: str) -> None:
        super().__init__(
            f"another job has claimed the installation {prefix}: the id of its checkpoint is "
            f"{owner}, the id of the checkpoint of this job is {own} (see layout.json in a "
            "checkpoint). This job writes nothing more. Keep one of the jobs stopped, or use "
            "another COINCIDE_PREFIX"
        )
        self.prefix, self.owner, self.own = prefix, owner, own

    @classmethod
    def from_text(cls, text: str) -> Self | None:
        """Parse the error from a message that quotes it, such as the report of a failed task."""
        found = re.search(
            r"claimed the installation (\S+): the id of its checkpoint is (\S+), "
            r"the id of the checkpoint of this job is (\S+) ",
            text,
        )
        return None if found is None else cls(*found.groups())


class HangingQueryError(SparkJobError):
    """The query has work but completes no batch; it is restarted with new Python workers.

    Parameters
    ----------
    seconds : float
        COINCIDE_MAX_BATCH_SECONDS.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"COINCIDE_MAX_BATCH_SECONDS: no batch was completed for {seconds:g} s, although the "
            "query has work; it is restarted with new Python workers. Raise the setting if batches "
            "need more time"
        )


class QueryFailedError(SparkJobError):
    """The query failed repeatedly without completing a batch."""


class MissingTopicError(SparkJobError):
    """A topic is missing for a job that reads until the end of its topics."""
