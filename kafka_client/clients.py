"""Clients that know the Kafka user of their connection, for errors of missing rights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AclOperation, AdminClient

from kafka_client.renewed import Renewed
from kafka_client.rights import is_missing_right, with_right
from kafka_client.settings import user_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from concurrent.futures import Future

    from confluent_kafka import Message
    from confluent_kafka.admin import (
        ClusterMetadata,
        ConfigEntry,
        ConfigResource,
        ListOffsetsResultInfo,
        NewTopic,
        OffsetSpec,
        TopicDescription,
    )

    from kafka_client.renewed import Loss
    from kafka_client.settings import Properties

_Asked = TypeVar("_Asked")
_Answer = TypeVar("_Answer")


class UserConsumer:
    """Consumer of a user, and its successors; see `kafka_client.consumers.open_consumer`.

    After it has lost its brokers, another client goes on at the same positions (`Renewed`).
    Parameters and results of the methods are those of `confluent_kafka.Consumer`.

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
        self.user = user_of(properties)
        self._renewed = Renewed(lambda loss: Consumer({**properties, **loss.properties()}))
        self._client = self._renewed.get()
        # Where this client begins to read each assigned partition.
        self._begins: dict[tuple[str, int], int] = {}

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Read these partitions, and no others, from their offsets on."""
        client = self._present()
        self._begins = {(it.topic, it.partition): it.offset for it in partitions}
        client.assign(list(partitions))

    def unassign(self) -> None:
        """Read no partition."""
        client = self._present()
        self._begins = {}
        client.unassign()

    def poll(self, timeout: float) -> Message | None:
        """Return the next message; None if none arrives in time."""
        return self._present().poll(timeout)

    def consume(self, num_messages: int, timeout: float) -> list[Message]:
        """Return the next messages."""
        return self._present().consume(num_messages, timeout)

    def position(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Return the next offset of each assigned partition."""
        return [self._reached(it) for it in self._present().position(list(partitions))]

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        """Return the metadata of a topic, or of all topics."""
        found: ClusterMetadata = self._present().list_topics(topic, timeout)
        return found

    def get_watermark_offsets(
        self, partition: TopicPartition, timeout: float = -1
    ) -> tuple[int, int]:
        """Return the begin and end offset of a partition."""
        return self._present().get_watermark_offsets(partition, timeout)

    def offsets_for_times(
        self, partitions: Sequence[TopicPartition], timeout: float = -1
    ) -> list[TopicPartition]:
        """Return the offset of each partition's first record from a time on."""
        return self._present().offsets_for_times(list(partitions), timeout)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _present(self) -> Consumer:
        client = self._renewed.get()
        if client is not self._client:
            former, self._client = self._client, client
            places = [TopicPartition(*it) for it in self._begins]
            reached = [self._reached(it) for it in former.position(places)] if places else []
            former.close()
            self._begins = {(it.topic, it.partition): it.offset for it in reached}
            client.assign(reached)
        return client

    def _reached(self, position: TopicPartition) -> TopicPartition:
        """Return a position; where the reading began if no record has been read since."""
        if position.offset >= 0:
            return position
        place = (position.topic, position.partition)
        return TopicPartition(*place, self._begins.get(place, position.offset))


class UserAdmin:
    """Admin client of a user, and its successors; parameters and attributes as of `UserConsumer`.

    After a request without an answer, another client sends the next one. Parameters and results of
    the methods are those of `confluent_kafka.admin.AdminClient`.
    """

    def __init__(self, properties: Properties) -> None:
        self.user = user_of(properties)
        self._renewed = Renewed(lambda loss: (AdminClient(properties), loss))

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        """Return the metadata of a topic, or of all topics."""
        client, loss = self._renewed.get()
        try:
            return client.list_topics(topic, timeout)
        except KafkaException as error:
            loss.take_error(error)
            raise

    def describe_topics(
        self,
        topics: TopicCollection,
        **options: Any,  # noqa: ANN401 - the client's
    ) -> dict[str, Future[TopicDescription]]:
        """Describe topics."""
        client, loss = self._renewed.get()
        return _watched(client.describe_topics(topics, **options), loss)

    def create_topics(
        self,
        topics: list[NewTopic],
        **options: Any,  # noqa: ANN401 - the client's
    ) -> dict[str, Future[None]]:
        """Create topics."""
        client, loss = self._renewed.get()
        return _watched(client.create_topics(topics, **options), loss)

    def describe_configs(
        self,
        resources: list[ConfigResource],
        **options: Any,  # noqa: ANN401 - the client's
    ) -> dict[ConfigResource, Future[dict[str, ConfigEntry]]]:
        """Return the settings of topics."""
        client, loss = self._renewed.get()
        return _watched(client.describe_configs(resources, **options), loss)

    def incremental_alter_configs(
        self,
        resources: list[ConfigResource],
        **options: Any,  # noqa: ANN401 - the client's
    ) -> dict[ConfigResource, Future[None]]:
        """Alter settings of topics."""
        client, loss = self._renewed.get()
        return _watched(client.incremental_alter_configs(resources, **options), loss)

    def list_offsets(
        self,
        offsets: dict[TopicPartition, OffsetSpec],
        **options: Any,  # noqa: ANN401 - the client's
    ) -> dict[TopicPartition, Future[ListOffsetsResultInfo]]:
        """Return offsets of partitions."""
        client, loss = self._renewed.get()
        return _watched(client.list_offsets(offsets, **options), loss)


def _watched(answers: dict[_Asked, Future[_Answer]], loss: Loss) -> dict[_Asked, Future[_Answer]]:
    """Let a loss take each answer when it arrives."""
    for answer in answers.values():
        answer.add_done_callback(loss.take_answer)
    return answers


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
