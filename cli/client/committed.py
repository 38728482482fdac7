"""Read a topic from its beginning to its end, committed records only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.client.topics import METADATA_SECONDS, connected, partitions_of
from kafka_client.consumers import open_consumer, read_ranges
from kafka_client.partition_offsets import list_ranges

if TYPE_CHECKING:
    from collections.abc import Iterator

    from confluent_kafka import Message

    from cli.settings import Settings


def read_committed(settings: Settings, topic: str) -> Iterator[Message]:
    """Give the records of a topic, those of a partition in their order.

    Parameters
    ----------
    settings
        Where the broker is.
    topic
        Its name. What is written while it is read may be missing.

    Raises
    ------
    BrokerError
        The broker does not answer, or has no such topic.
    """
    with connected(settings, open_consumer) as consumer:
        places = partitions_of(consumer, settings, topic)
        yield from read_ranges(consumer, list_ranges(consumer, places, METADATA_SECONDS))
