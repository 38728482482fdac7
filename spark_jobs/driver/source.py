"""The sources of the query: the config topic, and heartbeats together with the event topics.

Spark divides the limit of a batch among the topics of a source by their lag, so a condition would
wait behind the events that it correlates. The config topic is therefore a separate source.
Heartbeats are read in the same source as the events, so that they do not overtake events.

Spark determines the end offsets of a batch source by source, in the order of the union. The config
topic is the last one: a batch therefore has all conditions that were registered before its newest
event was sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
from py4j.protocol import Py4JJavaError
from pyspark.sql import functions

from spark_jobs.errors import SettingError
from spark_jobs.worker.positions import position_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from spark_jobs.driver.replanning import BatchLimit
    from spark_jobs.settings import Settings
    from spark_jobs.worker.positions import Positions

# Spark's number for the offset of the oldest record.
_EARLIEST = -2
# Topic names cannot contain this character.
_BETWEEN = "/"
# Max records that a Kafka consumer holds in memory while buffered events are read again.
_RANGE_POLL_RECORDS = 1_000
_BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
_DESERIALIZERS = {"key.deserializer": _BYTES, "value.deserializer": _BYTES}


def read_kafka(
    session: SparkSession,
    settings: Settings,
    partitions: Mapping[str, int],
    limit: BatchLimit,
    starts: Positions | None = None,
) -> DataFrame:
    """Read all topics from the offsets of the checkpoint, or without one from their beginning.

    Parameters
    ----------
    session : SparkSession
        Session with Spark's Kafka connector.
    settings : Settings
        Settings of the job.
    partitions : mapping of topic to int
        Number of partitions of each event topic.
    limit : BatchLimit
        Limits of a batch.
    starts : Positions or None
        Offsets at which a query without offsets in its checkpoint begins, instead of the beginning.
    """
    topics = settings.topics
    config = _read(session, settings, {topics.config: 1}, limit.poll_records, {}, starts)
    most = {"maxOffsetsPerTrigger": str(limit.records)}
    both = {topics.heartbeats: 1, **partitions}
    events = _read(session, settings, both, limit.poll_records, most, starts)
    return _before(events, settings.until_offsets).union(config)


def check_source(session: SparkSession, settings: Settings) -> None:
    """Check the Kafka properties of the settings with the client that the source uses.

    Parameters
    ----------
    session : SparkSession
        Session with Spark's Kafka connector.
    settings : Settings
        Settings of the job.

    Raises
    ------
    SettingError
        When the client rejects the properties.
    """
    given = settings.source_properties
    if not given:
        return
    properties = {**_DESERIALIZERS, "bootstrap.servers": settings.bootstrap, **given}
    # Spark's Python API has no Kafka client; Java's client is reached through the JVM.
    jvm: Any = session._jvm  # noqa: SLF001 - see above
    try:
        jvm.org.apache.kafka.clients.consumer.KafkaConsumer(properties).close()
    except Py4JJavaError as error:
        raise SettingError(
            f"{_variable(settings)}: {_innermost(error.java_exception)}; "
            "correct the property, or remove it"
        ) from error


def _variable(settings: Settings) -> str:
    """Return the variables from which the properties of the source come."""
    given = settings.spark_kafka_properties
    if settings.source_properties == given:
        return "COINCIDE_SPARK_KAFKA_PROPERTIES"
    translated = "COINCIDE_KAFKA_PROPERTIES, translated for the Java client"
    return f"{translated}, and COINCIDE_SPARK_KAFKA_PROPERTIES" if given else translated


def _innermost(exception: Any) -> str:  # noqa: ANN401 - an object of the JVM
    """Return class and message of the root cause; the message alone may be only a file name."""
    while (cause := exception.getCause()) is not None:
        exception = cause
    return f"{exception.getClass().getSimpleName()}: {exception.getMessage()}"


def _before(records: DataFrame, ends: Mapping[str, Mapping[int, int]]) -> DataFrame:
    """Drop the records at or after the end offset given for their partition."""
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


def read_ranges(
    session: SparkSession, settings: Settings, ranges: Mapping[str, Mapping[int, tuple[int, int]]]
) -> DataFrame:
    """Read ranges of the event topics once, without headers.

    Parameters
    ----------
    session, settings
        See `read_kafka`.
    ranges : mapping of topic to (mapping of partition to (int, int))
        First offset, and end offset, of each partition. The query fails if records are missing.
    """
    offsets = [
        orjson.dumps(
            {
                topic: {str(partition): it[edge] for partition, it in partitions.items()}
                for topic, partitions in ranges.items()
            }
        ).decode()
        for edge in (0, 1)
    ]
    assigned = {topic: list(partitions) for topic, partitions in ranges.items()}
    options = {
        **_common(settings, assigned, _RANGE_POLL_RECORDS),
        "startingOffsets": offsets[0],
        "endingOffsets": offsets[1],
        "failOnDataLoss": "true",
    }
    return session.read.format("kafka").options(**options).load()


def _read(
    session: SparkSession,
    settings: Settings,
    partitions: Mapping[str, int],
    poll_records: int,
    limit: Mapping[str, str],
    starts: Positions | None,
) -> DataFrame:
    # Partitions are assigned, not subscribed: an added partition is read only after every part of
    # the job knows it.
    assigned = {topic: list(range(count)) for topic, count in partitions.items()}
    options = {
        **_common(settings, assigned, poll_records),
        "startingOffsets": _starting_offsets(assigned, starts),
        "includeHeaders": "true",
        **limit,
        # Spark would also report a loss when a new topic has expired records, or when a stream is
        # deleted. Real losses are detected and reported by `spark_jobs.driver.losses`.
        "failOnDataLoss": "false",
    }
    return session.readStream.format("kafka").options(**options).load()


def _starting_offsets(assigned: Mapping[str, list[int]], starts: Positions | None) -> str:
    if starts is None:
        return "earliest"
    return orjson.dumps(
        {
            topic: {
                str(number): position_of(starts, topic, number) or _EARLIEST for number in numbers
            }
            for topic, numbers in assigned.items()
        }
    ).decode()


def _common(
    settings: Settings, assigned: Mapping[str, list[int]], poll_records: int
) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": settings.bootstrap,
        "assign": orjson.dumps(assigned).decode(),
        "kafka.isolation.level": "read_committed",
        # The source also polls partitions without new records, and later requests wait for that
        # poll: the wait is kept short.
        "kafka.fetch.max.wait.ms": "5",
        "kafka.max.poll.records": str(poll_records),
        "kafka.max.partition.fetch.bytes": str(8 * 1024 * 1024),
        **{f"kafka.{name}": value for name, value in settings.source_properties.items()},
    }
