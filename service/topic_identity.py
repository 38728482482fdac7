"""Whether a topic is still the one that was read, not one created again under the same name."""

from __future__ import annotations

from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException, TopicCollection

from kafka_client.topic_ids import read_topic_id
from service.errors import LogStoppedError

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient


class TopicIdentity:
    """Remembers Kafka's id of a topic, the first that a broker names.

    Parameters
    ----------
    topic : str
        Name of the topic.
    """

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._id: str | None = None

    def check(self, admin: AdminClient, timeout_seconds: float) -> None:
        """Check that the topic is the same as ever, if the broker answers.

        Parameters
        ----------
        admin : AdminClient
            Asks the broker.
        timeout_seconds : float
            Longest wait for an answer; without one nothing is known, and nothing is wrong.

        Raises
        ------
        LogStoppedError
            When it is another topic by now.
        """
        described = admin.describe_topics(
            TopicCollection([self._topic]), request_timeout=timeout_seconds
        )
        try:
            known = described[self._topic].result(timeout_seconds).topic_id
        except (KafkaException, FutureTimeoutError):
            return
        found = read_topic_id(known)
        if found is None:
            return
        if self._id is None:
            self._id = found
        elif self._id != found:
            raise LogStoppedError(
                f"{self._topic} was deleted and created again: it had id {self._id}, now it has "
                f"id {found}. What the service has read of it no longer holds; start the service "
                "again: it reads the new topic"
            )
