"""Consumers of committed records that assign their partitions and commit nothing."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from kafka_client.partition_offsets import timed_out

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from confluent_kafka import Message

    from kafka_client.partition_offsets import OffsetRange, Place
    from kafka_client.settings import Properties

END_OF_PARTITION = KafkaError._PARTITION_EOF  # noqa: SLF001 - librdkafka's own codes carry the underscore
_POLL_SECONDS = 0.1


def open_consumer(properties: Properties, name: str, **options: str | int) -> Consumer:
    """Open a consumer that has no partitions yet.

    Parameters
    ----------
    properties : dict
        Of a librdkafka client: addresses, security.
    name : str
        Its group id, which librdkafka requires. Nobody joins the group.
    **options
        Further librdkafka properties, with underscores in place of dots.

    Raises
    ------
    KafkaException
        librdkafka refuses the properties.
    """
    return Consumer(
        {
            "log_level": 2,
            **properties,
            "group.id": name,
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            **{option.replace("_", "."): value for option, value in options.items()},
        }
    )


def is_record(message: Message) -> bool:
    """Return whether a message is a record; the alternative is the end of a partition.

    Raises
    ------
    KafkaException
        The message is an error.
    """
    error = message.error()
    if error is not None and error.code() != END_OF_PARTITION:
        raise KafkaException(error)
    return error is None


def read_ranges(
    consumer: Consumer, ranges: Mapping[Place, OffsetRange], deadline: float = math.inf
) -> Iterator[Message]:
    """Yield the records of some ranges of offsets, those of a partition in order.

    A range ends earlier where its partition ends: behind the last record there may be markers of
    transactions, and records of open ones. The partitions are assigned for as long as this runs.

    Parameters
    ----------
    consumer : Consumer
        As `open_consumer` returns it; nobody else polls it meanwhile.
    ranges : mapping of (topic, partition) to OffsetRange
        What is read.
    deadline : float
        Time of `time.monotonic` at which reading ends with an error.

    Raises
    ------
    KafkaException
        A partition cannot be read, or was not read before the deadline (`is_timeout`).
    """
    waiting = {place: found.end for place, found in ranges.items() if found.begin < found.end}
    consumer.assign([TopicPartition(*place, ranges[place].begin) for place in waiting])
    try:
        while waiting:
            if time.monotonic() > deadline:
                place, end = next(iter(waiting.items()))
                raise timed_out(place, f"was not read up to offset {end} in time")
            message = consumer.poll(_POLL_SECONDS)
            if message is None:
                continue
            found, place, offset = is_record(message), place_of(message), message.offset() or 0
            end = waiting.get(place, 0)
            if found and offset < end:
                yield message
            if not found or offset + 1 >= end:
                waiting.pop(place, None)
    finally:
        consumer.unassign()


def place_of(message: Message) -> Place:
    """Return the topic and the partition of a message."""
    return message.topic() or "", message.partition() or 0
