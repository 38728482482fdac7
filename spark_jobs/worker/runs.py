"""Runs: records of one Kafka partition, as columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from correlation.parsing.records import Records

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from kafka_client.messages import Headers

# Max number of records that are parsed at once, and of their bytes, except of a single record. The
# parsed records of a part fit a cache of the processor, and start few garbage collections.
_PART_RECORDS = 512
_PART_BYTES = 1024 * 1024


class Columns(NamedTuple):
    """Fields of consecutive records of a Kafka partition.

    Parameters
    ----------
    offsets : list of int
        Ascending offsets.
    record_timestamp_us : list of int
        Kafka timestamps in µs; negative for a record without one.
    keys, values : list of (bytes or None)
        Keys and values.
    headers : list of (Headers or None)
        Headers.
    """

    offsets: list[int]
    record_timestamp_us: list[int]
    keys: list[bytes | None]
    values: list[bytes | None]
    headers: list[Headers | None]


@dataclass(slots=True)
class Run:
    """Consecutive records of one Kafka partition."""

    topic: str
    partition: int
    values: Sequence[bytes | None]
    keys: Sequence[bytes | None]
    headers: Sequence[Headers | None]
    offsets: NDArray[np.int64]
    record_timestamp_us: NDArray[np.int64]

    @classmethod
    def of(cls, topic: str, partition: int, columns: Columns) -> Run:
        """Build a run from the fields of at least one record."""
        keys, values, headers = columns.keys, columns.values, columns.headers
        return cls(
            topic,
            partition,
            values,
            keys,
            headers,
            np.array(columns.offsets, np.int64),
            np.maximum(np.array(columns.record_timestamp_us, np.int64), 0),
        )

    @property
    def rows(self) -> range:
        """Rows of the records."""
        return range(len(self.offsets))

    def positions(self, rows: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the offsets and Kafka timestamps (in µs) of records."""
        places = np.array(rows, np.int64)
        return self.offsets[places], self.record_timestamp_us[places]

    def parts(self) -> Iterator[range]:
        """Split the rows into parts that are parsed at once, of limited number and size."""
        begin, end = 0, len(self.offsets)
        sizes = [len(value) if value else 0 for value in self.values]
        starts = np.append(0, np.cumsum(sizes))
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

    def headers_of(self, row: int) -> Headers:
        """Return the headers of a record."""
        return self.headers[row] or ()
