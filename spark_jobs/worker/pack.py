"""Convert Kafka records to packed rows: JSON to columns of events, one blob per stream and slot.

The conversion runs where the records are read, before the shuffle, so that Spark moves a few large
rows instead of many small ones. Records that cannot be read as events become dead letters with a
reason; no record is dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import orjson
import pyarrow as pa

from correlation.buffers.events import Events
from correlation.buffers.partitioner import Partitioner
from correlation.config_records import parse_config_record
from correlation.engine.heartbeats import CLOSED, Heartbeat, heartbeat_from_record
from correlation.engine.progress import Progress
from correlation.errors import (
    CorrelationError,
    UnknownRecordVersionError,
    UnreadableRecordError,
)
from correlation.parsing.intake import Intake, Problem, parse_records
from correlation.parsing.stream_reader import StreamReader
from correlation.reasons import Reason
from correlation.resources.partitioning import Partitioning
from spark_jobs.worker.blob_files import BlobFiles
from spark_jobs.worker.controls import kept_record, names_resource
from spark_jobs.worker.envelope import (
    CONTROL,
    EVENTS,
    FILTERED,
    HEARTBEAT,
    LATE_RECORDS,
    POSITIONS,
    PROGRESS,
    REJECT,
)
from spark_jobs.worker.late_events import pack_late, stored_watermarks
from spark_jobs.worker.positions import position_of, to_json
from spark_jobs.worker.rejects import Rejects

if TYPE_CHECKING:
    from correlation.resources.streams import Stream
    from spark_jobs.worker.packing import Packing
    from spark_jobs.worker.runs import Run

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


def pack_records(packing: Packing, blocks: Iterable[Sequence[Run]]) -> Iterator[pa.RecordBatch]:
    """Pack the records of one task.

    Parameters
    ----------
    packing : Packing
        Parameters.
    blocks : iterable of (sequence of Run)
        The records, in blocks that fit the memory.

    Yields
    ------
    pyarrow.RecordBatch
        Columns of `PACKED_SCHEMA`.
    """
    task = _Task(packing)
    for runs in blocks:
        if rows := task.pack(runs):
            yield _as_batch(rows)
    if rows := task.finish():
        yield _as_batch(rows)


def warm_up() -> None:
    """Load the kernel that assigns events to slots, which the first batch needs."""
    row = (b"k", b"e", 0, 0, 0, 0, 0)
    Partitioner(Partitioning(), 2).assign(Events.from_rows("", [row]))


def _as_batch(rows: Sequence[Row]) -> pa.RecordBatch:
    columns = list(zip(*rows, strict=True))
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, _PACKED, strict=True)],
        schema=_PACKED,
    )


class _Reader(StreamReader):
    """Reads the records of one stream."""

    def __init__(self, stream: Stream, slots: int) -> None:
        super().__init__(stream)
        self.name = stream.name
        self.partitioner = Partitioner.of_stream(stream, slots)


class _Task:
    """Packs the records of one task."""

    def __init__(self, packing: Packing) -> None:
        self._topics = packing.topics
        self._slot_keys = packing.slot_keys
        self._max_bytes = packing.max_record_bytes
        self._readers: dict[str, list[_Reader]] = {}
        for stream in packing.streams:
            readers = self._readers.setdefault(stream.topic, [])
            readers.append(_Reader(stream, len(packing.slot_keys)))
        self._max_skews_us = {
            stream.name: stream.max_skew_us for stream in packing.streams if stream.clock == "live"
        }
        self._progress: dict[tuple[str, int], tuple[int, int | None]] = {}
        self._positions: dict[str, dict[int, int]] = {}
        self._written = packing.written
        self._refills = packing.refills
        self._watermarks: dict[str, int] = {}
        if packing.cache_folder and not packing.refills:
            self._watermarks = stored_watermarks(BlobFiles(packing.cache_folder))

    def pack(self, runs: Sequence[Run]) -> list[Row]:
        """Pack a block of records."""
        rejects = Rejects(self._topics.dead_letter, self._is_written)
        rows: list[Row] = []
        for run in runs:
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

    def _note_position(self, run: Run) -> None:
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

    def _pack_controls(self, run: Run, rejects: Rejects) -> Iterable[Row]:
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

    def _pack_heartbeats(self, run: Run, rejects: Rejects) -> Iterable[Row]:
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

    def _pack_events(self, run: Run, rejects: Rejects) -> Iterable[Row]:
        readers = self._readers.get(run.topic)
        if readers is None:
            return
        accepted = [reader.begin(run.partition) for reader in readers]
        for rows in run.parts():
            for row, place, problem in sorted(self._read(run, rows, accepted)):
                rejects.add(run, row, accepted[place].stream.name, *problem)
        for taken in accepted:
            for row, problem in taken.settle(run.positions):
                rejects.add(run, row, taken.stream.name, *problem)
        next_offset = int(run.offsets[run.rows[-1]]) + 1
        for reader, taken in zip(readers, accepted, strict=True):
            max_latest = int(np.max(taken.latest)) if taken.rows else None
            self._note_progress((reader.name, run.partition), next_offset, max_latest)
            is_counted = self._is_written(run.topic, run.partition, next_offset - 1)
            if taken.filtered and not is_counted:
                count = orjson.dumps([reader.name, taken.filtered])
                yield self._slot_keys[self._slot_of(run.partition)], FILTERED, 0, count
            if taken.rows:
                events = taken.to_events(*run.positions(taken.rows))
                yield from self._spread(reader, events, run)

    def _read(
        self, run: Run, rows: range, accepted: Sequence[Intake]
    ) -> list[tuple[int, int, Problem]]:
        """Parse records, add them to the streams of their topic, and return the rejected ones.

        A rejected record is its row, the place of the stream, and the problem.
        """
        rejected: list[tuple[int, int, Problem]] = []

        def refuse(row: int, problem: Problem) -> None:
            rejected.extend((row, place, problem) for place in range(len(accepted)))

        records = parse_records(run.unparsed(rows), self._max_bytes, orjson.loads, refuse)
        for place, taken in enumerate(accepted):
            rejected += [(row, place, problem) for row, problem in taken.add_columns(records)]
        return rejected

    def _note_progress(
        self, place: tuple[str, int], next_offset: int, max_latest: int | None
    ) -> None:
        before = self._progress.get(place)
        if before is not None:
            next_offset = max(next_offset, before[0])
            if before[1] is not None:
                max_latest = before[1] if max_latest is None else max(max_latest, before[1])
        self._progress[place] = (next_offset, max_latest)

    def _spread(self, reader: _Reader, events: Events, run: Run) -> Iterable[Row]:
        """Yield a row with copies of the events for each of their slots, and records if late."""
        watermark, groups = (
            self._watermarks.get(reader.name),
            reader.partitioner.partitioning.groups,
        )
        for slot, mine in reader.partitioner.spread(events):
            key = self._slot_keys[slot]
            yield key, EVENTS, int(mine.offset[0]), mine.to_bytes()
            if watermark is not None:
                blobs = pack_late(self._topics.late, mine, groups, watermark, run)
                yield from ((key, LATE_RECORDS, 0, blob) for blob in blobs)


def _describe_ahead(heartbeat: Heartbeat, max_skew_us: int) -> str:
    if heartbeat.read_up_to_us == CLOSED:
        return 'read_up_to: "end" requires a recorded stream; set clock: replay, or remove it'
    return (
        f"read_up_to: must be at most the record's Kafka timestamp, "
        f"{heartbeat.record_timestamp_us}, plus max_skew, {max_skew_us} µs; got "
        f"{heartbeat.read_up_to_us}; correct the clock of the sender"
    )
