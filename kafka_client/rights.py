"""Errors of missing rights: the user, the operation and the resource, which Kafka does not name."""

from __future__ import annotations

from confluent_kafka import KafkaError

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


def no_right(user: str | None, operation: str) -> str:
    """Return the sentence that a user does not have the right to an operation."""
    named = f"the Kafka user {user}" if user else "the Kafka user of this process"
    return f"{named} does not have the right {operation}"


def with_right(error: KafkaError, operation: str, name: str | None, user: str | None) -> KafkaError:
    """Return the error of a missing right with a message that names it; others unchanged.

    Parameters
    ----------
    error : KafkaError
        Error of a client.
    operation : str
        Operation that Kafka refused, in the words of kafka-acls.sh.
    name : str or None
        Name of the resource; None if the caller does not know it.
    user : str or None
        User of the client; None if its properties do not name it.
    """
    resource = _RESOURCES.get(error.code())
    if resource is None:
        return error
    shown = resource if name is None else f"{resource} {name}"
    return KafkaError(
        error.code(),
        f"{shown}: {no_right(user, operation)}; grant it "
        '("Rights in Kafka" in docs/configuration.md)',
    )
