"""The sources of the query: the config topic, and heartbeats together with the event topics.

Spark shares a batch's limit out among the topics of a source by what waits in them, so a condition
would wait behind the events that it is to correlate: the config topic is a source of its own.
Heartbeats are read with the events, lest they run ahead of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
from py4j.protocol import Py4JJavaError
from pyspark.sql import functions

from spark_jobs.errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.settings import Settings

# No name of a topic has it.
_BETWEEN = "/"
_BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
_DESERIALIZERS = {"key.deserializer": _BYTES, "value.deserializer": _BYTES}


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


def check_source(session: SparkSession, settings: Settings) -> None:
    """Check the Kafka properties of the settings with the client that the source will use.

    Parameters
    ----------
    session : SparkSession
        With Spark's Kafka connector.
    settings : Settings
        Of the job.

    Raises
    ------
    SettingError
        The client does not take them.
    """
    given = settings.spark_kafka_properties
    if not given:
        return
    properties = {**_DESERIALIZERS, "bootstrap.servers": settings.bootstrap, **given}
    # Spark's Python API has no Kafka client; this is the way to Java's.
    jvm: Any = session._jvm  # noqa: SLF001 - see above
    try:
        jvm.org.apache.kafka.clients.consumer.KafkaConsumer(properties).close()
    except Py4JJavaError as error:
        raise SettingError(
            f"COINCIDE_SPARK_KAFKA_PROPERTIES: {_innermost(error.java_exception)}; "
            "correct the property, or remove it"
        ) from error


def _innermost(exception: Any) -> str:  # noqa: ANN401 - an object of the JVM
    """Return the kind and the message of the first cause: some messages are only a file's name."""
    while (cause := exception.getCause()) is not None:
        exception = cause
    return f"{exception.getClass().getSimpleName()}: {exception.getMessage()}"


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
        # `spark_jobs.driver.heartbeats`.
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
