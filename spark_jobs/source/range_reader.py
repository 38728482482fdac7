"""Read ranges of offsets in the tasks, in blocks of runs."""

from __future__ import annotations

import time
from itertools import groupby
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from kafka_client.consumers import is_record, open_consumer, place_of
from kafka_client.messages import read_headers
from kafka_client.partition_offsets import OffsetRange, Place, list_ranges, timed_out
from spark_jobs.worker.runs import Columns, Run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from confluent_kafka import Message

    from kafka_client.clients import UserConsumer
    from spark_jobs.settings import Properties
    from spark_jobs.source.offset_planner import Range
    from spark_jobs.source.reading import Reading

# Max size of a block: keys, values and headers. Larger blocks cost less per record.
_BLOCK_RECORDS = 200_000
_BLOCK_BYTES = 8 * 1024 * 1024
# Max number of records of the first poll, whose size is not known, and of later polls. The client
# decompresses a producer's batch whole, so its queue may hold more than its limit.
_FIRST_POLL_RECORDS = 16
_POLL_RECORDS = 1_000
_POLL_BYTES = 4 * 1024 * 1024
_POLL_SECONDS = 0.1
# Max time in which no incomplete range advances.
_SILENT_SECONDS = 120.0
# Time after which a silent reader asks whether the topics still exist, and asks again.
_ASK_SECONDS = 5.0
_ANSWER_SECONDS = 30.0
_CLIENT: dict[str, str | int] = {
    # An offset that does not exist is an error, which the reader handles.
    "auto_offset_reset": "error",
    # Records after the ranges are fetched in vain.
    "queued_max_messages_kbytes": 4 * 1024,
    # When the queue is full, reading continues as soon as it is not.
    "fetch_queue_backoff_ms": 1,
    "fetch_wait_max_ms": 5,
}
_NO_OFFSET = KafkaError._AUTO_OFFSET_RESET  # noqa: SLF001 - librdkafka's own codes carry the underscore


