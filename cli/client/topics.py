"""Topics as the commands meet them: one that is missing, one that is not the user's to write."""

from __future__ import annotations

import difflib
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Protocol, TypeVar

from confluent_kafka import KafkaException

from cli.errors import BrokerError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from confluent_kafka import Consumer

    from cli.settings import Settings
    from kafka_client.partition_offsets import Place
    from kafka_client.settings import Properties

METADATA_SECONDS = 10


class _Closable(Protocol):
    def close(self) -> None:
        """End the connection."""


_Client = TypeVar("_Client", bound=_Closable)


@contextmanager
def connected(
    settings: Settings, open_client: Callable[[Properties, str], _Client]
) -> Iterator[_Client]:
    """Connect a client to the broker of the settings.

    Parameters
    ----------
    settings
        Where the broker is.
    open_client
        Takes the properties of the client and its name.

    Raises
    ------
    BrokerError
        The broker does not answer, also to what it is asked while this is open.
    UsageError
        The Kafka properties of the settings are not what the client takes.
    """
    try:
        client = open_client(settings.client, "coincide-cli")
    except KafkaException as error:
        raise UsageError(f"COINCIDE_KAFKA_PROPERTIES: {error.args[0].str()}") from error
    with closing(client):
        try:
            yield client
        except KafkaException as error:
            # The client's own errors are negative; the others are a broker's.
            problem = "no broker answers" if error.args[0].code() < 0 else "the broker refuses"
            raise BrokerError(f"{problem} at {settings.bootstrap}: {error}") from error


def partitions_of(consumer: Consumer, settings: Settings, topic: str) -> list[Place]:
    """Return the partitions of a topic.

    Raises
    ------
    BrokerError
        There is no such topic; the message says what there is, or how it is made.
    KafkaException
        The broker does not answer.
    """
    found = consumer.list_topics(topic, timeout=METADATA_SECONDS).topics[topic]
    if found.error is None:
        return [(topic, number) for number in sorted(found.partitions)]
    there = [name for name in consumer.list_topics(timeout=METADATA_SECONDS).topics if name]
    raise BrokerError(
        f"there is no topic {topic} at {settings.bootstrap}; {_remedy(settings, topic, there)}"
    )


def refuse_own(settings: Settings, topic: str) -> None:
    """Raise UsageError when a topic is one of the installation's own, not one of events."""
    if topic in settings.topics.all():
        raise UsageError(
            f"{topic} is a topic of Coincide's own, where events do harm; name a topic of events"
        )


def _remedy(settings: Settings, topic: str, there: list[str]) -> str:
    """Return what to do about a topic that is missing."""
    if topic in settings.topics.all():
        return "the service makes it when it starts (with the same COINCIDE_PREFIX)"
    similar = difflib.get_close_matches(topic, there)
    made = "registering a stream makes its topic (coincide apply)"
    return f"similar ones: {', '.join(similar)}" if similar else made
