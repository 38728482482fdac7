"""The two row formats inside Spark: packed input rows and packed output records.

Spark rebuilds every row in Python at each step, which costs more than all other work. A row
therefore carries a blob of many events or many output records. Output records come
from the operators as the columns of `correlation.record_columns`, and go to `spark_jobs.sink`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise, repeat
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa

from correlation.buffers.columns import BytesColumn, Column
from correlation.buffers.joining import Codes
from correlation.buffers.packing import pack_columns, unpack_columns
from correlation.operators import Heading
from correlation.record_columns import RecordColumns
from kafka_client.messages import Headers

# Kinds of packed rows.
CONTROL, HEARTBEAT, PROGRESS, EVENTS, LATE_RECORDS, FILTERED, REJECT, POSITIONS, BEGIN = (
    "control",
    "heartbeat",
    "progress",
    "events",
    "late_records",
    "filtered",
    "reject",
    "positions",
    "begin",
)
# Kinds of output rows of a slot.
RECORDS, SHARE, LATE = "records", "share", "late"

# CloudEvents, binary mode: the header that identifies a result.
ID_HEADER = "ce_id"
_LENGTHS = struct.Struct("<Ii")
_NO_VALUE = -1
_SIZE = struct.Struct("<q")
_CODEC = "zstd"
# A blob is closed when it reaches one of these sizes.
_BLOB_RECORDS = 20_000
# Results are small, about 500 bytes each.
_BLOB_RESULTS = 8_000
_BLOB_BYTES = 4 * 1024 * 1024
# Blobs of the output that a slot returns at once.
_PORTION_BYTES = 32 * 1024 * 1024


class Record(NamedTuple):
    """A Kafka record to be written."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers = ()

    @property
    def nbytes(self) -> int:
        """Size of key, value and headers, in bytes."""
        size = len(self.key or b"") + len(self.value or b"")
        return size + sum(len(value or b"") for _, value in self.headers)


_new_record = partial(tuple.__new__, Record)


def pack_headers(headers: Headers) -> bytes:
    """Write headers into one byte string, which is empty without headers."""
    parts: list[bytes] = []
    for name, value in headers:
        encoded = name.encode()
        parts += (
            _LENGTHS.pack(len(encoded), _NO_VALUE if value is None else len(value)),
            encoded,
            value or b"",
        )
    return b"".join(parts)


def unpack_headers(packed: bytes) -> list[tuple[str, bytes | None]]:
    """Read headers written by `pack_headers`."""
    headers: list[tuple[str, bytes | None]] = []
    position = 0
    while position < len(packed):
        name_length, value_length = _LENGTHS.unpack_from(packed, position)
        position += _LENGTHS.size
        name = packed[position : position + name_length].decode()
        position += name_length
        if value_length == _NO_VALUE:
            headers.append((name, None))
            continue
        headers.append((name, packed[position : position + value_length]))
        position += value_length
    return headers


@dataclass(slots=True)
class RecordPacker:
    """Collects output records into blobs of a bounded size.

    Parameters
    ----------
    meta : mapping
        JSON-serializable facts, stored in the last blob.
    """

    meta: Mapping[str, object] = field(default_factory=dict)
    _blobs: list[bytes] = field(default_factory=list)
    _records: list[Record] = field(default_factory=list)
    _bytes: int = 0

    def add(self, record: Record) -> None:
        """Add a record."""
        self._records.append(record)
        self._bytes += record.nbytes
        if len(self._records) >= _BLOB_RECORDS or self._bytes >= _BLOB_BYTES:
            self._close({})

    def extend(self, records: Iterable[Record]) -> None:
        """Add records."""
        for record in records:
            self.add(record)

    def finish(self) -> list[bytes]:
        """Return all blobs; an empty list without records and facts."""
        if self._records or self.meta:
            self._close(self.meta)
        return self._blobs

    def _close(self, meta: Mapping[str, object]) -> None:
        self._blobs.append(_pack_records(self._records, meta))
        self._records = []
        self._bytes = 0


def _pack_records(records: Sequence[Record], meta: Mapping[str, object]) -> bytes:
    topics = {topic: number for number, topic in enumerate({record.topic for record in records})}
    columns: dict[str, Column] = {
        "topic": np.array([topics[record.topic] for record in records], np.int32),
        "key": BytesColumn.from_list([record.key or b"" for record in records]),
        "value": BytesColumn.from_list([record.value or b"" for record in records]),
        "headers": BytesColumn.from_list([pack_headers(record.headers) for record in records]),
        "no_key": np.array([record.key is None for record in records], np.uint8),
        "no_value": np.array([record.value is None for record in records], np.uint8),
    }
    return compressed(pack_columns(columns, {"topics": list(topics), **meta}))