class RangeReader:
    """Reads ranges of offsets with a connection that is kept.

    Parameters
    ----------
    consumer : UserConsumer
        Consumer from `open_consumer`, with `auto.offset.reset` set to "error".
    """

    def __init__(self, consumer: UserConsumer) -> None:
        self._consumer = consumer
        self._waiting: dict[Place, OffsetRange] = {}
        self._block: dict[Place, Columns] = {}
        self._skips_missing = True

    def read(self, ranges: Sequence[Range], *, skips_missing: bool) -> Iterator[list[Run]]:
        """Yield the committed records of ranges, in order within each partition.

        Parameters
        ----------
        ranges : sequence of (str, int, int, int)
            Topic, partition, first offset, and end offset; not more than one per partition. The
            end must have existed: the last offsets may have no records, as transaction markers.
        skips_missing : bool
            Whether records that were removed are skipped; otherwise they are an error.

        Yields
        ------
        list of Run
            The next records, one run per partition.

        Raises
        ------
        KafkaException
            A partition cannot be read, no record arrives in time, or a topic was deleted, for which
            librdkafka would wait.
        """
        self._skips_missing = skips_missing
        self._block = {}
        self._waiting = {(topic, it): OffsetRange(*edges) for topic, it, *edges in ranges}
        self._assign()
        try:
            yield from self._blocks()
        finally:
            self._consumer.unassign()

    def close(self) -> None:
        """Close the connection."""
        self._consumer.close()

    def _blocks(self) -> Iterator[list[Run]]:
        records, size, advanced_at = 0, 0, time.monotonic()
        asked_at = advanced_at
        poll_records = _FIRST_POLL_RECORDS
        while self._waiting:
            messages = self._consumer.consume(poll_records, 0.0)
            # Without records, one is waited for: a wait for many would not end with the ranges.
            messages = messages or self._consumer.consume(1, _POLL_SECONDS)
            before = self._waiting.copy()
            for place, found in groupby(messages, place_of):
                taken, taken_bytes = self._take(place, list(found))
                records, size = records + taken, size + taken_bytes
                if taken:
                    fitting = _POLL_BYTES * taken // max(taken_bytes, 1)
                    poll_records = max(1, min(fitting, _POLL_RECORDS))
            now = time.monotonic()
            if self._waiting != before:
                advanced_at = asked_at = now
            elif now - advanced_at > _SILENT_SECONDS:
                place, (_, end) = next(iter(self._waiting.items()))
                raise timed_out(place, f"was not read up to offset {end} in time")
            elif now - asked_at > _ASK_SECONDS:
                self._check_topics()
                asked_at = time.monotonic()
            if records >= _BLOCK_RECORDS or size >= _BLOCK_BYTES:
                yield self._finish_block()
                records, size = 0, 0
        if self._block:
            yield self._finish_block()

    def _check_topics(self) -> None:
        """Check that the topics of the incomplete ranges exist."""
        # One partition of each topic.
        waiting = {place[0]: (place, found.end) for place, found in self._waiting.items()}
        for topic, (place, end) in waiting.items():
            try:
                error = self._consumer.list_topics(topic, _ASK_SECONDS).topics[topic].error
            except KafkaException:
                # The reader waits for the broker.
                return
            if error is not None and error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise timed_out(place, f"was not read up to offset {end}: the topic was deleted")

    def _finish_block(self) -> list[Run]:
        runs = [Run.of(*place, columns) for place, columns in self._block.items()]
        self._block = {}
        return runs

    def _assign(self) -> None:
        """Read on from the begins of the ranges."""
        self._consumer.assign([TopicPartition(*it, at.begin) for it, at in self._waiting.items()])

    def _advance(self, place: Place, begin: int) -> None:
        """Note the next offset of a range."""
        end = self._waiting[place].end
        if begin < end:
            self._waiting[place] = OffsetRange(begin, end)
        else:
            del self._waiting[place]

    def _take(self, place: Place, messages: list[Message]) -> tuple[int, int]:
        """Take the messages of a partition; return the number and size of its records."""
        if all(it.error() is None for it in messages):
            return self._take_records(place, messages)
        records = size = 0
        for is_taken, found in groupby(messages, lambda it: it.error() is None):
            if is_taken:
                taken, taken_bytes = self._take_records(place, list(found))
                records, size = records + taken, size + taken_bytes
            else:
                for one in found:
                    self._take_other(place, one)
        return records, size

    def _take_records(self, place: Place, messages: list[Message]) -> tuple[int, int]:
        """Add the records that are in the range; return their number and size."""
        if place not in self._waiting:
            return 0, 0
        begin, end = self._waiting[place]
        last = messages[-1].offset() or 0
        # Records before the range were fetched before its begin was changed.
        if (messages[0].offset() or 0) < begin or last >= end:
            messages = [it for it in messages if begin <= (it.offset() or 0) < end]
        self._advance(place, max(last + 1, begin))
        if not messages:
            return 0, 0
        if place not in self._block:
            self._block[place] = Columns([], [], [], [], [])
        columns = self._block[place]
        keys, values = [it.key() for it in messages], [it.value() for it in messages]
        headers = read_headers(messages)
        columns.offsets.extend([it.offset() or 0 for it in messages])
        columns.record_timestamp_us.extend([it.timestamp()[1] * 1_000 for it in messages])
        columns.keys.extend(keys)
        columns.values.extend(values)
        columns.headers.extend(headers)
        size = sum(map(len, filter(None, keys))) + sum(map(len, filter(None, values)))
        size += sum(len(name) + len(it or b"") for one in headers if one for name, it in one)
        return len(messages), size

    def _take_other(self, place: Place, message: Message) -> None:
        """Handle the end of a partition, missing records, and other errors."""
        error = message.error()
        if self._skips_missing and error is not None and error.code() == _NO_OFFSET:
            self._skip(place, message)
        elif not is_record(message, self._consumer.user) and place in self._waiting:
            # The end of the partition may be from before the range was written.
            self._advance(place, max(message.offset() or 0, self._waiting[place].begin))

    def _skip(self, place: Place, message: Message) -> None:
        """Read on with the oldest record of a partition, unless its range has no records left."""
        if place not in self._waiting:
            return
        begin, end = self._waiting[place]
        found = list_ranges(self._consumer, [place], _ANSWER_SECONDS)[place]
        if begin < found.begin < end:
            self._waiting[place] = OffsetRange(found.begin, end)
        elif found.begin >= end or begin >= found.end:
            del self._waiting[place]
        else:
            # The records exist: the batch is repeated.
            is_record(message, self._consumer.user)
        self._assign()


def open_reader(properties: Properties, group: str) -> RangeReader:
    """Open a reader.

    Parameters
    ----------
    properties : mapping
        librdkafka properties.
    group : str
        Consumer group, which librdkafka requires.

    Raises
    ------
    KafkaException
        librdkafka rejects the properties.
    """
    return RangeReader(open_consumer(properties, group, **_CLIENT))


class _Connection:
    """The connection of a worker process, for the newest run of the query."""

    def __init__(self) -> None:
        self._name: str | None = None
        self._reader: RangeReader | None = None

    def reader(self, reading: Reading) -> RangeReader:
        """Return the reader of a run."""
        if self._reader is None or self._name != reading.name:
            if self._reader is not None:
                self._reader.close()
                self._reader = None
            self._reader = open_reader(reading.properties, reading.group)
            self._name = reading.name
        return self._reader


_connection = _Connection()


def reader_of(reading: Reading) -> RangeReader:
    """Return the reader of this process for a run of the query.

    Raises
    ------
    KafkaException
        librdkafka rejects the properties.
    """
    return _connection.reader(reading)
