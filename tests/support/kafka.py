"""Send records to Kafka and read committed records back."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaProducer  # type: ignore[import-untyped]  # has no types

from kafka_client.clients import UserAdmin
from kafka_client.partition_offsets import Edge, list_offsets
from tests.support.patience import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from confluent_kafka.admin import TopicDescription

_POLL_SECONDS = 0.2
# The markers of a confirmed commit are written sooner; without them, a transaction is open.
_MARKER_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Sent:
    """A record to send; partition -1 means chosen by key, timestamp 0 means set by the broker."""

    value: bytes | None
    key: bytes | None = None
    partition: int = -1
    timestamp_ms: int = 0
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Received:
    """A record that was read."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Mapping[str, bytes] = field(default_factory=dict)


def create_topics(
    bootstrap: str, topics: Mapping[str, int], config: Mapping[str, str] | None = None
) -> None:
    """Create topics, given as name → number of partitions, and wait until they exist.

    Records stay unless `config` has a `retention.ms`. Otherwise Kafka removes those with old
    timestamps within minutes.

    Raises
    ------
    KafkaException
        When a topic cannot be created.
    """
    settings = {"retention.ms": "-1", **(config or {})}
    new = [
        NewTopic(name, num_partitions=partitions, replication_factor=1, config=settings)
        for name, partitions in topics.items()
    ]
    # The client is kept in a variable: its requests end when it is collected.
    client = AdminClient({"bootstrap.servers": bootstrap})
    for created in client.create_topics(new).values():
        created.result(PATIENCE_SECONDS)
    # A broker may still respond without the topics it has just created.
    wait_until(lambda: topics.keys() <= client.list_topics(timeout=PATIENCE_SECONDS).topics.keys())


def recreate_topic(
    bootstrap: str, topic: str, partitions: int, config: Mapping[str, str] | None = None
) -> None:
    """Delete a topic and create it again under the same name; it gets another id.

    Raises
    ------
    KafkaException
        When the topic cannot be deleted or created.
    """
    client = AdminClient({"bootstrap.servers": bootstrap})
    client.delete_topics([topic])[topic].result(PATIENCE_SECONDS)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            create_topics(bootstrap, {topic: partitions}, config)
        except KafkaException as error:
            # The broker removes a topic after it has responded.
            removing = error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
            if not removing or time.monotonic() > deadline:
                raise
        else:
            return


def topic_id(bootstrap: str, topic: str) -> str:
    """Return the id of a topic in the notation of Kafka's tools."""
    client = AdminClient({"bootstrap.servers": bootstrap})
    found = describe_topic(client, topic, time.monotonic() + PATIENCE_SECONDS)
    return str(found.topic_id).replace("+", "-").replace("/", "_")


def describe_topic(
    client: AdminClient | UserAdmin, topic: str, deadline: float
) -> TopicDescription:
    """Return the id and the partitions of a topic."""
    while True:
        try:
            described = client.describe_topics(TopicCollection([topic]))[topic]
            found: TopicDescription = described.result(PATIENCE_SECONDS)
        except KafkaException as error:
            # A topic that was just created may not be visible yet.
            unseen = error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
            if not unseen or time.monotonic() > deadline:
                raise
        else:
            return found


def produce(bootstrap: str, topic: str, records: Iterable[Sent]) -> list[tuple[int, int]]:
    """Send records in order and wait until the broker has acknowledged all of them.

    Returns
    -------
    list of (partition, offset)
        Place of each record, in the order of `records`.

    Raises
    ------
    KafkaException
        When the broker does not accept a record.
    """
    producer = Producer({"bootstrap.servers": bootstrap, "message.max.bytes": 64 * 1024 * 1024})
    places: dict[int, tuple[int, int]] = {}
    failures: list[KafkaError] = []
    sent = 0
    for position, record in enumerate(records):

        def delivered(error: KafkaError | None, message: Message, at: int = position) -> None:
            if error is not None:
                failures.append(error)
            else:
                places[at] = (message.partition() or 0, message.offset() or 0)

        while True:
            try:
                producer.produce(
                    topic,
                    value=record.value,
                    key=record.key,
                    partition=record.partition,
                    timestamp=record.timestamp_ms,
                    headers=list(record.headers),
                    on_delivery=delivered,
                )
                break
            except BufferError:
                producer.poll(_POLL_SECONDS)
        sent += 1
    waiting = producer.flush(PATIENCE_SECONDS)
    if failures:
        raise KafkaException(failures[0])
    assert waiting == 0, f"{waiting} of {sent} records were not acknowledged"
    return [places[position] for position in range(sent)]


class _Latin(str):
    """A name that kafka-python writes in another encoding."""

    __slots__ = ()

    def encode(self, *_: object) -> bytes:
        return b"\xe9"


def produce_with_unreadable_header(bootstrap: str, topic: str, sent: Sent) -> None:
    """Send a record to partition 0 with its headers, and one whose name is not UTF-8."""
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    try:
        headers = [*sent.headers, (_Latin("é"), b"1")]
        made = producer.send(topic, sent.value, key=sent.key, headers=headers, partition=0)
        made.get(PATIENCE_SECONDS)
    finally:
        producer.close()


