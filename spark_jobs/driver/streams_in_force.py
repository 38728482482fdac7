"""The streams in force: the streams that a run of the query reads.

They are fixed while the query runs and stored beside its checkpoint. An unfinished batch is
completed with the streams of its own run, even if the registered streams have changed. A run that
prepares a change of the number of slots is marked here, too: the results of a batch that is
repeated must not depend on why it is repeated.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import orjson

from correlation.errors import UnknownRecordVersionError
from correlation.resources.records import stream_from_document, stream_to_document
from correlation.resources.streams import Stream
from correlation.resources.topics import Topics, is_internal
from kafka_client.partition_offsets import Place
from kafka_client.topic_offsets import FoundTopic

# Runs that are not marked keep the form that earlier versions of this software read.
_VERSION, _FLUSHING_VERSION = 2, 3
# Version 1 does not contain topic ids.
_READABLE_VERSIONS = (1, _VERSION, _FLUSHING_VERSION)


@dataclass(frozen=True, slots=True)
class StreamsInForce:
    """Streams with the partition count and the id of their topics.

    Parameters
    ----------
    streams : mapping of name to Stream
        Streams whose topics exist.
    partitions : mapping of name to int
        Number of Kafka partitions of the stream's topic.
    topic_ids : mapping of name to str
        Kafka's id of the stream's topic, if known.
    is_flushing : bool
        Whether each batch evaluates all of its events: none waits for its block.
    """

    streams: Mapping[str, Stream]
    partitions: Mapping[str, int]
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    is_flushing: bool = False

    @property
    def topics(self) -> dict[str, FoundTopic]:
        """The event topics by name."""
        return {
            stream.topic: FoundTopic(self.partitions[name], self.topic_ids.get(name))
            for name, stream in sorted(self.streams.items())
        }

    def recreated(self, found: Mapping[str, FoundTopic]) -> dict[str, tuple[str, str]]:
        """Return the former and the new id of each recreated topic.

        Parameters
        ----------
        found : mapping of topic to FoundTopic
            The topics that exist now.
        """
        ids = {
            name: (topic.id, found[name].id) for name, topic in self.topics.items() if name in found
        }
        return {
            name: (former, now)
            for name, (former, now) in ids.items()
            if former is not None and now is not None and former != now
        }

    @property
    def places(self) -> set[Place]:
        """The partitions of the event topics."""
        return {
            (name, number)
            for name, topic in self.topics.items()
            for number in range(topic.partitions)
        }

    def select(self, offsets: Mapping[Place, int]) -> dict[Place, int]:
        """Return the offsets of the partitions of the event topics."""
        places = self.places
        return {place: offset for place, offset in offsets.items() if place in places}

    def without(self, topics: Collection[str]) -> StreamsInForce:
        """Return a copy without the streams of the given topics."""
        kept = {name: stream for name, stream in self.streams.items() if stream.topic not in topics}
        return replace(
            self,
            streams=kept,
            partitions={name: self.partitions[name] for name in kept},
            topic_ids={name: known for name, known in self.topic_ids.items() if name in kept},
        )

    def to_bytes(self) -> bytes:
        """Write the stored form."""
        return orjson.dumps(
            {
                "v": _FLUSHING_VERSION if self.is_flushing else _VERSION,
                "streams": {
                    name: [
                        stream_to_document(stream),
                        self.partitions[name],
                        self.topic_ids.get(name),
                    ]
                    for name, stream in self.streams.items()
                },
            }
        )

    @classmethod
    def from_bytes(cls, stored: bytes) -> StreamsInForce:
        """Parse the stored form written by `to_bytes`.

        Raises
        ------
        UnknownRecordVersionError
            When the stored form has an unknown version.
        """
        document = orjson.loads(stored)
        if document["v"] not in _READABLE_VERSIONS:
            raise UnknownRecordVersionError(
                f"the file of streams has the unknown version {document['v']}"
            )
        found = document["streams"].items()
        return cls(
            {name: stream_from_document(name, entry[0]) for name, entry in found},
            {name: entry[1] for name, entry in found},
            {name: entry[2] for name, entry in found if entry[2:] not in ([], [None])},
            document["v"] == _FLUSHING_VERSION,
        )


def streams_in_force(
    registered: Mapping[str, Stream], found: Mapping[str, FoundTopic], topics: Topics
) -> StreamsInForce:
    """Return the streams that can be read now.

    Parameters
    ----------
    registered : mapping of name to Stream
        All registered streams.
    found : mapping of topic to FoundTopic
        The existing topics.
    topics : Topics
        Topics of the installation; they cannot be event topics, nor can Kafka's internal topics.
    """
    own = set(topics.all())
    readable = {
        name: stream
        for name, stream in sorted(registered.items())
        if stream.topic in found
        and found[stream.topic].partitions
        and stream.topic not in own
        and not is_internal(stream.topic)
    }
    topic_of = {name: found[stream.topic] for name, stream in readable.items()}
    return StreamsInForce(
        readable,
        {name: topic.partitions for name, topic in topic_of.items()},
        {name: topic.id for name, topic in topic_of.items() if topic.id is not None},
    )
