"""Convert Kafka records to packed rows: JSON to columns of events, one blob per stream and slot.

The conversion runs before the shuffle (`mapInArrow`), so that Spark moves a few large rows instead
of many small ones. Records that cannot be read as events become dead letters with a reason; no
record is dropped.
"""

from __future__ import annotations

import logging
from base64 import b64decode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import orjson
import pyarrow as pa

from correlation.buffers.columns import BytesColumn
from correlation.buffers.events import Events
from correlation.buffers.partitioner import Partitioner
from correlation.config_records import parse_config_record
from correlation.engine.heartbeats import CLOSED, Heartbeat, heartbeat_from_record
from correlation.engine.progress import Progress
from correlation.errors import (
    CorrelationError,
    RejectedEventError,
    UnknownRecordVersionError,
    UnreadableRecordError,
)
from correlation.parsing.intake import Intake, Problem, parse_values
from correlation.parsing.stream_reader import StreamReader
from correlation.reasons import Reason
from correlation.resources.streams import Stream
from correlation.resources.topics import Topics
from spark_jobs.worker.controls import kept_record, names_resource
from spark_jobs.worker.envelope import (
    CONTROL,
    EVENTS,
    FILTERED,
    HEARTBEAT,
    POSITIONS,
    PROGRESS,
    REJECT,
    Headers,
    pack_headers,
)
from spark_jobs.worker.positions import Positions, position_of, to_json
from spark_jobs.worker.rejects import Rejects

if TYPE_CHECKING:
    from numpy.typing import NDArray

_log = logging.getLogger(__name__)

