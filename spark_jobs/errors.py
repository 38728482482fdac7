"""The errors of this package."""

from __future__ import annotations


class SparkJobError(Exception):
    """Base of all errors of this package."""


class CheckpointMismatchError(SparkJobError):
    """The checkpoint was made with other settings that cannot change, such as the slots."""


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
