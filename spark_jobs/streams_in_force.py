"""The streams that a run of the query works with.

They are fixed while the query runs and stored beside its checkpoint: a batch that was begun is
completed with the streams with which it was begun, whatever is registered meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import orjson

from correlation.errors import UnknownRecordVersionError
from correlation.records import stream_from_document, stream_to_document
from correlation.streams import Stream
from correlation.topics import Topics, is_internal

_VERSION = 1


@dataclass(frozen=True, slots=True)
class StreamsInForce:
    """Streams, and how many partitions the topic of each has.

    Parameters
    ----------
    streams : mapping of name to Stream
        Those whose topic exists.
    partitions : mapping of name to int
        Number of Kafka partitions of its topic.
    """

    streams: Mapping[str, Stream]
    partitions: Mapping[str, int]

    @property
    def topics(self) -> dict[str, int]:
        """Number of partitions of each event topic."""
        return {
            stream.topic: self.partitions[name] for name, stream in sorted(self.streams.items())
        }

    def without(self, topics: Collection[str]) -> StreamsInForce:
        """Leave out the streams of some topics."""
        kept = {name: stream for name, stream in self.streams.items() if stream.topic not in topics}
        return StreamsInForce(kept, {name: self.partitions[name] for name in kept})

    def to_bytes(self) -> bytes:
        """Write them as they are stored."""
        return orjson.dumps(
            {
                "v": _VERSION,
                "streams": {
                    name: [stream_to_document(stream), self.partitions[name]]
                    for name, stream in self.streams.items()
                },
            }
        )

    @classmethod
    def from_bytes(cls, stored: bytes) -> StreamsInForce:
        """Read what `to_bytes` wrote.

        Raises
        ------
        UnknownRecordVersionError
            When another version wrote it.
        """
        document = orjson.loads(stored)
        if document["v"] != _VERSION:
            raise UnknownRecordVersionError(f"streams in force of version {document['v']}")
        found = document["streams"].items()
        return cls(
            {name: stream_from_document(name, entry[0]) for name, entry in found},
            {name: entry[1] for name, entry in found},
        )


def streams_in_force(
    registered: Mapping[str, Stream], topic_partitions: Mapping[str, int], topics: Topics
) -> StreamsInForce:
    """Give the streams that can be read now.

    Parameters
    ----------
    registered : mapping of name to Stream
        All streams.
    topic_partitions : mapping of topic to int
        Number of partitions of the topics that exist.
    topics : Topics
        Of the installation: none of them is an event topic, nor is one of Kafka's own.
    """
    own = set(topics.all())
    readable = {
        name: stream
        for name, stream in sorted(registered.items())
        if topic_partitions.get(stream.topic, 0)
        and stream.topic not in own
        and not is_internal(stream.topic)
    }
    return StreamsInForce(
        readable, {name: topic_partitions[stream.topic] for name, stream in readable.items()}
    )
