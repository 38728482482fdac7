"""Records of results as columns, without a Python object per record.

A kind whose results are numerous writes them as columns (`ColumnResult`). The records of other
kinds are collected into columns. Both have one form between the operator and Kafka.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from correlation.buffers.columns import BytesColumn, Int64s
from correlation.buffers.joining import (
    MISSING,
    Codes,
    join_pieces,
    joined_offsets,
    select_pieces,
)
from correlation.operators import Encode, OutputRecord, Result, encode_json

# Single records that are collected at once.
_COLLECTED_RECORDS = 8_000
_COLLECTED_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """One or more records of a result.

    Parameters
    ----------
    pieces : BytesColumn
        Byte strings from which keys, values and ids are joined.
    key, ident : int32[n]
        Codes of the keys and of the ids: places in `pieces`.
    value : int32[k, n]
        Value i is joined from the pieces value[0, i], ..., value[k - 1, i]. It is a tombstone if
        value[0, i] is MISSING.
    """

    pieces: BytesColumn
    key: Codes
    value: Codes
    ident: Codes

    def __len__(self) -> int:
        return len(self.key)

    @classmethod
    def of(cls, records: Sequence[OutputRecord]) -> RecordColumns:
        """Return the columns of single records."""
        keys = [record.key for record in records]
        values = [record.value or b"" for record in records]
        idents = [record.ident.encode() for record in records]
        codes = np.arange(3 * len(records), dtype=np.int32).reshape(3, -1)
        value = codes[1:2]
        value[0, [record.value is None for record in records]] = MISSING
        return cls(BytesColumn.from_list([*keys, *values, *idents]), codes[0], value, codes[2])

    def keys(self) -> list[bytes]:
        """Return the key of each record."""
        return join_pieces(self.pieces, self.key[None]).to_list()

    def values(self) -> list[bytes | None]:
        """Return the value of each record; None is a tombstone."""
        values: list[bytes | None] = [*join_pieces(self.pieces, self.value).to_list()]
        for place in np.flatnonzero(self.value[0] == MISSING).tolist():
            values[place] = None
        return values

    def idents(self) -> list[bytes]:
        """Return the id of each record, in UTF-8."""
        return join_pieces(self.pieces, self.ident[None]).to_list()

    def records(self) -> Iterator[OutputRecord]:
        """Yield the single records."""
        idents = (ident.decode() for ident in self.idents())
        return map(OutputRecord, self.keys(), self.values(), idents)

    def cut(self, max_records: int, max_bytes: int) -> Iterator[RecordColumns]:
        """Split the columns into parts of bounded number and size.

        Parameters
        ----------
        max_records : int
            Max number of records of a part.
        max_bytes : int
            A part ends with the value that reaches this size.
        """
        offsets = joined_offsets(self.pieces, self.value)
        begin = 0
        while begin < len(self):
            full = int(np.searchsorted(offsets, offsets[begin] + max_bytes))
            end = min(begin + max_records, full, len(self))
            yield self._select(begin, end)
            begin = end

    def _select(self, begin: int, end: int) -> RecordColumns:
        if end - begin == len(self):
            return self
        rows = [self.key[begin:end], self.ident[begin:end], *self.value[:, begin:end]]
        pieces, (key, ident, *value) = select_pieces(self.pieces, rows)
        return RecordColumns(pieces, key, np.stack(value), ident)


class ColumnResult(ABC):
    """Base of results that write their records as columns."""

    __slots__ = ()

    @abstractmethod
    def record_columns(
        self, detected_at_us: int | Int64s, encode: Encode = encode_json
    ) -> Iterator[RecordColumns]:
        """Yield the records as columns, in parts of bounded size; see `Result.records`."""

    def records(
        self, detected_at_us: int | Int64s, encode: Encode = encode_json
    ) -> Iterator[OutputRecord]:
        """Yield the records; see `Result.records`."""
        for part in self.record_columns(detected_at_us, encode):
            yield from part.records()


def columns_of(
    result: Result, detected_at_us: int | Int64s, encode: Encode
) -> Iterator[RecordColumns]:
    """Return the records of a result as columns, in parts of bounded size.

    Parameters
    ----------
    result : Result
        Results of a condition of any kind.
    detected_at_us, encode
        See `Result.records`.
    """
    if isinstance(result, ColumnResult):
        return result.record_columns(detected_at_us, encode)
    return collect_records(result.records(detected_at_us, encode))


def collect_records(records: Iterable[OutputRecord]) -> Iterator[RecordColumns]:
    """Collect single records into columns of bounded number and size."""
    chunk: list[OutputRecord] = []
    room = _COLLECTED_BYTES
    for record in records:
        chunk.append(record)
        room -= len(record.value or b"")
        if len(chunk) == _COLLECTED_RECORDS or room <= 0:
            yield RecordColumns.of(chunk)
            chunk, room = [], _COLLECTED_BYTES
    if chunk:
        yield RecordColumns.of(chunk)
