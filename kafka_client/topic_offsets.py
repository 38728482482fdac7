"""Queries of Kafka's topics and partitions: names, ids, counts, begin and end offsets."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicCollection

from kafka_client.clients import UserAdmin
from kafka_client.consumers import open_consumer, place_of, read_ranges
from kafka_client.partition_offsets import Edge, OffsetRange, Place, list_offsets
from kafka_client.topic_ids import read_topic_id

if TYPE_CHECKING:
    from kafka_client.settings import Properties

_TIMEOUT_SECONDS = 10.0


class FoundTopic(NamedTuple):
    """A topic as a broker describes it.

    Parameters
    ----------
    partitions : int
        Number of its partitions.
    id : str or None
        Kafka's id of the topic; a recreated topic has another id.
    """

    partitions: int
    id: str | None = None


class KafkaOffsets:
    """Queries the broker; keeps no state except the connections.

    Parameters
    ----------
    properties : mapping
        librdkafka properties.
    group : str
        Consumer group of the client; it never commits offsets.
    """

    def __init__(self, properties: Properties, group: str) -> None:
        self._admin = UserAdmin(properties)
        self._consumer = open_consumer(
            properties,
            group,
            # Only one record is read, so prefetching is kept small.
            fetch_wait_max_ms=50,
            queued_max_messages_kbytes=1024,
            # A client keeps its statistics until it is polled: perhaps for days.
            statistics_interval_ms=0,
        )

    def partitions(self) -> dict[str, int]:
        """Return the number of partitions of every topic.

        Raises
        ------
        KafkaException
            When no broker answers.
        """
        found = self._admin.list_topics(timeout=_TIMEOUT_SECONDS).topics
        return {name: len(topic.partitions) for name, topic in found.items() if not topic.error}

    def describe(self, topics: Collection[str]) -> dict[str, FoundTopic]:
        """Return the existing topics; topics without describe rights are left out.

        Parameters
        ----------
        topics : collection of str
            Names of the topics.

        Raises
        ------
        KafkaException
            When no broker answers.
        """
        if not topics:
            return {}
        described = self._admin.describe_topics(
            TopicCollection(list(topics)), request_timeout=_TIMEOUT_SECONDS
        )
        found = {}
        for name, future in described.items():
            try:
                topic = future.result()
            except KafkaException as error:
                # Errors of the client are negative; other errors are the broker's, for this topic.
                if error.args[0].code() < 0:
                    raise
            else:
                found[name] = FoundTopic(len(topic.partitions), read_topic_id(topic.topic_id))
        return found

    def is_deleted(self, topic: str) -> bool:
        """Return whether a topic was deleted; a topic without describe rights exists.

        Raises
        ------
        KafkaException
            When no broker answers.
        """
        described = self._admin.describe_topics(
            TopicCollection([topic]), request_timeout=_TIMEOUT_SECONDS
        )
        try:
            described[topic].result()
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return True
            if error.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise
        return False

    def ends(self, places: Iterable[Place]) -> dict[Place, int]:
        """Return the end offsets, open transactions included; deleted partitions are left out.

        Raises
        ------
        KafkaException
            When the broker does not answer.
        """
        return self._list(places, Edge.END)

    def committed_ends(self, places: Iterable[Place]) -> dict[Place, int]:
        """Return the end offsets of what the query can read, with the rules of `ends`."""
        return self._list(places, Edge.COMMITTED_END)

    def begins(self, places: Iterable[Place]) -> dict[Place, int]:
        """Return the offsets of the oldest records, with the rules of `ends`."""
        return self._list(places, Edge.BEGIN)

    def _list(self, places: Iterable[Place], edge: Edge) -> dict[Place, int]:
        return list_offsets(self._admin, places, edge, _TIMEOUT_SECONDS, skip_unknown=True)

    def after_last_records(
        self, ends: Mapping[Place, int], begins: Mapping[Place, int]
    ) -> dict[Place, int]:
        """Return the offset of the last record before each end, plus 1.

        The end itself may follow transaction markers, which consumers never receive.

        Parameters
        ----------
        ends, begins : mapping of (topic, partition) to int
            End and begin offset of each partition.

        Returns
        -------
        dict
            0 for a partition without records; partitions that time out are left out.
        """
        found: dict[Place, int] = {}
        step = 1
        waiting = {}
        for place, end in ends.items():
            if begins.get(place, 0) < end:
                waiting[place] = end
            else:
                found[place] = 0
        while waiting:
            ranges = {
                place: OffsetRange(max(end - step, begins.get(place, 0)), end)
                for place, end in waiting.items()
            }
            deadline = time.monotonic() + _TIMEOUT_SECONDS
            last: dict[Place, int] = {}
            try:
                for message in read_ranges(self._consumer, ranges, deadline):
                    last[place_of(message)] = (message.offset() or 0) + 1
            except KafkaException:
                break
            for place, there in ranges.items():
                if place in last or there.begin == begins.get(place, 0):
                    found[place] = last.get(place, 0)
                    del waiting[place]
            step *= 16
        return found

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()
