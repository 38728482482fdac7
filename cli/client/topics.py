"""Connections to the broker, and errors for missing or forbidden topics."""

from __future__ import annotations

import difflib
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Protocol, TypeVar

from confluent_kafka import KafkaError, KafkaException

from cli.errors import BrokerError, UsageError
from cli.settings import options_to
from kafka_client.connection import explain_silence
from kafka_client.partition_offsets import TIMEOUTS
from kafka_client.rights import is_missing_right, with_right

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cli.settings import Settings
    from kafka_client.clients import UserConsumer
    from kafka_client.partition_offsets import Place
    from kafka_client.settings import Properties

METADATA_SECONDS = 10
# Errors that mean that no broker was reached, or that the broker did not answer in time.
_SILENCE = frozenset(
    {
        KafkaError._TRANSPORT,  # noqa: SLF001 - librdkafka's own codes carry the underscore
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001 - as above
        KafkaError._RESOLVE,  # noqa: SLF001 - as above
        *TIMEOUTS,
    }
)


class _Closable(Protocol):
    def close(self) -> None:
        """Close the connection."""


_Client = TypeVar("_Client", bound=_Closable)


@contextmanager
def connected(
    settings: Settings, open_client: Callable[[Properties, str], _Client]
) -> Iterator[_Client]:
    """Connect a client to the broker of the settings.

    The name of its consumer group begins with the prefix of the installation.

    Parameters
    ----------
    settings
        Broker address and Kafka properties.
    open_client
        Called with the properties of the client and its name.

    Raises
    ------
    BrokerError
        The broker does not answer, including a request inside the `with` block.
    UsageError
        The Kafka properties of the settings are not valid.
    """
    try:
        client = open_client(settings.client, f"{settings.prefix}.cli")
    except KafkaException as error:
        raise UsageError(f"COINCIDE_KAFKA_PROPERTIES: {error.args[0].str()}") from error
    with closing(client):
        try:
            yield client
        except KafkaException as error:
            raise broker_error(settings, error) from error


def broker_error(settings: Settings, error: KafkaException) -> BrokerError:
    """Return the error that a command shows for an error of the client.

    Parameters
    ----------
    settings
        Broker address.
    error
        Error of the client.
    """
    found = error.args[0]
    if not isinstance(found, KafkaError):
        return BrokerError(f"Kafka at {settings.bootstrap}: {error}")
    if found.code() not in _SILENCE:
        return BrokerError(f"Kafka at {settings.bootstrap}: {found.str()}")
    return no_broker(settings, found.str())


def no_broker(settings: Settings, problem: str = "") -> BrokerError:
    """Return the error that no broker answers, with its cause.

    Parameters
    ----------
    settings
        Broker address and Kafka properties.
    problem
        Cause that is named if the connection reports none.
    """
    cause = explain_silence(settings.client) or problem
    return BrokerError(
        f"no broker answers at {settings.bootstrap}{f' ({cause})' if cause else ''}; start it, or "
        "set its address with --bootstrap or COINCIDE_BOOTSTRAP"
    )


def partitions_of(consumer: UserConsumer, settings: Settings, topic: str) -> list[Place]:
    """Return the partitions of a topic.

    Raises
    ------
    BrokerError
        The topic does not exist; the message names similar topics, or how to create it.
    KafkaException
        The broker does not answer, or the user does not have the right to describe the topic.
    """
    found = consumer.list_topics(topic, timeout=METADATA_SECONDS).topics[topic]
    if found.error is None:
        return [(topic, number) for number in sorted(found.partitions)]
    if is_missing_right(found.error):
        raise KafkaException(with_right(found.error, "Describe", topic, consumer.user))
    there = [name for name in consumer.list_topics(timeout=METADATA_SECONDS).topics if name]
    raise BrokerError(
        f"topic {topic} does not exist at {settings.bootstrap}; {_remedy(settings, topic, there)}"
    )


def refuse_own(settings: Settings, topic: str) -> None:
    """Raise UsageError when a topic is one of the installation's own topics."""
    if topic in settings.topics.all():
        raise UsageError(f"{topic} is an internal topic of Coincide; use a topic of events")


def _remedy(settings: Settings, topic: str, there: list[str]) -> str:
    """Return the remedy for a missing topic."""
    if topic in settings.topics.all():
        return "start the service (with the same COINCIDE_PREFIX), which creates it"
    similar = difflib.get_close_matches(topic, there)
    created = f"register a stream to create its topic: coincide apply{options_to(settings, 'url')}"
    return f"did you mean {' or '.join(similar)}?" if similar else created
