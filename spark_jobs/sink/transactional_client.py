"""Open a Kafka producer with a transactional id, commit offsets, name the causes of errors."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from kafka_client.partition_offsets import is_timeout
from kafka_client.rights import is_missing_right, with_right
from spark_jobs.errors import ProducerFencedError, SparkJobError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# The client logs fencing to stderr, which is normal here: Spark assigns a partition to any worker.
# Errors that matter are raised.
_client_log = logging.getLogger(f"{__name__}.client")
_client_log.disabled = True

TIMEOUT_SECONDS = 60.0
# Time after its timeout within which a call of the client returns.
_RETURN_SECONDS = 1.0
# The client's broker id of a bootstrap address.
_BOOTSTRAP = -1
FENCED = frozenset(
    {
        KafkaError._FENCED,  # noqa: SLF001 - the client's public name
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
    }
)


class UnusableProducerError(SparkJobError):
    """The producer cannot continue; a new producer can."""


class SilentCoordinatorError(UnusableProducerError):
    """The offsets were not committed in time; a new producer may find the group's coordinator."""


def open_producer(transactional_id: str, topic: str, properties: Mapping[str, Any]) -> Producer:
    """Open a producer; it ends the open transaction of an earlier producer and fences it off.

    Parameters
    ----------
    transactional_id : str
        Transactional id of the producer.
    topic : str
        An existing topic, to find a broker.
    properties : mapping
        librdkafka properties and callbacks.

    Raises
    ------
    KafkaException
        When Kafka does not accept the producer.
    """
    producer = Producer({**properties, "transactional.id": transactional_id}, logger=_client_log)
    _connect(producer, topic)
    producer.init_transactions(TIMEOUT_SECONDS)
    return producer


def _connect(producer: Producer, topic: str) -> None:
    """Wait for a connection to a broker other than a bootstrap address.

    While the client knows only bootstrap addresses, or disconnects from one, it does not find its
    coordinator and retries only after half a second.
    """
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        if producer.list_topics(topic, TIMEOUT_SECONDS).orig_broker_id != _BOOTSTRAP:
            return


def send_offsets(
    producer: Producer,
    offsets: Sequence[TopicPartition],
    group: object,
    seconds: float = TIMEOUT_SECONDS,
) -> None:
    """Commit offsets in the open transaction; never wait longer than `seconds`.

    After a restart of the broker that coordinates the group, librdkafka waits for the broker's
    former connection, whatever the timeout (its issues 5456 and 5511). The call is therefore made
    in another thread. A call that does not return is left behind, with its producer; the next
    producer of the same transactional id aborts the transaction, and fences off the one that was
    left.

    Parameters
    ----------
    producer : Producer
        Producer with an open transaction.
    offsets : sequence of TopicPartition
        The offsets.
    group : object
        Metadata of the consumer group.
    seconds : float
        Max time.

    Raises
    ------
    SilentCoordinatorError
        When the offsets are not committed in time.
    KafkaException
        When Kafka does not accept the offsets.
    """
    errors: list[KafkaException] = []

    def send() -> None:
        try:
            producer.send_offsets_to_transaction(list(offsets), group, seconds)
        except KafkaException as error:
            errors.append(error)

    # A daemon: a call that never returns does not keep the worker from ending.
    sending = threading.Thread(target=send, name="send-offsets", daemon=True)
    sending.start()
    sending.join(seconds + _RETURN_SECONDS)
    if sending.is_alive() or any(map(is_timeout, errors)):
        raise SilentCoordinatorError(
            f"the transaction failed: its offsets were not committed in {seconds:g} s"
        )
    if errors:
        raise errors[0]


def as_own_error(
    error: KafkaException, transactional_id: str, group: str, user: str | None
) -> SparkJobError:
    """Return the error of this package for an error of a producer.

    Parameters
    ----------
    error : KafkaException
        Error of the client.
    transactional_id, group : str
        Transactional id of the producer, and the group that commits offsets.
    user : str or None
        User of the client.
    """
    cause = error.args[0]
    if is_missing_right(cause):
        in_group = cause.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
        # The client does not name the topic of a transaction.
        in_topic = cause.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
        name = None if in_topic else group if in_group else transactional_id
        named = with_right(cause, "Read" if in_group else "Write", name, user)
        return UnusableProducerError(f"the transaction failed: {named.str()}")
    if cause.fatal() or cause.code() in FENCED:
        return ProducerFencedError(str(error))
    return UnusableProducerError(f"the transaction failed: {error}")
