"""Read the state topic: the newest committed value of each key."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

from kafka_client.clients import UserAdmin
from kafka_client.consumers import open_consumer, read_ranges
from kafka_client.partition_offsets import Edge, list_offsets, list_ranges, timed_out

if TYPE_CHECKING:
    from spark_jobs.settings import Properties

_ANSWER_SECONDS = 30.0
# The topic is compacted, but its newest segments may have many records of each slot.
_READ_SECONDS = 600.0
_PAUSE_SECONDS = 0.2


def read_state(
    properties: Properties, topic: str, timeout_seconds: float = _READ_SECONDS
) -> dict[bytes, bytes]:
    """Return the newest committed value of each key of the state topic.

    Records after the begin of an open transaction are not read.

    Parameters
    ----------
    properties : mapping
        librdkafka properties.
    topic : str
        Name of the topic.
    timeout_seconds : float
        Max time to read it.

    Raises
    ------
    KafkaException
        When the topic cannot be read.
    """
    found: dict[bytes, bytes] = {}
    place = (topic, 0)
    with closing(open_consumer(properties, f"{topic}.reader")) as consumer:
        ranges = list_ranges(consumer, [place], _ANSWER_SECONDS)
        for message in read_ranges(consumer, ranges, time.monotonic() + timeout_seconds):
            key, value = message.key() or b"", message.value()
            if value is None:
                found.pop(key, None)
            else:
                found[key] = value
    return found


def read_decided_state(
    properties: Properties,
    topic: str,
    patience_seconds: float,
    timeout_seconds: float = _READ_SECONDS,
) -> dict[bytes, bytes]:
    """Return the newest committed value of each key, once all present transactions have ended.

    Parameters
    ----------
    properties, topic
        See `read_state`.
    patience_seconds : float
        Max time for transactions to end.
    timeout_seconds : float
        See `read_state`.

    Raises
    ------
    KafkaException
        When a transaction does not end in time, or the topic cannot be read.
    """
    admin, place = UserAdmin({"log_level": 2, **properties}), (topic, 0)

    def offset(edge: Edge) -> int:
        return list_offsets(admin, [place], edge, _ANSWER_SECONDS)[place]

    end, deadline = offset(Edge.END), time.monotonic() + patience_seconds
    while offset(Edge.COMMITTED_END) < end:
        if time.monotonic() > deadline:
            raise timed_out(place, f"a transaction before offset {end} has not ended")
        time.sleep(_PAUSE_SECONDS)
    return read_state(properties, topic, timeout_seconds)