_PACKED = pa.schema(
    [
        pa.field("slot_key", pa.int32(), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("position", pa.int64(), nullable=False),
        pa.field("blob", pa.binary(), nullable=False),
    ]
)
Row = tuple[int, str, int, bytes]
# First byte of the packed headers: whether the record has a key, which may also be empty.
NO_KEY, KEY = b"\0", b"\1"


@dataclass(frozen=True)
class Packer:
    """Converts Kafka records to packed rows; Spark sends it to the tasks.

    Parameters
    ----------
    topics : Topics
        Topics of the installation.
    streams : sequence of Stream
        The streams in force.
    slot_keys : sequence of int
        Keys of the slots.
    max_record_bytes : int
        Max length of a value; longer values are rejected without parsing.
    written : sequence of Positions
        By slot, positions up to which the output of earlier jobs is in Kafka: the records before
        them are not rejected or counted again. Empty if the offsets of the query say all.
    refills : bool
        Whether only events are packed, without their records, to fill the buffers of a rebuild.
    """

    topics: Topics
    streams: tuple[Stream, ...]
    slot_keys: tuple[int, ...]
    max_record_bytes: int
    written: tuple[Positions, ...] = ()
    refills: bool = False

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pack the records of one task."""
        task = _Task(self)
        for batch in batches:
            if rows := task.pack(batch):
                yield _as_batch(rows)
        if rows := task.finish():
            yield _as_batch(rows)


def _as_batch(rows: Sequence[Row]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True))
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, _PACKED, strict=True)],
        schema=_PACKED,
    )


@dataclass(slots=True)
class _Run:
    """Consecutive records of an Arrow batch from one Kafka partition."""

    topic: str
    partition: int
    rows: range
    values: Sequence[bytes | None]
    keys: Sequence[bytes | None]
    headers: Sequence[str | None]
    has_headers: bool
    offsets: NDArray[np.int64]
    record_timestamp_us: NDArray[np.int64]
    value_column: BytesColumn
    key_column: BytesColumn

    def positions(self, rows: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the offsets and Kafka timestamps (in µs) of records."""
        places = np.array(rows, np.int64)
        return self.offsets[places], self.record_timestamp_us[places]

    def headers_of(self, row: int) -> list[tuple[str, bytes | None]]:
        """Return the headers of a record."""
        text = self.headers[row]
        if text is None:
            return []
        # Spark writes bytes in base64 and leaves null out.
        return [
            (header["key"], b64decode(header["value"]) if "value" in header else None)
            for header in orjson.loads(text)
        ]


class _Reader(StreamReader):
    """Reads the records of one stream."""

    def __init__(self, stream: Stream, slots: int) -> None:
        super().__init__(stream)
        self.name = stream.name
        self.partitioner = Partitioner(stream.partitioning, slots)


class _Task:
    """Packs the Arrow batches of one task."""

    def __init__(self, packer: Packer) -> None:
        self._topics = packer.topics
        self._slot_keys = packer.slot_keys
        self._max_bytes = packer.max_record_bytes
        self._readers: dict[str, list[_Reader]] = {}
        for stream in packer.streams:
            readers = self._readers.setdefault(stream.topic, [])
            readers.append(_Reader(stream, len(packer.slot_keys)))
        self._max_skews_us = {
            stream.name: stream.max_skew_us for stream in packer.streams if stream.clock == "live"
        }
        self._progress: dict[tuple[str, int], tuple[int, int | None]] = {}
        self._positions: dict[str, dict[int, int]] = {}
        self._written = packer.written
        self._refills = packer.refills

    def pack(self, batch: pa.RecordBatch) -> list[Row]:
        """Pack an Arrow batch of Kafka records."""
        rejects = Rejects(self._topics.dead_letter, self._is_written)
        rows: list[Row] = []
        for run in _runs(batch):
            self._note_position(run)
            if run.topic == self._topics.config:
                rows += self._pack_controls(run, rejects)
            elif run.topic == self._topics.heartbeats:
                rows += self._pack_heartbeats(run, rejects)
            else:
                rows += self._pack_events(run, rejects)
        if self._refills:
            return [row for row in rows if row[1] == EVENTS]
        rows += [
            (self._slot_keys[self._slot_of(partition)], REJECT, 0, blob)
            for partition, blob in rejects.finish()
        ]
        return rows

    def finish(self) -> list[Row]:
        """Return the rows with the progress of each stream, and with the positions."""
        if self._refills or not self._positions:
            return []
        rows = self._to_every_slot(POSITIONS, 0, orjson.dumps(to_json(self._positions)))
        if self._progress:
            entries = [
                tuple(Progress(stream, partition, next_offset, max_latest))
                for (stream, partition), (next_offset, max_latest) in sorted(self._progress.items())
            ]
            rows += self._to_every_slot(PROGRESS, 0, orjson.dumps(entries))
        return rows

    def _note_position(self, run: _Run) -> None:
        read = self._positions.setdefault(run.topic, {})
        read[run.partition] = max(int(run.offsets[run.rows[-1]]) + 1, read.get(run.partition, 0))

    def _slot_of(self, partition: int) -> int:
        """Return the slot that writes and counts the rejected records of a partition."""
        return partition % len(self._slot_keys)

    def _is_written(self, topic: str, partition: int, offset: int) -> bool:
        """Return whether an earlier job has handled a record that is not an event."""
        if not self._written:
            return False
        return offset < position_of(self._written[self._slot_of(partition)], topic, partition)

    def _to_every_slot(self, kind: str, position: int, blob: bytes) -> list[Row]:
        return [(key, kind, position, blob) for key in self._slot_keys]

    def _pack_controls(self, run: _Run, rejects: Rejects) -> Iterable[Row]:
        for row in run.rows:
            key, value, offset = run.keys[row] or b"", run.values[row], int(run.offsets[row])
            record: object = None
            try:
                if value is not None:
                    record = parse_config_record(key, value, orjson.loads).to_record()
            except UnreadableRecordError as error:
                rejects.add(run, row, "", Reason.BAD_CONTROL, str(error))
                # The content is not stored, because its size and depth are not limited.
                record = str(error)
            except UnknownRecordVersionError as error:
                # The driver stops the job; the slots keep the record for the next job.
                _log.error("config record %d has a newer version", offset)
                record = kept_record(value or b"", error)
            if names_resource(key):
                control = orjson.dumps({"key": key.decode(), "record": record})
                yield from self._to_every_slot(CONTROL, offset, control)

    def _pack_heartbeats(self, run: _Run, rejects: Rejects) -> Iterable[Row]:
        for row in run.rows:
            value, offset = run.values[row], int(run.offsets[row])
            try:
                heartbeat = heartbeat_from_record(orjson.loads(value or b"null"))
            except (ValueError, CorrelationError) as error:
                rejects.add(run, row, "", Reason.BAD_HEARTBEAT, str(error))
                continue
            heartbeat = heartbeat._replace(record_timestamp_us=int(run.record_timestamp_us[row]))
            max_skew_us = self._max_skews_us.get(heartbeat.stream)
            if max_skew_us is not None and heartbeat.is_ahead(max_skew_us):
                # The slots refuse it too: they also check heartbeats from before the stream joined.
                detail = _describe_ahead(heartbeat, max_skew_us)
                rejects.add(run, row, heartbeat.stream, Reason.FUTURE_HEARTBEAT, detail)
            yield from self._to_every_slot(HEARTBEAT, offset, orjson.dumps(tuple(heartbeat)))

    def _pack_events(self, run: _Run, rejects: Rejects) -> Iterable[Row]:
        readers = self._readers.get(run.topic)
        if readers is None:
            return
        accepted = [reader.begin(run.partition) for reader in readers]
        begin = run.rows.start
        times_us = run.record_timestamp_us[begin : run.rows.stop].tolist()
        for row, value in self._parse(run, [reader.name for reader in readers], rejects):
            for taken in accepted:
                try:
                    taken.add(row, value, run.values[row], run.keys[row], times_us[row - begin])
                except RejectedEventError as error:
                    rejects.add(run, row, taken.stream.name, error.reason, error.detail)
        for taken in accepted:
            for row, problem in taken.settle(run.positions):
                rejects.add(run, row, taken.stream.name, *problem)
        next_offset = int(run.offsets[run.rows[-1]]) + 1
        for reader, taken in zip(readers, accepted, strict=True):
            max_latest = max(taken.latest, default=None)
            self._note_progress((reader.name, run.partition), next_offset, max_latest)
            is_counted = self._is_written(run.topic, run.partition, next_offset - 1)
            if taken.filtered and not is_counted:
                count = orjson.dumps([reader.name, taken.filtered])
                yield self._slot_keys[self._slot_of(run.partition)], FILTERED, 0, count
            if taken.rows:
                events = _to_events(taken, run)
                yield from self._spread(
                    reader, replace(events, extra={}) if self._refills else events
                )

    def _parse(
        self, run: _Run, streams: Sequence[str], rejects: Rejects
    ) -> Iterator[tuple[int, object]]:
        """Yield the parsed JSON of a run; records that cannot be parsed are rejected per stream."""

        def refuse(row: int, problem: Problem) -> None:
            for stream in streams:
                rejects.add(run, row, stream, *problem)

        return parse_values(run.rows, run.values, self._max_bytes, orjson.loads, refuse)

    def _note_progress(
        self, place: tuple[str, int], next_offset: int, max_latest: int | None
    ) -> None:
        before = self._progress.get(place)
        if before is not None:
            next_offset = max(next_offset, before[0])
            if before[1] is not None:
                max_latest = before[1] if max_latest is None else max(max_latest, before[1])
        self._progress[place] = (next_offset, max_latest)

    def _spread(self, reader: _Reader, events: Events) -> Iterable[Row]:
        """Yield a row with copies of the events for each of their slots."""
        for slot, mine in reader.partitioner.spread(events):
            yield self._slot_keys[slot], EVENTS, int(mine.offset[0]), mine.to_bytes()


def _describe_ahead(heartbeat: Heartbeat, max_skew_us: int) -> str:
    if heartbeat.read_up_to_us == CLOSED:
        return 'read_up_to: "end" requires a recorded stream; set clock: replay, or remove it'
    return (
        f"read_up_to: must be at most the record's Kafka timestamp, "
        f"{heartbeat.record_timestamp_us}, plus max_skew, {max_skew_us} µs; got "
        f"{heartbeat.read_up_to_us}; correct the clock of the sender"
    )


def _to_events(taken: Intake, run: _Run) -> Events:
    """Build columns of the accepted events, at least one, with their original records."""
    rows = np.array(taken.rows, np.int64)
    extra = {
        "record_key": run.key_column.take(rows),
        "record_value": run.value_column.take(rows),
        "record_headers": _pack_headers(run, taken.rows),
    }
    return taken.to_events(run.offsets[rows], run.record_timestamp_us[rows], extra)


def _pack_headers(run: _Run, rows: Sequence[int]) -> BytesColumn:
    if run.has_headers:
        return BytesColumn.from_list(
            [pack_record_headers(run.keys[row], run.headers_of(row)) for row in rows]
        )
    return BytesColumn.from_list([NO_KEY if run.keys[row] is None else KEY for row in rows])


def pack_record_headers(key: bytes | None, headers: Headers | None) -> bytes:
    """Write the headers of a record, after a byte that states whether it has a key."""
    return (NO_KEY if key is None else KEY) + pack_headers(headers or ())


def _runs(batch: pa.RecordBatch) -> Iterator[_Run]:
    """Split a batch where the topic or the partition changes."""
    if not batch.num_rows:
        return
    topic = batch.column("topic").dictionary_encode()
    codes = topic.indices.to_numpy()
    partitions = batch.column("partition").to_numpy()
    changes = np.flatnonzero((np.diff(codes) != 0) | (np.diff(partitions) != 0)) + 1
    names = topic.dictionary.to_pylist()
    values, keys = batch.column("value"), batch.column("key")
    headers = batch.column("headers")
    columns = {
        "values": values.to_pylist(),
        "keys": keys.to_pylist(),
        "headers": [None] * batch.num_rows
        if headers.null_count == batch.num_rows
        else headers.to_pylist(),
        "has_headers": headers.null_count < batch.num_rows,
        "offsets": batch.column("offset").to_numpy(),
        "record_timestamp_us": batch.column("timestamp").cast(pa.int64()).fill_null(0).to_numpy(),
        "value_column": _as_column(values),
        "key_column": _as_column(keys),
    }
    for low, high in pairwise([0, *changes.tolist(), batch.num_rows]):
        yield _Run(names[codes[low]], int(partitions[low]), range(low, high), **columns)


def _as_column(array: pa.Array) -> BytesColumn:
    """View an Arrow column of bytes as a BytesColumn; null becomes an empty value."""
    array = array.cast(pa.large_binary())
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    content = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return BytesColumn(content, ends)
