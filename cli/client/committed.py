"""Read the committed records of a topic from its beginning to its end."""

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
    """Yield the records of a topic, in order within each partition.

    Parameters
    ----------
    settings
        Broker address.
    topic
        Name of the topic. Records written during the read may be missing.

    Raises
    ------
    BrokerError
        The broker does not answer, or the topic does not exist.
    """
    with connected(settings, open_consumer) as consumer:
        places = partitions_of(consumer, settings, topic)
        yield from read_ranges(consumer, list_ranges(consumer, places, METADATA_SECONDS))
