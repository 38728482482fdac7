"""The one source of the query: config, heartbeats and the event topics, as Kafka records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.settings import Settings


def assignment(settings: Settings, partitions: Mapping[str, int]) -> dict[str, list[int]]:
    """Give the partitions to be read of each topic.

    Parameters
    ----------
    settings : Settings
        Of the job.
    partitions : mapping of topic to int
        Number of partitions of each event topic.
    """
    topics = settings.topics
    return {
        topic: list(range(count))
        for topic, count in {topics.config: 1, topics.heartbeats: 1, **partitions}.items()
    }


def read_kafka(
    session: SparkSession, settings: Settings, assigned: Mapping[str, list[int]]
) -> DataFrame:
    """Read the assigned partitions from their beginning, or from where the checkpoint stands.

    The partitions are assigned, not subscribed: one that is added to a topic is read from the
    moment when every part of the job knows of it, and not before.

    Parameters
    ----------
    session : SparkSession
        With Spark's Kafka connector.
    settings : Settings
        Of the job.
    assigned : mapping of topic to partitions
        See `assignment`.
    """
    options = {
        "kafka.bootstrap.servers": settings.bootstrap,
        "assign": orjson.dumps(dict(assigned)).decode(),
        "startingOffsets": "earliest",
        "includeHeaders": "true",
        "maxOffsetsPerTrigger": str(settings.max_events_per_batch),
        # Spark would also call it a loss when a topic joins whose oldest records are expired, or
        # when a stream is deleted. What is really lost is found and said by
        # `spark_jobs.heartbeats`.
        "failOnDataLoss": "false",
        "kafka.isolation.level": "read_committed",
        # The source also asks when there is nothing: it is not kept waiting for long.
        "kafka.fetch.max.wait.ms": "50",
        # Spark asks the broker for the partition's bounds after each poll: few and large ones.
        "kafka.max.poll.records": "10000",
        "kafka.max.partition.fetch.bytes": str(8 * 1024 * 1024),
        **{f"kafka.{name}": value for name, value in settings.spark_kafka_properties.items()},
    }
    return session.readStream.format("kafka").options(**options).load()
