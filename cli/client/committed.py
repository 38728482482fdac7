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

# After any offset: the end of the partition ends the read.
_NEVER = 2**62


def read_committed(settings: Settings, topic: str, *, follows: bool = False) -> Iterator[Message]:
    """Yield the records of a topic, in order within each partition.

    Parameters
    ----------
    settings
        Broker address.
    topic
        Name of the topic. Records written during the read may be missing.
    follows
        Whether records written during the read are read too, up to the end of each partition. Kafka
        may remove a record of a compacted topic as soon as a later one has its key.

    Raises
    ------
    BrokerError
        The broker does not answer, or the topic does not exist.
    """
    with connected(settings, open_consumer) as consumer:
        places = partitions_of(consumer, settings, topic)
        ranges = list_ranges(consumer, places, METADATA_SECONDS)
        if follows:
            ranges = {place: it._replace(end=_NEVER) for place, it in ranges.items()}
        yield from read_ranges(consumer, ranges)
