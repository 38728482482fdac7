"""Consumers of committed records with assigned partitions and without committed offsets."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from kafka_client.clients import UserConsumer
from kafka_client.partition_offsets import timed_out
from kafka_client.rights import with_right

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from confluent_kafka import Message

    from kafka_client.partition_offsets import OffsetRange, Place
    from kafka_client.settings import Properties

END_OF_PARTITION = KafkaError._PARTITION_EOF  # noqa: SLF001 - librdkafka's own codes carry the underscore
_POLL_SECONDS = 0.1


def open_consumer(properties: Properties, name: str, **options: str | int) -> UserConsumer:
    """Open a consumer without assigned partitions.

    Parameters
    ----------
    properties : dict
        librdkafka properties: addresses, security.
    name : str
        Group id, which librdkafka requires. The consumer does not join the group.
    **options
        Further librdkafka properties, with underscores instead of dots.

    Raises
    ------
    KafkaException
        librdkafka rejects the properties.
    """
    return UserConsumer(
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


def is_record(message: Message, user: str | None) -> bool:
    """Return whether a message is a record (True) or the end of a partition (False).

    Parameters
    ----------
    message : Message
        Message of a consumer.
    user : str or None
        User of the consumer.

    Raises
    ------
    KafkaException
        The message is an error.
    """
    error = message.error()
    if error is not None and error.code() != END_OF_PARTITION:
        raise KafkaException(reading_error(message, error, user))
    return error is None


def reading_error(message: Message, error: KafkaError, user: str | None) -> KafkaError:
    """Return the error of a message; a missing right is named."""
    # librdkafka also asks for the coordinator of a group that has no members.
    if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
        return with_right(error, "Describe", None, user)
    return with_right(error, "Read", message.topic(), user)


def read_ranges(
    consumer: UserConsumer, ranges: Mapping[Place, OffsetRange], deadline: float = math.inf
) -> Iterator[Message]:
    """Yield the records of ranges of offsets, in order within each partition.

    Reading of a range also stops at the end of its partition: the last offsets may be transaction
    markers, or records of open transactions. The partitions are unassigned at the end.

    Parameters
    ----------
    consumer : UserConsumer
        Consumer from `open_consumer`; no other thread may poll it meanwhile.
    ranges : mapping of (topic, partition) to OffsetRange
        Ranges to read.
    deadline : float
        Time of `time.monotonic` after which an error is raised.

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
                late = timed_out(place, f"was not read up to offset {end} in time")
                consumer.take_error(late)
                raise late
            message = consumer.poll(_POLL_SECONDS)
            if message is None:
                continue
            found = is_record(message, consumer.user)
            place, offset = place_of(message), message.offset() or 0
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