def produce_in_transaction(
    bootstrap: str, topic: str, records: Iterable[Sent], *, aborted: bool = False
) -> None:
    """Send records in one committed or aborted transaction, which adds a marker after them."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{topic}.tests"})
    producer.init_transactions(PATIENCE_SECONDS)
    producer.begin_transaction()
    for record in records:
        producer.produce(
            topic,
            record.value,
            record.key,
            partition=record.partition,
            timestamp=record.timestamp_ms,
            headers=list(record.headers),
        )
    if aborted:
        assert producer.flush(PATIENCE_SECONDS) == 0
        producer.abort_transaction(PATIENCE_SECONDS)
    else:
        producer.commit_transaction(PATIENCE_SECONDS)


class TopicReader:
    """Reads a topic repeatedly: each time what is new, or all of a topic that was created again.

    Parameters
    ----------
    bootstrap
        Address of the broker.
    topic
        Topic to read.
    check
        Called with each record when it is read; raises to refuse it.
    """

    def __init__(
        self, bootstrap: str, topic: str, check: Callable[[Received], None] | None = None
    ) -> None:
        self._topic = topic
        self._check = check
        # Committed records of the topic, in offset order per partition.
        self._records: list[Received] = []
        self._id = ""
        # Next offset of each partition.
        self._next: dict[int, int] = {}
        self._admin = UserAdmin({"bootstrap.servers": bootstrap})
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                # The client requires a group; it never commits offsets.
                "group.id": "tests",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "fetch.message.max.bytes": 16 * 1024 * 1024,
                "fetch.wait.max.ms": 100,
            }
        )

    def read(
        self,
        until: Callable[[list[Received]], bool] | None = None,
        timeout_seconds: float = PATIENCE_SECONDS,
    ) -> list[Received]:
        """Return the committed records, in offset order per partition.

        They include records that were in the topic at an earlier read and are not any more.

        Parameters
        ----------
        until
            Predicate that decides from all records whether to stop. It is first called when each
            partition has been read to its end; by default reading then stops.
        timeout_seconds
            Max wait.

        Raises
        ------
        TimeoutError
            When too few records arrive in time; the message states their number.
        """
        deadline = time.monotonic() + timeout_seconds
        self._describe(deadline)
        # While records keep arriving, the client never reports the end; the current ends are used.
        ends = self._ends(Edge.COMMITTED_END, deadline)
        if self._has_reached(ends) and (until is None or until(self._records)):
            return list(self._records)
        self._consumer.assign([TopicPartition(self._topic, *place) for place in self._next.items()])
        try:
            while not (self._has_reached(ends) and (until is None or until(self._records))):
                if time.monotonic() > deadline:
                    raise TimeoutError(
                        f"{len(self._records)} records in {self._topic} are not enough after "
                        f"{timeout_seconds:g} s; the last: {self._records[-3:]}"
                    )
                self._take(self._consumer.poll(_POLL_SECONDS))
        finally:
            self._consumer.unassign()
        return list(self._records)

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()

    def _has_reached(self, ends: Mapping[int, int]) -> bool:
        return all(self._next[number] >= end for number, end in ends.items())

    def _describe(self, deadline: float) -> None:
        """Find the partitions of the topic; forget the records of a deleted topic."""
        found = describe_topic(self._admin, self._topic, deadline)
        if self._id != str(found.topic_id):
            self._id, self._records, self._next = str(found.topic_id), [], {}
        for one in found.partitions:
            self._next.setdefault(one.id, 0)

    def _take(self, message: Message | None) -> None:
        if message is None:
            return
        error = message.error()
        if error is None:
            record = _received(message)
            if self._check is not None:
                self._check(record)
            self._records.append(record)
            self._next[record.partition] = record.offset + 1
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - the client's public name
            self._next[message.partition() or 0] = message.offset() or 0
        else:
            raise KafkaException(error)

    def await_markers(self, deadline: float) -> None:
        """Wait until the transactions that have been committed so far can be read.

        Kafka confirms a commit before it writes the transaction's markers, without which its
        records are not read. A transaction that stays open is awaited for some seconds.
        """
        self._describe(deadline)
        ends = self._ends(Edge.END, deadline)
        open_at = time.monotonic() + _MARKER_SECONDS
        while time.monotonic() < min(open_at, deadline):
            committed = self._ends(Edge.COMMITTED_END, deadline)
            if all(committed[it] >= end for it, end in ends.items()):
                break
            self._consumer.poll(_POLL_SECONDS)

    def _ends(self, edge: Edge, deadline: float) -> dict[int, int]:
        """Return an end offset of each partition."""
        places = [(self._topic, number) for number in self._next]
        left = max(deadline - time.monotonic(), _POLL_SECONDS)
        found = list_offsets(self._admin, places, edge, left)
        return {number: end for (_, number), end in found.items()}


def read_committed(
    bootstrap: str,
    topic: str,
    until: Callable[[list[Received]], bool] | None = None,
    timeout_seconds: float = PATIENCE_SECONDS,
) -> list[Received]:
    """Read a topic from its beginning with a new `TopicReader`.

    Without `until`, the transactions are included whose commit was confirmed before.
    """
    reader = TopicReader(bootstrap, topic)
    try:
        if until is None:
            reader.await_markers(time.monotonic() + timeout_seconds)
        return reader.read(until, timeout_seconds)
    finally:
        reader.close()


def _received(message: Message) -> Received:
    """Convert a message; the client types each of its parts as optional."""
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    key, value = message.key(), message.value()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    assert not isinstance(key, str)
    assert not isinstance(value, str)
    headers = message.headers() or ()
    pairs = headers.items() if isinstance(headers, dict) else headers
    return Received(
        topic=topic,
        partition=partition,
        offset=offset,
        timestamp_ms=message.timestamp()[1],
        key=key,
        value=value,
        headers={name: part for name, part in pairs if isinstance(part, bytes)},
    )
