"""Read a topic from its beginning to its end, committed records only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from cli.client.topics import broker_error, open_consumer, partitions_of
from cli.errors import BrokerError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cli.settings import Settings

_MOST_RECORDS = 10_000
_POLL_SECONDS = 0.2


def read_committed(settings: Settings, topic: str) -> Iterator[Message]:
    """Give the records of a topic, those of a partition in their order.

    Parameters
    ----------
    settings
        Where the broker is.
    topic
        Its name. What is written while it is read may be missing.

    Raises
    ------
    BrokerError
        The broker does not answer, or has no such topic.
    """
    consumer = open_consumer(
        settings,
        {
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        },
    )
    try:
        going = set(partitions_of(consumer, settings, topic))
        consumer.assign([TopicPartition(topic, number, 0) for number in going])
        while going:
            for message in consumer.consume(_MOST_RECORDS, timeout=_POLL_SECONDS):
                if is_end(message):
                    going.discard(message.partition() or 0)
                else:
                    yield message
    except KafkaException as error:
        raise broker_error(settings, error) from error
    finally:
        consumer.close()


def is_end(message: Message) -> bool:
    """Tell whether a message says that its partition has no more records.

    Raises
    ------
    BrokerError
        It says that something is wrong.
    """
    error = message.error()
    if error is None:
        return False
    if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - the client's public name
        return True
    raise BrokerError(f"reading {message.topic()}: {error.str()}")
