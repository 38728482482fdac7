"""The errors of this package."""

from __future__ import annotations

import re
from typing import Self


class SparkJobError(Exception):
    """Base of all errors of this package."""


class SettingError(SparkJobError):
    """A setting has a value that Spark, or Kafka's client in it, does not take."""


class CheckpointMismatchError(SparkJobError):
    """The checkpoint was made with other settings that cannot change, such as the slots."""


class JarsMismatchError(SparkJobError):
    """A Java archive is missing, or is not the one that is pinned by its hash."""


class StaleCheckpointError(SparkJobError):
    """The checkpoint is older than what was written with it; its new alarms would be dropped.

    Parameters
    ----------
    newest : int
        Newest batch that the checkpoint knows of.
    written : int
        Newest batch that is in Kafka.
    """

    def __init__(self, newest: int, written: int) -> None:
        super().__init__(
            "COINCIDE_CHECKPOINT: the checkpoint is older than what was written to Kafka with it: "
            f"its newest batch is {newest}, but batch {written} is in Kafka. Either it was "
            "restored from a copy made earlier, or another job works with a newer copy of it. "
            "Restore a newer copy, or start with an empty checkpoint: it reads all topics again, "
            "and alarms that are still found are written again with the same alarm_id"
        )

    @classmethod
    def from_text(cls, text: str) -> Self | None:
        """Return the error that a message quotes, such as Spark's report of a failed task."""
        found = re.search(r"its newest batch is (-?\d+), but batch (\d+) is in Kafka", text)
        return None if found is None else cls(int(found[1]), int(found[2]))


class CheckpointStoreError(SparkJobError):
    """The file system of the checkpoint cannot be read or written; the job tries again.

    Parameters
    ----------
    location : str
        Folder or URL of the checkpoint.
    cause : str
        What the file system reported.
    """

    def __init__(self, location: str, cause: str) -> None:
        super().__init__(
            f"the checkpoint's store: {cause}: free space or check permissions at {location}"
        )


class ConfigTopicError(SparkJobError):
    """The config topic is another one than the checkpoint goes with, and not accepted."""


class DeliveryError(SparkJobError):
    """Kafka did not take the records of a batch; the batch is tried again."""


class ProducerFencedError(SparkJobError):
    """Another worker has taken this partition of the sink over."""


class RivalJobError(SparkJobError):
    """Another job of the same installation works with another checkpoint."""


class QueryFailedError(SparkJobError):
    """The query ended with an error again and again, without completing a batch."""


class MissingTopicError(SparkJobError):
    """A job that is to end where its topics end misses one of them."""