def pack_result(topic: str, heading: Heading, records: Iterable[RecordColumns]) -> Iterator[bytes]:
    """Pack the records of a result into blobs of a bounded size.

    Alarms are numerous and alike: the common headers are stored once per blob, and values stay in
    pieces until they are sent.

    Parameters
    ----------
    topic : str
        Topic to which the records will be written.
    heading : Heading
        Source of the common headers.
    records : iterable of RecordColumns
        Records of the result.
    """
    meta = {"topics": [topic], "headers": heading.headers}
    for part in records:
        for chunk in part.cut(_BLOB_RESULTS, _BLOB_BYTES):
            columns: dict[str, Column] = {
                "pieces": chunk.pieces,
                "key": chunk.key,
                "value": chunk.value.ravel(),
                "ident": chunk.ident,
            }
            yield compressed(pack_columns(columns, meta))


def compressed(blob: bytes) -> bytes:
    """Compress a blob: results are similar, and Spark copies them several times."""
    compressed: bytes = pa.compress(blob, _CODEC, asbytes=True)
    return _SIZE.pack(len(blob)) + compressed


def decompressed(blob: bytes) -> bytes:
    """Return the blob that was compressed."""
    (size,) = _SIZE.unpack_from(blob)
    whole: bytes = pa.decompress(memoryview(blob)[_SIZE.size :], size, _CODEC, asbytes=True)
    return whole


def in_portions(rows: Iterable[tuple[bytes, str]]) -> Iterator[list[tuple[bytes, str]]]:
    """Split the output rows of a slot into lists of bounded size."""
    portion: list[tuple[bytes, str]] = []
    size = 0
    for row in rows:
        portion.append(row)
        size += len(row[0])
        if size >= _PORTION_BYTES:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


def unpack_meta(blob: bytes) -> dict[str, Any]:
    """Read the facts of a blob of output records."""
    return unpack_columns(decompressed(blob))[1]


def unpack_records(blob: bytes) -> Iterator[Record]:
    """Read the output records of a blob."""
    columns, meta = unpack_columns(decompressed(blob))
    if "ident" in columns:
        yield from _unpack_result(columns, meta)
        return
    topics: list[str] = meta["topics"]
    keys, values, headers = (
        _values(cast("BytesColumn", columns[name])) for name in ("key", "value", "headers")
    )
    rows = zip(
        cast("Any", columns["topic"]).tolist(),
        keys,
        values,
        headers,
        cast("Any", columns["no_key"]).tolist(),
        cast("Any", columns["no_value"]).tolist(),
        strict=True,
    )
    for topic, key, value, packed, no_key, no_value in rows:
        yield Record(
            topics[topic],
            None if no_key else key,
            None if no_value else value,
            unpack_headers(packed) if packed else (),
        )


@dataclass(frozen=True, slots=True)
class PackedRecords:
    """Output records that are unpacked in each iteration.

    Parameters
    ----------
    blobs : iterable of bytes
        Packed output records; can be iterated repeatedly.
    """

    blobs: Iterable[bytes]

    def __iter__(self) -> Iterator[Record]:
        for blob in self.blobs:
            yield from unpack_records(blob)


def _unpack_result(columns: Mapping[str, Column], meta: Mapping[str, Any]) -> Iterator[Record]:
    topic: str = meta["topics"][0]
    common = [(name, value.encode()) for name, value in meta["headers"].items()]
    key, value, ident = (cast("Codes", columns[name]) for name in ("key", "value", "ident"))
    pieces = cast("BytesColumn", columns["pieces"])
    found = RecordColumns(pieces, key, value.reshape(-1, len(key)), ident)
    headers = ([*common, (ID_HEADER, it)] for it in found.idents())
    # The constructor of Record would run Python code for every alarm.
    return map(_new_record, zip(repeat(topic), found.keys(), found.values(), headers))


def _values(column: BytesColumn) -> Iterator[bytes]:
    data = column.data
    return (data[low:high].tobytes() for low, high in pairwise(column.offsets.tolist()))
