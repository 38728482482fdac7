"""Clients that know the Kafka user of their connection, for errors of missing rights."""

from __future__ import annotations

import logging
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AclOperation, AdminClient

from kafka_client.renewed import Renewed
from kafka_client.rights import is_missing_right, with_right
from kafka_client.users import user_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
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
_log = logging.getLogger(__name__)


class UserConsumer:
    """Consumer of a user, and its successors; see `kafka_client.consumers.open_consumer`.

    If it may have lost its brokers, another client goes on at the same positions (`Renewed`).
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
        self._renewed = Renewed(lambda loss: (Consumer({**loss.properties(), **properties}), loss))
        self._client, _ = self._renewed.get()
        # Where this client begins to read each assigned partition.
        self._begins: dict[tuple[str, int], int] = {}

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Read these partitions, and no others, from their offsets on."""
        client, _ = self._present()
        self._begins = _offsets(partitions)
        client.assign(list(partitions))

    def unassign(self) -> None:
        """Read no partition."""
        client, _ = self._present()
        self._begins = {}
        client.unassign()

    def poll(self, timeout: float) -> Message | None:
        """Return the next message; None if none arrives in time."""
        client, _ = self._present()
        return client.poll(timeout)

    def consume(self, num_messages: int, timeout: float) -> list[Message]:
        """Return the next messages."""
        client, _ = self._present()
        return client.consume(num_messages, timeout)

    def position(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Return the next offset of each partition; its assigned one before the first record."""
        client, _ = self._present()
        return self._reached(client, partitions)

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        """Return the metadata of a topic, or of all topics."""
        client, loss = self._present()
        found: ClusterMetadata = _asked(lambda: client.list_topics(topic, timeout), loss)
        return found

    def get_watermark_offsets(
        self, partition: TopicPartition, timeout: float = -1
    ) -> tuple[int, int]:
        """Return the begin and end offset of a partition."""
        client, loss = self._present()
        return _asked(lambda: client.get_watermark_offsets(partition, timeout), loss)

    def offsets_for_times(
        self, partitions: Sequence[TopicPartition], timeout: float = -1
    ) -> list[TopicPartition]:
        """Return the offset of each partition's first record from a time on."""
        client, loss = self._present()
        return _asked(lambda: client.offsets_for_times(list(partitions), timeout), loss)

    def take_error(self, error: KafkaException) -> None:
        """Take an error of reading: after a timeout, another client may go on."""
        _, loss = self._present()
        loss.take_error(error)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _present(self) -> tuple[Consumer, Loss]:
        client, loss = self._renewed.get()
        if client is not self._client:
            former = self._client
            reached = self._reached(former, [TopicPartition(*it) for it in self._begins])
            client.assign(reached)
            self._client, self._begins = client, _offsets(reached)
            try:
                former.close()
            except KafkaException as error:
                _log.warning("a former consumer was not closed: %s", error)
        return client, loss

    def _reached(
        self, client: Consumer, partitions: Sequence[TopicPartition]
    ) -> list[TopicPartition]:
        """Return positions of a client."""
        places = client.position(list(partitions)) if partitions else []
        begins = self._begins
        return [
            it
            if it.offset >= 0
            else TopicPartition(
                it.topic, it.partition, begins.get((it.topic, it.partition), it.offset)
            )
            for it in places
        ]


class UserAdmin:
    """Admin client of a user, and its successors; parameters and attributes as of `UserConsumer`.

    After a request without an answer, another client may send the next one (`Renewed`). Parameters
    and results of the methods are those of `confluent_kafka.admin.AdminClient`.
    """

    def __init__(self, properties: Properties) -> None:
        self.user = user_of(properties)
        self._renewed = Renewed(lambda loss: (AdminClient(properties), loss))
        self._lock = threading.Lock()
        # Answers for which a client waits: if it was destroyed, they would never arrive.
        self._waiting: list[tuple[AdminClient, Future[Any]]] = []

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        """Return the metadata of a topic, or of all topics."""
        client, loss = self._renewed.get()
        return _asked(lambda: client.list_topics(topic, timeout), loss)

    def describe_topics(
        self,
        topics: TopicCollection,
        **options: Any,  # noqa: ANN401 - the client's
    ) -> dict[str, Future[TopicDescription]]:
        """Describe topics."""
        return self._ask(lambda client: client.describe_topics(topics, **options))

    def create_topics(
        self,
        topics: list[NewTopic],
        **options: Any,  # noqa: ANN401 - the client's
    ) -> dict[str, Future[None]]:
        """Create topics."""
        return self._ask(lambda client: client.create_topics(topics, **options))

    def describe_configs(
        self,
        resources: list[ConfigResource],
        **options: Any,  # noqa: ANN401 - the client's
    ) -> dict[ConfigResource, Future[dict[str, ConfigEntry]]]:
        """Return the settings of topics."""
        return self._ask(lambda client: client.describe_configs(resources, **options))

    def incremental_alter_configs(
        self,
        resources: list[ConfigResource],
        **options: Any,  # noqa: ANN401 - the client's
    ) -> dict[ConfigResource, Future[None]]:
        """Alter settings of topics."""
        return self._ask(lambda client: client.incremental_alter_configs(resources, **options))

    def list_offsets(
        self,
        offsets: dict[TopicPartition, OffsetSpec],
        **options: Any,  # noqa: ANN401 - the client's
    ) -> dict[TopicPartition, Future[ListOffsetsResultInfo]]:
        """Return offsets of partitions."""
        return self._ask(lambda client: client.list_offsets(offsets, **options))

    def _ask(
        self, request: Callable[[AdminClient], dict[_Asked, Future[_Answer]]]
    ) -> dict[_Asked, Future[_Answer]]:
        """Send a request."""
        client, loss = self._renewed.get()
        answers = request(client)
        for answer in answers.values():
            answer.add_done_callback(partial(_note_answer, loss))
        with self._lock:
            former = self._waiting
            waiting = [(client, it) for it in answers.values()]
            self._waiting = [it for it in former + waiting if not it[1].done()]
        # Clients are destroyed in this thread, and after the lock is free.
        del former, waiting
        return answers


def _offsets(partitions: Sequence[TopicPartition]) -> dict[tuple[str, int], int]:
    return {(it.topic, it.partition): it.offset for it in partitions}


def _asked(request: Callable[[], _Answer], loss: Loss) -> _Answer:
    """Send a request and wait for its answer, which a loss takes."""
    try:
        answer = request()
    except KafkaException as error:
        loss.take_error(error)
        raise
    loss.take_answer()
    return answer


def _note_answer(loss: Loss, answer: Future[Any]) -> None:
    """Let a loss take an answer that has arrived."""
    error = answer.exception()
    if isinstance(error, KafkaException):
        loss.take_error(error)
    # When a request for offsets times out, librdkafka reports an invalid offset and no error.
    elif error is None and getattr(answer.result(), "offset", 0) < 0:
        loss.take_error(KafkaException(KafkaError(KafkaError._TIMED_OUT)))  # noqa: SLF001 - librdkafka's own codes carry the underscore
    else:
        loss.take_answer()


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
