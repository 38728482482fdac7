"""Errors of missing rights, with the operation and the resource that Kafka does not name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation

if TYPE_CHECKING:
    from collections.abc import Collection

    from confluent_kafka.admin import AdminClient

# Resource of each error code, in the words of kafka-acls.sh.
_RESOURCES = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "group",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "transactional-id",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "cluster",
}


def is_missing_right(error: KafkaError) -> bool:
    """Return whether the user of a client does not have the right to an operation."""
    return error.code() in _RESOURCES


def with_right(error: KafkaError, operation: str, name: str | None) -> KafkaError:
    """Return the error of a missing right with a message that names it; others unchanged.

    Parameters
    ----------
    error : KafkaError
        Error of a client.
    operation : str
        Operation that Kafka refused, in the words of kafka-acls.sh.
    name : str or None
        Name of the resource; None if the caller does not know it.
    """
    resource = _RESOURCES.get(error.code())
    if resource is None:
        return error
    shown = resource if name is None else f"{resource} {name}"
    return KafkaError(
        error.code(),
        f"{shown}: the Kafka user of this process does not have the right {operation}; grant it "
        '("Rights in Kafka" in docs/configuration.md)',
    )


def right_exception(error: KafkaException, operation: str, name: str | None) -> KafkaException:
    """Return an exception whose error is that of `with_right`."""
    return KafkaException(with_right(error.args[0], operation, name))


def find_unwritable(
    client: AdminClient, topics: Collection[str], timeout_seconds: float
) -> list[KafkaError]:
    """Return an error for each topic to which the user of a client does not have the right Write.

    Kafka does not name the topic if it refuses to add a partition to a transaction. Topics that the
    broker does not describe, because it does not answer or they do not exist, are left out.

    Parameters
    ----------
    client : AdminClient
        Client that sends the request.
    topics : collection of str
        Names of the topics.
    timeout_seconds : float
        Maximum time to wait for the answer.
    """
    if not topics:
        return []
    described = client.describe_topics(
        TopicCollection(sorted(topics)),
        include_authorized_operations=True,
        request_timeout=timeout_seconds,
    )
    found = []
    for topic, future in described.items():
        refused = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
        try:
            allowed = future.result().authorized_operations
        except KafkaException as error:
            is_refused = is_missing_right(error.args[0])
        else:
            # A broker without an authorizer returns no operations.
            is_refused = bool(allowed) and AclOperation.WRITE not in allowed
        if is_refused:
            found.append(with_right(refused, "Write", topic))
    return found
