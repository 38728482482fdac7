"""The errors of this package."""

from __future__ import annotations


class SparkJobError(Exception):
    """Base of all errors of this package."""


class CheckpointMismatchError(SparkJobError):
    """The checkpoint was made with other settings that cannot change, such as the slots."""


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
