"""The mark of the written batches: a committed offset of a separate consumer group."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

if TYPE_CHECKING:
    from spark_jobs.settings import Properties

_client_log = logging.getLogger(f"{__name__}.client")
_client_log.disabled = True

_TIMEOUT_SECONDS = 60.0
_FIRST_TIMEOUT_SECONDS = 2.0
_PAUSE_SECONDS = 0.1
_TIMED_OUT = KafkaError._TIMED_OUT  # noqa: SLF001 - the client's public name
# Committed offsets are not negative; a negative offset means that no offset was committed.
_NOTHING_COMMITTED = 0
_MOVING = frozenset(
    {
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
        KafkaError._WAIT_COORD,  # noqa: SLF001 - the client's public name
    }
)


class Marker:
    """The marker partition, for which a partition of the sink commits its batches.

    It is partition 0 of a topic. Offsets are committed for it; the sink writes no records to it.

    Parameters
    ----------
    topic : str
        Name of the topic.
    group : str
        Consumer group that commits, one per partition of the sink. It has no members.
    properties : mapping
        librdkafka properties.
    """

    def __init__(self, topic: str, group: str, properties: Properties) -> None:
        self._partition = TopicPartition(topic, 0)
        # The consumer is kept open: connecting takes longer than the query.
        self._consumer = Consumer(
            {
                **properties,
                "group.id": group,
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            },
            logger=_client_log,
        )

    @property
    def topic(self) -> str:
        """Topic of the marker partition."""
        return str(self._partition.topic)

    @property
    def group(self) -> object:
        """Metadata of the group, for commits in a transaction."""
        return self._consumer.consumer_group_metadata()

    def of(self, batch: int) -> TopicPartition:
        """Return the mark of a written batch."""
        return TopicPartition(self._partition.topic, self._partition.partition, batch + 1)

    def next_batch(self) -> int:
        """Read the first batch that is not written yet.

        Raises
        ------
        KafkaException
            When Kafka does not answer in time, or the right to the group is missing.
        """
        deadline, timeout = time.monotonic() + _TIMEOUT_SECONDS, _FIRST_TIMEOUT_SECONDS
        while True:
            try:
                committed = self._consumer.committed([self._partition], timeout=timeout)[0]
                error = committed.error
            except KafkaException as raised:
                error = self._reported() or raised.args[0]
            if error is None:
                return max(int(committed.offset), _NOTHING_COMMITTED)
            # A slow coordinator gets more time at each attempt.
            if error.code() == _TIMED_OUT and time.monotonic() < deadline:
                timeout *= 2
                continue
            # A coordinator that starts or moves answers later.
            if error.code() not in _MOVING or time.monotonic() > deadline:
                raise KafkaException(error)
            time.sleep(_PAUSE_SECONDS)

    def _reported(self) -> KafkaError | None:
        """Return the error that the client reports apart from requests: of a missing right."""
        message = self._consumer.poll(0)
        return None if message is None else message.error()
