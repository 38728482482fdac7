"""The sources of the query: the config topic, and heartbeats together with the event topics.

Spark shares a batch's limit out among the topics of a source by what waits in them, so a condition
would wait behind the events that it is to correlate: the config topic is a source of its own.
Heartbeats are read with the events, lest they run ahead of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
from pyspark.sql import functions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.settings import Settings

# No name of a topic has it.
_BETWEEN = "/"


def read_kafka(
    session: SparkSession, settings: Settings, partitions: Mapping[str, int]
) -> DataFrame:
    """Read all topics from their beginning, or from where the checkpoint stands.

    Parameters
    ----------
    session : SparkSession
        With Spark's Kafka connector.
    settings : Settings
        Of the job.
    partitions : mapping of topic to int
        Number of partitions of each event topic.
    """
    topics = settings.topics
    config = _read(session, settings, {topics.config: 1}, {})
    limit = {"maxOffsetsPerTrigger": str(settings.max_events_per_batch)}
    events = _read(session, settings, {topics.heartbeats: 1, **partitions}, limit)
    return config.union(_before(events, settings.until_offsets))


def _before(records: DataFrame, ends: Mapping[str, Mapping[int, int]]) -> DataFrame:
    """Leave out the records that stand at the end of their partition or behind it."""
    known = [
        functions.lit(found)
        for topic, partitions in ends.items()
        for partition, end in partitions.items()
        for found in (_place(topic, partition), end)
    ]
    if not known:
        return records
    place = functions.concat_ws(_BETWEEN, "topic", "partition")
    end = functions.try_element_at(functions.create_map(*known), place)
    return records.where(end.isNull() | (functions.col("offset") < end))


def _place(topic: str, partition: int) -> str:
    return f"{topic}{_BETWEEN}{partition}"


def _read(
    session: SparkSession,
    settings: Settings,
    partitions: Mapping[str, int],
    limit: Mapping[str, str],
) -> DataFrame:
    # The partitions are assigned, not subscribed: one that is added to a topic is read from the
    # moment when every part of the job knows of it, and not before.
    assigned = {topic: list(range(count)) for topic, count in partitions.items()}
    options = {
        "kafka.bootstrap.servers": settings.bootstrap,
        "assign": orjson.dumps(assigned).decode(),
        "startingOffsets": "earliest",
        "includeHeaders": "true",
        **limit,
        # Spark would also call it a loss when a topic joins whose oldest records are expired, or
        # when a stream is deleted. What is really lost is found and said by
        # `spark_jobs.heartbeats`.
        "failOnDataLoss": "false",
        "kafka.isolation.level": "read_committed",
        # The source also asks when there is nothing, and what it asks next waits behind that: it is
        # not kept waiting for long.
        "kafka.fetch.max.wait.ms": "5",
        # Spark asks the broker for the partition's bounds after each poll: few and large ones.
        "kafka.max.poll.records": "10000",
        "kafka.max.partition.fetch.bytes": str(8 * 1024 * 1024),
        **{f"kafka.{name}": value for name, value in settings.spark_kafka_properties.items()},
    }
    return session.readStream.format("kafka").options(**options).load()
