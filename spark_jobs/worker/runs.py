"""Runs: the records of an Arrow batch, by topic and partition."""

from __future__ import annotations

from base64 import b64decode
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import orjson
import pyarrow as pa

from correlation.buffers.columns import BytesColumn
from correlation.parsing.records import Records

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

# Max number of records that are parsed at once, and of their bytes, except of a single record. The
# parsed records of a part fit a cache of the processor, and start few garbage collections.
_PART_RECORDS = 512
_PART_BYTES = 1024 * 1024


@dataclass(slots=True)
class Run:
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
    has_key: NDArray[np.bool_]

    def positions(self, rows: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the offsets and Kafka timestamps (in µs) of records."""
        places = np.array(rows, np.int64)
        return self.offsets[places], self.record_timestamp_us[places]

    def parts(self) -> Iterator[range]:
        """Split the rows into parts that are parsed at once, of limited number and size."""
        begin, end = self.rows.start, self.rows.stop
        starts = self.value_column.offsets
        while begin < end:
            fitting = np.searchsorted(starts, starts[begin] + _PART_BYTES, "right") - 1
            part = range(begin, max(begin + 1, min(int(fitting), begin + _PART_RECORDS, end)))
            yield part
            begin = part.stop

    def unparsed(self, rows: range) -> Records:
        """Return records for `parse_records`."""
        part = slice(rows.start, rows.stop)
        texts = self.values[part]
        numbers = np.arange(rows.start, rows.stop, dtype=np.int64)
        return Records(numbers, texts, texts, self.keys[part], self.record_timestamp_us[part])

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


def split_batch(batch: pa.RecordBatch) -> Iterator[Run]:
    """Split an Arrow batch of Kafka records where the topic or the partition changes."""
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
        "has_key": keys.is_valid().to_numpy(zero_copy_only=False),
    }
    for low, high in pairwise([0, *changes.tolist(), batch.num_rows]):
        yield Run(names[codes[low]], int(partitions[low]), range(low, high), **columns)


def _as_column(array: pa.Array) -> BytesColumn:
    """View an Arrow column of bytes as a BytesColumn; null becomes an empty value."""
    array = array.cast(pa.large_binary())
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    content = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return BytesColumn(content, ends)
