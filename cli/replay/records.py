"""Parse the records of a topic, as the job does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import orjson
import pyarrow as pa

from cli.client.set_aside import as_text
from cli.replay.rows import Rows
from correlation.parsing.intake import parse_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cli.replay.chunks import Chunk
    from cli.replay.rows import Record, Refuse, Row
    from correlation.buffers.columns import Int64s
    from correlation.resources.streams import Stream

SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("offset", pa.int64()),
        # Kafka's timestamp, in µs.
        ("timestamp_us", pa.int64()),
    ]
)


class TopicRecords(Rows):
    """Records of a topic: JSON values, with Kafka's key, offset and timestamp."""

    def __init__(self, stream: Stream, max_bytes: int) -> None:
        self.stream = stream
        self._max_bytes = max_bytes

    def parse(self, chunk: Chunk, refuse: Refuse) -> Iterator[Row]:
        """See `Rows.parse`."""
        keys, values, _, times_us = (column.to_pylist() for column in chunk.table.columns)
        rows = range(len(values))
        for row, value in parse_values(rows, values, self._max_bytes, orjson.loads, refuse):
            yield row, value, values[row], keys[row], times_us[row]

    def positions(self, chunk: Chunk, rows: Sequence[int]) -> tuple[Int64s, Int64s]:
        """See `Rows.positions`."""
        taken = np.array(rows, np.int64)
        offsets, times_us = (chunk.table.column(it).to_numpy() for it in ("offset", "timestamp_us"))
        return offsets[taken], times_us[taken]

    def place(self, chunk: Chunk, number: int) -> dict[str, int]:
        """See `Rows.place`."""
        return {"offset": chunk.table.column("offset")[number].as_py()}

    def shown(self, chunk: Chunk, number: int) -> Record:
        """See `Rows.shown`: key and value as strings; bytes that are not UTF-8 are escaped."""
        key, value = (chunk.table.column(it)[number].as_py() for it in ("key", "value"))
        return {"key": as_text(key), "record": as_text(value)}
