"""Read the partitions of the streams' topics, from their oldest record to their end at the start.

Committed records are read, each partition by a consumer of its own, because partitions are read at
different speeds. Nothing is written to Kafka. Records that retention removes during the replay are
counted as lost.
"""

from __future__ import annotations

import difflib
import time
from typing import TYPE_CHECKING

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException

from cli.client.topics import METADATA_SECONDS, connected
from cli.errors import BrokerError
from cli.replay.chunks import Chunk
from cli.replay.options import EventPartition
from cli.replay.records import SCHEMA
from kafka_client.consumers import open_consumer, read_ranges
from kafka_client.messages import as_bytes
from kafka_client.partition_offsets import OffsetRange, is_timeout, list_ranges

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from confluent_kafka import Message

    from cli.settings import Settings
    from correlation.resources.streams import Stream
    from kafka_client.clients import UserConsumer
    from kafka_client.settings import Properties
    from kafka_client.topic_offsets import KafkaOffsets

_MAX_ROWS = 16_384
# Every open partition holds a chunk or two.
_MAX_BYTES = 1024 * 1024
# After this time without the end of a partition, the broker is asked whether it still has it.
_SILENCE_SECONDS = 60
_OUT_OF_RANGE = KafkaError._AUTO_OFFSET_RESET  # noqa: SLF001 - librdkafka's own codes carry the underscore
_UNKNOWN = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.UNKNOWN_TOPIC_ID,
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 - as above
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 - as above
    }
)


class TopicReader:
    """Reads the topics of streams.

    Parameters
    ----------
    settings
        Broker address.
    offsets
        Reads topics from the broker.

    Raises
    ------
    KafkaException
        The broker does not answer.
    """

    def __init__(self, settings: Settings, offsets: KafkaOffsets) -> None:
        self._settings = settings
        self._offsets = offsets
        self._counts = offsets.partitions()
        self._ids: dict[str, str | None] = {}

    def count_partitions(self, stream: Stream) -> int:
        """Return the number of partitions of a stream's topic.

        Raises
        ------
        BrokerError
            The topic does not exist.
        """
        if stream.topic not in self._counts:
            similar = difflib.get_close_matches(stream.topic, self._counts)
            remedy = (
                f"similar ones: {', '.join(similar)}"
                if similar
                else ("check --bootstrap, and whether the Kafka user may describe the topic")
            )
            raise BrokerError(
                f"stream {stream.name}: topic {stream.topic} does not exist at "
                f"{self._settings.bootstrap}; {remedy}"
            )
        return self._counts[stream.topic]

    def find_partitions(self, streams: Iterable[Stream]) -> tuple[EventPartition, ...]:
        """Return the partitions of the streams' topics with their present records.

        Raises
        ------
        BrokerError
            The broker does not answer.
        """
        streams = list(streams)
        found = self._offsets.describe({stream.topic for stream in streams})
        self._ids = {name: topic.id for name, topic in found.items()}
        places = {
            (stream.topic, number)
            for stream in streams
            for number in range(self._counts[stream.topic])
        }
        with connected(self._settings, open_consumer) as consumer:
            ranges = list_ranges(consumer, places, METADATA_SECONDS)
        return tuple(
            EventPartition(stream.name, number, stream.topic, *ranges[stream.topic, number])
            for stream in streams
            for number in range(self._counts[stream.topic])
        )

    def read_chunks(self, partition: EventPartition) -> Generator[Chunk]:
        """Read the records of a partition in chunks.

        Raises
        ------
        BrokerError
            The broker does not answer, or the topic was deleted, recreated or truncated.
        """
        if partition.begin == partition.end:
            return
        topic = partition.topic
        with connected(self._settings, _open_consumer) as consumer:
            try:
                yield from self._read(consumer, partition)
            except KafkaException as error:
                # Also reported if no leader of the partition is known.
                if error.args[0].code() in _UNKNOWN:
                    self._check_same(topic)
                raise
        self._check_same(topic)

    def _check_same(self, topic: str) -> None:
        """Raise BrokerError if a topic was deleted since the begin."""
        found = self._offsets.describe([topic]).get(topic)
        if found is None:
            if self._offsets.is_deleted(topic):
                raise _changed(topic, "was deleted")
        elif found.id != self._ids.get(topic, found.id):
            raise _changed(topic, "was deleted and created again")

    def _read(self, consumer: UserConsumer, partition: EventPartition) -> Generator[Chunk]:
        place, end = (partition.topic, partition.partition), partition.end
        batch, seconds = _Batch(partition.begin), _SILENCE_SECONDS
        while batch.next < end:
            span, deadline = OffsetRange(batch.next, end), time.monotonic() + seconds
            try:
                for message in read_ranges(consumer, {place: span}, deadline):
                    batch.add(message)
                    if batch.is_full:
                        yield batch.take()
                # The offsets after the last record are transaction markers, or truncated records.
                if list_ranges(consumer, [place], _SILENCE_SECONDS)[place].end < end:
                    raise _changed(partition.topic, "lost its newest records")
                batch.next = end
            except KafkaException as error:
                if error.args[0].code() != _OUT_OF_RANGE and not is_timeout(error):
                    raise
                # Raises an error if the broker does not answer or the topic was deleted.
                oldest = list_ranges(consumer, [place], _SILENCE_SECONDS)[place].begin
                if oldest > batch.next:
                    batch.lose(min(oldest, end))
                elif not is_timeout(error):
                    raise _changed(partition.topic, "lost its newest records") from error
                # Max time without a record, or with a consumer that waits for the replay.
                seconds *= 2
        yield batch.take()


