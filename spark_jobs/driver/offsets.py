"""What Kafka says of its topics and partitions: which, how many, from where, up to where."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from kafka_client.consumers import open_consumer, place_of, read_ranges
from kafka_client.partition_offsets import Edge, OffsetRange, Place, list_offsets
from kafka_client.topic_ids import read_topic_id

if TYPE_CHECKING:
    from spark_jobs.settings import Properties

_TIMEOUT_SECONDS = 10.0


class FoundTopic(NamedTuple):
    """A topic as a broker describes it.

    Parameters
    ----------
    partitions : int
        Number of its partitions.
    id : str or None
        Kafka's id of the topic: one that is created again under the same name has another.
    """

    partitions: int
    id: str | None = None


class KafkaOffsets:
    """Asks the broker; keeps nothing but the connection.

    Parameters
    ----------
    properties : mapping
        librdkafka properties.
    group : str
        Name for the client; nothing is committed for it.
    """

    def __init__(self, properties: Properties, group: str) -> None:
        self._admin = AdminClient(properties)
        # One record is wanted, not all that follow it.
        self._consumer = open_consumer(
            properties, group, fetch_wait_max_ms=50, queued_max_messages_kbytes=1024
        )

    def partitions(self) -> dict[str, int]:
        """Give the number of partitions of every topic.

        Raises
        ------
        KafkaException
            When no broker answers.
        """
        found = self._admin.list_topics(timeout=_TIMEOUT_SECONDS).topics
        return {name: len(topic.partitions) for name, topic in found.items() if not topic.error}

    def describe(self, topics: Collection[str]) -> dict[str, FoundTopic]:
        """Return the topics that there are; those that may not be seen are left out.

        Parameters
        ----------
        topics : collection of str
            Their names.

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
                # The client's own errors are negative; the others are a broker's, of this topic.
                if error.args[0].code() < 0:
                    raise
            else:
                found[name] = FoundTopic(len(topic.partitions), read_topic_id(topic.topic_id))
        return found

    def is_deleted(self, topic: str) -> bool:
        """Tell whether there is no such topic; one that may not be seen is there.

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
        """Give the end offsets, open transactions included; partitions that are gone are left out.

        Raises
        ------
        KafkaException
            When the broker does not answer.
        """
        return self._list(places, Edge.END)

    def begins(self, places: Iterable[Place]) -> dict[Place, int]:
        """Give the offsets of the oldest records, as `ends`."""
        return self._list(places, Edge.BEGIN)

    def _list(self, places: Iterable[Place], edge: Edge) -> dict[Place, int]:
        return list_offsets(self._admin, places, edge, _TIMEOUT_SECONDS, skip_unknown=True)

    def after_last_records(
        self, ends: Mapping[Place, int], begins: Mapping[Place, int]
    ) -> dict[Place, int]:
        """Give one more than the offset of the last record before each end.

        The end itself may stand behind marks of transactions, which no reader ever sees.

        Parameters
        ----------
        ends, begins : mapping of (topic, partition) to int
            Where each partition ends and begins.

        Returns
        -------
        dict
            0 where there is no record; partitions that did not answer in time are left out.
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
        """End the connection."""
        self._consumer.close()
