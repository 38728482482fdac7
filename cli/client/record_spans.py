"""Offset ranges of the records of partitions, without transaction markers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.errors import BrokerError
from kafka_client.partition_offsets import OffsetRange

if TYPE_CHECKING:
    from collections.abc import Collection

    from kafka_client.partition_offsets import Place
    from kafka_client.topic_offsets import KafkaOffsets


def record_spans(offsets: KafkaOffsets, places: Collection[Place]) -> dict[Place, OffsetRange]:
    """Return the offset range from the oldest to the last record of each partition.

    Records of open transactions, and the records after them, are not included. The range of a
    partition without records is empty.

    Parameters
    ----------
    offsets
        Reads offsets from the broker.
    places
        Topic and number of each partition.

    Raises
    ------
    BrokerError
        The leader of a partition does not answer in time.
    KafkaException
        The broker does not answer.
    """
    begins = offsets.begins(places)
    ends = offsets.after_last_records(offsets.ends(places), begins)
    silent = sorted(set(places) - ends.keys())
    if silent:
        topic, number = silent[0]
        raise BrokerError(f"partition {number} of {topic} does not answer")
    return {place: OffsetRange(min(begins[place], ends[place]), ends[place]) for place in places}
