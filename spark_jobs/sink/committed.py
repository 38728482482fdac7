"""Read the offset that a consumer group has committed for the marker partition."""

from __future__ import annotations

import logging
import time
from contextlib import closing
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from kafka_client.partition_offsets import TIMEOUTS
from kafka_client.renewed import Renewed

if TYPE_CHECKING:
    from spark_jobs.settings import Properties

_client_log = logging.getLogger(f"{__name__}.client")
_client_log.disabled = True

_TIMEOUT_SECONDS = 60.0
# Max time in which Kafka decides an offset after its transaction has ended.
DECISION_SECONDS = 5.0
_FIRST_TIMEOUT_SECONDS = 2.0
_PAUSE_SECONDS = 0.1
_MOVING = frozenset(
    {
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
        KafkaError._WAIT_COORD,  # noqa: SLF001 - the client's public name
    }
)


class CommittedOffset:
    """The committed offset of a group for partition 0 of a topic.

    The group has no members, and the partition only identifies the offset.

    Parameters
    ----------
    topic : str
        Name of the topic.
    group : str
        Consumer group that commits.
    properties : mapping
        librdkafka properties.
    decided : bool
        Whether a reader waits for the end of a transaction that commits an offset. Otherwise it
        receives the offset before the transaction.
    """

    def __init__(
        self, topic: str, group: str, properties: Properties, *, decided: bool = True
    ) -> None:
        self.topic, self.name, self._properties = topic, group, properties
        settings = {
            **properties,
            "group.id": group,
            "enable.auto.commit": False,
            "isolation.level": "read_committed" if decided else "read_uncommitted",
        }
        # Failed queries in a row.
        self._failures = 0
        # The consumer is kept open: connecting takes longer than the query.
        self._renewed = Renewed(lambda loss: (Consumer(settings, logger=_client_log), loss))

    @property
    def group(self) -> object:
        """Metadata of the group, for commits in a transaction."""
        return self._renewed.get()[0].consumer_group_metadata()

    def at(self, offset: int, metadata: str = "") -> TopicPartition:
        """Return an offset to commit."""
        return TopicPartition(self.topic, 0, offset, metadata=metadata)

    def read(self, patience_seconds: float = _TIMEOUT_SECONDS) -> TopicPartition | None:
        """Read the committed offset with its metadata; None when no offset was committed.

        Parameters
        ----------
        patience_seconds : float
            Max time for repeated queries.

        Raises
        ------
        KafkaException
            When Kafka does not answer in time, or the right to the group is missing.
        """
        deadline, timeout = time.monotonic() + patience_seconds, _FIRST_TIMEOUT_SECONDS
        asked = TopicPartition(self.topic, 0)
        while True:
            consumer, loss = self._renewed.get()
            try:
                committed = consumer.committed([asked], timeout=timeout)[0]
                error = committed.error
            except KafkaException as raised:
                self._failures += 1
                # The coordinator may only be slow: the client is kept after one of them.
                if self._failures > 1:
                    loss.take_error(raised)
                error = _reported(consumer) or raised.args[0]
            else:
                loss.take_answer()
                self._failures = 0
                if error is None:
                    # A negative offset means that no offset was committed.
                    return committed if committed.offset >= 0 else None
            # A slow coordinator gets more time at each attempt.
            if error.code() in TIMEOUTS and time.monotonic() < deadline:
                timeout *= 2
                continue
            # A coordinator that starts or moves answers later.
            if error.code() not in _MOVING or time.monotonic() > deadline:
                raise KafkaException(error)
            time.sleep(_PAUSE_SECONDS)

    def read_or_former(self) -> tuple[TopicPartition | None, bool]:
        """Read the committed offset; if Kafka does not decide it, the one before.

        It is called when all transactions that may commit for the group have ended. A broker that
        is killed may lose the end of a transaction. Then Kafka does not answer `read` until the
        next transaction of the same producer id ends. If this one commits, the lost one counts as
        committed, too; if it aborts, both count as aborted.

        Returns
        -------
        TopicPartition or None, bool
            The offset with its metadata, and whether it is decided; otherwise it is that before the
            transaction whose end is lost.

        Raises
        ------
        KafkaException
            See `read`.
        """
        former = None
        # A coordinator that has only just begun to answer is asked again.
        for _ in range(2):
            try:
                return self.read(DECISION_SECONDS), True
            except KafkaException as error:
                if error.args[0].code() not in TIMEOUTS | _MOVING:
                    raise
            former = self.read_undecided()
        return former, False

    def read_undecided(self, patience_seconds: float = _TIMEOUT_SECONDS) -> TopicPartition | None:
        """Read the offset before a transaction that is not decided; None if it is missing.

        Parameters and errors are those of `read`.
        """
        offset = CommittedOffset(self.topic, self.name, self._properties, decided=False)
        with closing(offset):
            return offset.read(patience_seconds)

    def close(self) -> None:
        """Close the connection."""
        self._renewed.get()[0].close()


def _reported(consumer: Consumer) -> KafkaError | None:
    """Return the error that a client reports apart from requests: of a missing right."""
    message = consumer.poll(0)
    return None if message is None else message.error()
