"""Send records to Kafka and read back what is committed there."""

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

from tests.support.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Sent:
    """A record to send; ``partition`` -1 leaves the choice to the key, time 0 to the broker."""

    value: bytes | None
    key: bytes | None = None
    partition: int = -1
    timestamp_ms: int = 0
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Received:
    """A record as it was read."""

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
    """Create topics, given as name → number of partitions, and wait until they are there.

    Raises
    ------
    KafkaException
        A topic could not be created.
    """
    new = [
        NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(config or {}))
        for name, partitions in topics.items()
    ]
    # Kept in a variable: requests end with their client.
    client = AdminClient({"bootstrap.servers": bootstrap})
    for created in client.create_topics(new).values():
        created.result(PATIENCE_SECONDS)
    # A broker that has created them may still answer without them.
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not topics.keys() <= client.list_topics(timeout=PATIENCE_SECONDS).topics.keys():
        assert time.monotonic() < deadline, f"not there: {', '.join(topics)}"


def recreate_topic(
    bootstrap: str, topic: str, partitions: int, config: Mapping[str, str] | None = None
) -> None:
    """Delete a topic and create it again under the same name; it gets another id.

    Raises
    ------
    KafkaException
        The topic could not be deleted, or not be created.
    """
    client = AdminClient({"bootstrap.servers": bootstrap})
    client.delete_topics([topic])[topic].result(PATIENCE_SECONDS)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            create_topics(bootstrap, {topic: partitions}, config)
        except KafkaException as error:
            # The broker removes a topic after it has answered.
            removing = error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
            if not removing or time.monotonic() > deadline:
                raise
        else:
            return


def topic_id(bootstrap: str, topic: str) -> str:
    """Return the id that Kafka gave a topic, as Kafka's own tools write it."""
    client = AdminClient({"bootstrap.servers": bootstrap})
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            described = client.describe_topics(TopicCollection([topic]))[topic].result()
        except KafkaException as error:
            # A topic that was created a moment ago may not be seen yet.
            unseen = error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
            if not unseen or time.monotonic() > deadline:
                raise
        else:
            return str(described.topic_id).replace("+", "-").replace("/", "_")


def produce(bootstrap: str, topic: str, records: Iterable[Sent]) -> list[tuple[int, int]]:
    """Send records in their order and wait until the broker has them all.

    Returns
    -------
    list of (partition, offset)
        Where each record went, in the order given.

    Raises
    ------
    KafkaException
        A record was not taken; none is lost silently.
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


def produce_in_transaction(
    bootstrap: str, topic: str, records: Iterable[Sent], *, aborted: bool = False
) -> None:
    """Send records in one transaction, which leaves a mark behind them; to be aborted or not."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{topic}.tests"})
    producer.init_transactions(PATIENCE_SECONDS)
    producer.begin_transaction()
    for record in records:
        producer.produce(topic, record.value, record.key, partition=record.partition)
    if aborted:
        assert producer.flush(PATIENCE_SECONDS) == 0
        producer.abort_transaction(PATIENCE_SECONDS)
    else:
        producer.commit_transaction(PATIENCE_SECONDS)


def read_committed(
    bootstrap: str,
    topic: str,
    until: Callable[[list[Received]], bool] | None = None,
    timeout_seconds: float = PATIENCE_SECONDS,
) -> list[Received]:
    """Read a topic from its beginning, committed records only, in offset order per partition.

    Parameters
    ----------
    bootstrap
        Address of the broker.
    topic
        Topic to read.
    until
        Tells from all records read so far whether they are enough; by default everything up to
        the end of each partition is read, once.
    timeout_seconds
        Longest wait.

    Raises
    ------
    TimeoutError
        Not enough came in time; the message tells how many.
    """
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            # Needed by the client; nothing is ever committed for it.
            "group.id": "tests",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "fetch.message.max.bytes": 16 * 1024 * 1024,
        }
    )
    try:
        return _read(consumer, topic, until, timeout_seconds)
    finally:
        consumer.close()


def _read(
    consumer: Consumer,
    topic: str,
    until: Callable[[list[Received]], bool] | None,
    timeout_seconds: float,
) -> list[Received]:
    """Read from all partitions until there is enough."""
    deadline = time.monotonic() + timeout_seconds
    partitions = consumer.list_topics(topic, timeout=timeout_seconds).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
    # Where records keep coming the client never says that it is at the end: that of now counts.
    ends = {
        number: _end(consumer, TopicPartition(topic, number), deadline) for number in partitions
    }
    received: list[Received] = []
    ended: set[int] = set()
    while not (until(received) if until else ended == set(partitions)):
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"{len(received)} records in {topic} after {timeout_seconds:g} s are not enough; "
                f"the last: {received[-3:]}"
            )
        message = consumer.poll(_POLL_SECONDS)
        if message is None:
            continue
        error = message.error()
        if error is None:
            found = _received(message)
            received.append(found)
            if found.offset + 1 >= ends[found.partition]:
                ended.add(found.partition)
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - the client's public name
            ended.add(message.partition() or 0)
        else:
            raise KafkaException(error)
    return received


def _end(consumer: Consumer, place: TopicPartition, deadline: float) -> int:
    """Return where a partition ends, as soon as it has a leader: it may be a moment old."""
    while True:
        left = max(deadline - time.monotonic(), _POLL_SECONDS)
        try:
            return int(consumer.get_watermark_offsets(place, left)[1])
        except KafkaException as error:
            moving = error.args[0].code() in {
                KafkaError.NOT_LEADER_FOR_PARTITION,
                KafkaError.LEADER_NOT_AVAILABLE,
            }
            if not moving or time.monotonic() > deadline:
                raise
            # Lets the client ask for the leader again.
            consumer.poll(_POLL_SECONDS)


def _received(message: Message) -> Received:
    """Return the message as a value; the client types every part of it as perhaps missing."""
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
