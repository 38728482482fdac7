"""Metrics of the job of a replay, read from the metrics topic during the run and at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
from confluent_kafka import TopicPartition

from cli.client.committed import read_committed
from cli.errors import ProcessError
from cli.replay.slots import add_counters
from correlation.engine.heartbeats import CLOSED
from kafka_client.consumers import is_record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from confluent_kafka import Consumer, Message

    from cli.replay.slots import Totals
    from cli.settings import Settings

_MOST_RECORDS = 1_000
_JOB = b"job"
_READ = frozenset({"events_consumed_total", "events_rejected_total"})


class SlotRecords:
    """The newest record of each slot, and of the job.

    Parameters
    ----------
    settings
        Broker address and prefix of the installation.
    consumer
        Consumer of the metrics topic.
    """

    def __init__(self, settings: Settings, consumer: Consumer) -> None:
        self._settings = settings
        self._found: dict[bytes, dict[str, Any]] = {}
        self._consumer = consumer
        consumer.assign([TopicPartition(settings.topics.metrics, 0, 0)])

    def poll(self, seconds: float) -> None:
        """Read the records that arrive within a time.

        Raises
        ------
        KafkaException
            The topic cannot be read.
        """
        for message in self._consumer.consume(_MOST_RECORDS, timeout=seconds):
            if is_record(message):
                self._take(message)

    def read_to_end(self) -> None:
        """Read all records, after the job has ended.

        Raises
        ------
        BrokerError
            The topic cannot be read.
        """
        for message in read_committed(self._settings, self._settings.topics.metrics):
            self._take(message)

    def _take(self, message: Message) -> None:
        key, value = message.key(), message.value()
        if isinstance(key, bytes) and value is not None:
            self._found[key] = orjson.loads(value)

    @property
    def slots(self) -> list[dict[str, Any]]:
        """Newest records of the slots."""
        return [record for key, record in self._found.items() if key != _JOB]

    @property
    def read(self) -> int:
        """Number of records of event topics that were read so far."""
        return sum(
            value for slot in self.slots for name, _, value in slot["counters"] if name in _READ
        )

    def totals(self) -> Totals:
        """Return the counters, summed over the slots."""
        return add_counters(self.slots)

    def lost(self) -> dict[str, int]:
        """Return the number of records lost before they were read, by topic."""
        lost = self._found.get(_JOB, {}).get("lost", {})
        return {topic: sum(found.values()) for topic, found in lost.items()}


def check_closed(slots: Sequence[Mapping[str, Any]], streams: Iterable[str]) -> None:
    """Check that every slot has read every stream to its end.

    Parameters
    ----------
    slots
        The newest record of each slot.
    streams
        Names of the streams, all of which are closed at their end.

    Raises
    ------
    ProcessError
        A slot has not read a stream to its end.
    """
    if {slot["slots"] for slot in slots} != {len(slots)}:
        raise ProcessError("the job ended before it had read anything")
    for name in sorted(streams):
        marks = [slot["watermarks"].get(name, {}).get("watermark") for slot in slots]
        if any(mark is None or mark < CLOSED for mark in marks):
            raise ProcessError(
                f"the job ended before it had read all of stream {name}: was its topic changed "
                "meanwhile (records removed, partitions added)? Start again"
            )
