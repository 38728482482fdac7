"""The mark of the written batches: a committed offset of a separate consumer group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_jobs.sink.committed import CommittedOffset

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

    from spark_jobs.settings import Properties


class Marker:
    """The marker partition, for which a partition of the sink commits its batches.

    It is partition 0 of a topic. Offsets are committed for it; the sink writes no records to it.

    Parameters
    ----------
    topic : str
        Name of the topic.
    group : str
        Consumer group that commits, one per checkpoint and partition of the sink. It has no
        members.
    properties : mapping
        librdkafka properties.
    decided : bool
        As of `CommittedOffset`.
    """

    def __init__(
        self, topic: str, group: str, properties: Properties, *, decided: bool = True
    ) -> None:
        self._offset = CommittedOffset(topic, group, properties, decided=decided)

    @property
    def topic(self) -> str:
        """Topic of the marker partition."""
        return self._offset.topic

    @property
    def name(self) -> str:
        """Name of the group."""
        return self._offset.name

    @property
    def group(self) -> object:
        """Metadata of the group, for commits in a transaction."""
        return self._offset.group

    def of(self, batch: int) -> TopicPartition:
        """Return the mark of a written batch."""
        return self._offset.at(batch + 1)

    def next_batch(self) -> int:
        """Read the first batch that is not written yet.

        Raises
        ------
        KafkaException
            When Kafka does not answer in time, or the right to the group is missing.
        """
        found = self._offset.read()
        return 0 if found is None else int(found.offset)

    def close(self) -> None:
        """Close the connection."""
        self._offset.close()
