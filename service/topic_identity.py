"""Detection of a topic that was deleted and created again under the same name."""

from __future__ import annotations

from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException, TopicCollection

from kafka_client.topic_ids import read_topic_id
from service.errors import LogStoppedError

if TYPE_CHECKING:
    from kafka_client.clients import UserAdmin


class TopicIdentity:
    """Stores the first topic id that the broker returns, and compares later ids with it.

    Parameters
    ----------
    topic : str
        Name of the topic.
    """

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._id: str | None = None

    def check(self, admin: UserAdmin, timeout_seconds: float) -> None:
        """Check that the topic id has not changed, if the broker answers.

        Parameters
        ----------
        admin : UserAdmin
            Client that sends the request.
        timeout_seconds : float
            Max wait for an answer; without an answer the check passes.

        Raises
        ------
        LogStoppedError
            When the topic id has changed.
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
                f"{self._topic} was deleted and created again: its id was {self._id} and is now "
                f"{found}; restart the service, so that it reads the new topic"
            )
