"""Late events: their records, and where records are not at hand, their places.

Slots judge which events are late, by the watermarks before the batch. Events move through the
shuffle without their records, because most events are not late. The slots store their watermarks in
a file beside the workers (`blob_files`); the tasks of the next batch that read events send the
records of those that are below with the events. The file is a cache: the sink reads the records of
all other late events again (`spark_jobs.sink.late_records`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

import numpy as np
import orjson

from correlation.buffers.grid import home_copies
from correlation.buffers.packing import pack_columns, unpack_columns
from correlation.reasons import Reason
from correlation.resources.topics import MISSING_HEADER, error_headers
from spark_jobs.worker.envelope import Record, RecordPacker, unpack_records

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from correlation.buffers.columns import Int64s
    from correlation.buffers.events import Events
    from spark_jobs.worker.blob_files import BlobFiles
    from spark_jobs.worker.runs import Run

_WATERMARKS = "watermarks"


class LateEvents(NamedTuple):
    """Places of late events of one stream in a batch.

    Parameters
    ----------
    stream, topic : str
        Name of the stream, and its topic.
    partition : int32[n]
        Kafka partition of each record.
    offset : int64[n]
        Kafka offset.
    record_timestamp_us : int64[n]
        Kafka's timestamp, in µs.
    """

    stream: str
    topic: str
    partition: NDArray[np.int32]
    offset: Int64s
    record_timestamp_us: Int64s

    @classmethod
    def of(cls, events: Events, topic: str) -> Self:
        """Return the places of events in a topic."""
        return cls(
            events.stream, topic, events.partition, events.offset, events.record_timestamp_us
        )

    def to_bytes(self) -> bytes:
        """Write the events as one byte string."""
        names = ("partition", "offset", "record_timestamp_us")
        columns = {name: getattr(self, name) for name in names}
        return pack_columns(columns, {"stream": self.stream, "topic": self.topic})

    @classmethod
    def from_bytes(cls, blob: bytes) -> Self:
        """Read the output of `to_bytes`."""
        columns, meta = unpack_columns(blob)
        return cls(meta["stream"], meta["topic"], **cast("dict[str, Any]", columns))


def store_watermarks(files: BlobFiles, watermarks: Mapping[str, int]) -> None:
    """Store the watermarks of the streams, in µs, for the tasks of the next batch."""
    files.put(_WATERMARKS, orjson.dumps(watermarks))


def stored_watermarks(files: BlobFiles) -> dict[str, int]:
    """Return the watermarks that were stored last; they may be missing or old.

    A file that the system has damaged, for example when the power failed, is ignored.
    """
    try:
        found: dict[str, int] = orjson.loads(files.get(_WATERMARKS) or b"{}")
    except orjson.JSONDecodeError:
        return {}
    return found


def late_record(
    topic: str, stream: str, place: tuple[str, int, int], found: tuple[Run, int] | None
) -> Record:
    """Return the record of a late event for the topic of late events.

    Parameters
    ----------
    topic : str
        Topic of late events.
    stream : str
        Stream of the event.
    place : (str, int, int)
        Topic, partition and offset of its record.
    found : (Run, int) or None
        Run and row of its record; None: Kafka has removed it.
    """
    detail = f"latest is before the watermark of stream {stream}"
    added = error_headers(Reason.LATE, detail, stream, *place)
    if found is None:
        return Record(topic, None, None, (*added.items(), (MISSING_HEADER, b"true")))
    run, row = found
    return Record(topic, run.keys[row], run.values[row], (*run.headers_of(row), *added.items()))


def pack_late(topic: str, events: Events, groups: int, watermark: int, run: Run) -> list[bytes]:
    """Pack the records of the events that are below a watermark.

    Parameters
    ----------
    topic : str
        Topic of late events.
    events : Events
        Events of a run that go to one slot.
    groups : int
        Groups of the grid; only home copies are late.
    watermark : int
        Watermark of the stream, in µs.
    run : Run
        Their records.
    """
    late = np.flatnonzero((events.latest < watermark) & home_copies(events.key, groups))
    packer = RecordPacker()
    for row in np.searchsorted(run.offsets, events.offset[late]).tolist():
        place = (run.topic, run.partition, int(run.offsets[row]))
        packer.add(late_record(topic, events.stream, place, (run, row)))
    return packer.finish()


def split_late(
    late: Iterable[Events], blobs: Iterable[bytes]
) -> Iterator[tuple[Events, list[Record]]]:
    """Yield late events without their records, and the records of the others, for each stream.

    Parameters
    ----------
    late : iterable of Events
        Late events of a batch.
    blobs : iterable of bytes
        Records of events that may be late (`pack_late`).
    """
    known: dict[tuple[bytes, bytes, bytes], Record] | None = None
    for events in late:
        if known is None:
            known = {_place_of(it): it for blob in blobs for it in unpack_records(blob)}
        stream, records, others = events.stream.encode(), [], []
        for row, place in enumerate(
            zip(events.partition.tolist(), events.offset.tolist(), strict=True)
        ):
            record = known.get((stream, b"%d" % place[0], b"%d" % place[1]))
            if record is None:
                others.append(row)
            else:
                records.append(record)
        yield events.take(np.array(others, np.int64)), records


def _place_of(record: Record) -> tuple[bytes, bytes, bytes]:
    # The headers that were added are the last ones.
    headers = dict(record.headers)
    names = ("stream", "partition", "offset")
    stream, partition, offset = (headers[f"coincide.error.{it}"] or b"" for it in names)
    return stream, partition, offset