def _changed(topic: str, change: str) -> BrokerError:
    return BrokerError(f"topic {topic} {change} during the replay; start the replay again")


def _open_consumer(properties: Properties, name: str) -> UserConsumer:
    return open_consumer(
        properties,
        name,
        auto_offset_reset="error",
        # Prefetched records of a partition, in KB; librdkafka's default is 64 MB.
        queued_max_messages_kbytes=2048,
        # Pause of a full prefetch queue, in ms: the default of 1 s limits a partition to 2 MB/s.
        fetch_queue_backoff_ms=5,
        # Delay of the end of a partition, in ms, where transaction markers follow the last record.
        fetch_wait_max_ms=50,
    )


class _Batch:
    """Records for the next chunk of a partition.

    Parameters
    ----------
    begin
        Offset of the oldest record.
    """

    def __init__(self, begin: int) -> None:
        # Offset after the last record that was read.
        self.next = begin
        self._begin = begin
        self._nbytes = 0
        self._lost = 0
        self._rows: list[tuple[bytes | None, bytes | None, int, int]] = []

    @property
    def is_full(self) -> bool:
        """Whether the batch has the size of a chunk."""
        return len(self._rows) >= _MAX_ROWS or self._nbytes >= _MAX_BYTES

    def add(self, message: Message) -> None:
        """Add a record."""
        value, offset = as_bytes(message.value()), message.offset() or 0
        self._rows.append((as_bytes(message.key()), value, offset, message.timestamp()[1] * 1_000))
        self._nbytes += len(value or b"")
        self.next = offset + 1

    def lose(self, begin: int) -> None:
        """Count the records before an offset as lost."""
        self._lost += begin - self.next
        self.next = begin

    def take(self) -> Chunk:
        """Return the chunk, and begin the next one."""
        columns = list(zip(*self._rows, strict=True)) or [()] * len(SCHEMA)
        arrays = [pa.array(it, field.type) for it, field in zip(columns, SCHEMA, strict=True)]
        size, lost = self.next - self._begin, self._lost
        self._rows, self._nbytes, self._lost, self._begin = [], 0, 0, self.next
        table = pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
        return Chunk(0, 0, size, table=table, lost=lost)
