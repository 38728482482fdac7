"""Clients that know the Kafka user of their connection, for errors of missing rights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient

from kafka_client.rights import is_missing_right, with_right
from kafka_client.settings import user_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from kafka_client.settings import Properties


class UserConsumer(Consumer):
    """Consumer of a user; see `kafka_client.consumers.open_consumer`.

    Parameters
    ----------
    properties : dict
        librdkafka properties.

    Attributes
    ----------
    user : str or None
        As `user_of` returns it.
    """

    def __init__(self, properties: Properties) -> None:
        super().__init__(properties)
        self.user = user_of(properties)


class UserAdmin(AdminClient):
    """Admin client of a user; parameters and attributes as of `UserConsumer`."""

    def __init__(self, properties: Properties) -> None:
        super().__init__(properties)
        self.user = user_of(properties)


def find_unwritable(
    client: UserAdmin, topics: Collection[str], timeout_seconds: float
) -> list[KafkaError]:
    """Return an error for each topic to which the user of a client does not have the right Write.

    Kafka does not name the topic if it refuses to add a partition to a transaction. Topics that the
    broker does not describe, because it does not answer or they do not exist, are left out.

    Parameters
    ----------
    client : UserAdmin
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
            found.append(with_right(refused, "Write", topic, client.user))
    return found


def find_indescribable(
    client: UserAdmin | UserConsumer, topics: Collection[str], timeout_seconds: float
) -> KafkaError | None:
    """Return the error of the first topic that the user of a client may not describe, or None.

    librdkafka reports other errors for the partitions of such a topic. None also means that the
    broker does not answer an admin client in time: the caller has an error of its own.

    Raises
    ------
    KafkaException
        The broker does not answer a consumer in time.
    """
    for topic in sorted(topics):
        if isinstance(client, UserConsumer):
            error = client.list_topics(topic, timeout=timeout_seconds).topics[topic].error
        else:
            asked = TopicCollection([topic])
            described = client.describe_topics(asked, request_timeout=timeout_seconds)[topic]
            try:
                raised = described.exception(timeout_seconds)
            except TimeoutError:
                return None
            error = raised.args[0] if isinstance(raised, KafkaException) else None
        if error is not None and is_missing_right(error):
            return with_right(error, "Describe", topic, client.user)
    return None
