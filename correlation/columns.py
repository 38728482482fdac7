"""Events as columns: the shape in which they travel, wait and are correlated.

A column is a numpy array, or a BytesColumn where its values are byte strings. `pack_columns` is
the one format in which columns leave a process: a JSON header and the raw arrays behind it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

from correlation.errors import UnknownRecordVersionError

Int64s = NDArray[np.int64]
_MAGIC = b"CoinCol1"
_ALIGNMENT = 8


@dataclass(frozen=True, slots=True)
class BytesColumn:
    """A column of byte strings.

    Parameters
    ----------
    data : uint8[bytes]
        All values one after the other.
    offsets : int64[n + 1]
        Value i is data[offsets[i]:offsets[i + 1]].
    """

    data: NDArray[np.uint8]
    offsets: Int64s

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> bytes:
        return self.data[self.offsets[index] : self.offsets[index + 1]].tobytes()

    @property
    def nbytes(self) -> int:
        """Memory held, in bytes."""
        return int(self.data.nbytes + self.offsets.nbytes)

    @classmethod
    def from_list(cls, values: Sequence[bytes]) -> BytesColumn:
        """Build a column of the given values."""
        offsets = np.zeros(len(values) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=offsets[1:])
        return cls(np.frombuffer(b"".join(values), np.uint8), offsets)

    def to_list(self) -> list[bytes]:
        """Give the values as Python byte strings."""
        data = self.data.tobytes()
        bounds = self.offsets.tolist()
        return [data[low:high] for low, high in pairwise(bounds)]

    def take(self, rows: Int64s) -> BytesColumn:
        """Give the values at the given rows, in their order."""
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(self.offsets[rows + 1] - self.offsets[rows], out=offsets[1:])
        data = np.empty(int(offsets[-1]), np.uint8)
        _gather_rows_kernel(self.data, self.offsets, rows, data, offsets)
        return BytesColumn(data, offsets)

    @classmethod
    def concat(cls, columns: Sequence[BytesColumn]) -> BytesColumn:
        """Put columns one after the other."""
        sizes = [column.offsets[-1] - column.offsets[0] for column in columns]
        starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        offsets = np.concatenate(
            [
                np.zeros(1, np.int64),
                *(
                    column.offsets[1:] - column.offsets[0] + start
                    for column, start in zip(columns, starts[:-1], strict=True)
                ),
            ]
        )
        data = np.concatenate(
            [
                np.zeros(0, np.uint8),
                *(column.data[column.offsets[0] : column.offsets[-1]] for column in columns),
            ]
        )
        return cls(data, offsets.astype(np.int64, copy=False))


@njit(cache=True)
def _gather_rows_kernel(
    data: NDArray[np.uint8],
    offsets: Int64s,
    rows: Int64s,
    out: NDArray[np.uint8],
    out_offsets: Int64s,
) -> None:
    for i in range(len(rows)):
        source = offsets[rows[i]]
        start = out_offsets[i]
        for j in range(out_offsets[i + 1] - start):
            out[start + j] = data[source + j]


Column = NDArray[Any] | BytesColumn


def pack_columns(columns: Mapping[str, Column], meta: Mapping[str, object]) -> bytes:
    """Write columns and a small JSON-able header into one byte string.

    Parameters
    ----------
    columns : mapping of name to column
        One-dimensional arrays of fixed-width numbers, or BytesColumns.
    meta : mapping
        JSON-able facts about them.
    """
    arrays: list[NDArray[Any]] = []
    layout: list[list[object]] = []
    for name, column in columns.items():
        if isinstance(column, BytesColumn):
            first, last = column.offsets[0], column.offsets[-1]
            parts = [column.data[first:last], column.offsets - first]
            layout.append([name, "bytes", len(parts[0]), len(parts[1])])
        else:
            parts = [column]
            layout.append([name, column.dtype.str, len(column)])
        arrays.extend(parts)
    header = json.dumps({"columns": layout, "meta": meta}).encode()
    pieces = [_MAGIC, len(header).to_bytes(8, "little"), header]
    pieces.append(b"\0" * (-len(header) % _ALIGNMENT))
    for array in arrays:
        raw = np.ascontiguousarray(array).tobytes()
        pieces += [raw, b"\0" * (-len(raw) % _ALIGNMENT)]
    return b"".join(pieces)


def unpack_columns(blob: bytes) -> tuple[dict[str, Column], dict[str, Any]]:
    """Read what `pack_columns` wrote; the arrays are views of the byte string.

    Raises
    ------
    UnknownRecordVersionError
        When the bytes were not written by `pack_columns`.
    """
    if blob[:8] != _MAGIC:
        raise UnknownRecordVersionError(f"no packed columns: begins with {blob[:8]!r}")
    length = int.from_bytes(blob[8:16], "little")
    header = json.loads(blob[16 : 16 + length])
    position = 16 + length + (-length % _ALIGNMENT)

    def read(dtype: str, count: int) -> NDArray[Any]:
        nonlocal position
        array: NDArray[Any] = np.frombuffer(blob, dtype, count, position)
        position += array.nbytes + (-array.nbytes % _ALIGNMENT)
        return array

    columns: dict[str, Column] = {}
    for name, kind, *counts in header["columns"]:
        if kind == "bytes":
            data = read("|u1", counts[0])
            columns[name] = BytesColumn(data, read("<i8", counts[1]))
        else:
            columns[name] = read(kind, counts[0])
    return columns, header["meta"]


@dataclass(frozen=True, slots=True)
class Events:
    """Some events of one stream, as columns of equal length n.

    Parameters
    ----------
    stream : str
        Name of the stream.
    key, id : BytesColumn
        Join key and id of each event.
    earliest, latest : int64[n]
        The interval of possible times, in µs since 1970.
    partition : int32[n]
        Kafka partition.
    offset : int64[n]
        Kafka offset.
    appended_us : int64[n]
        Kafka's timestamp of the record, in µs.
    extra : mapping of name to BytesColumn
        More columns that travel with a block and are not buffered.
    """

    stream: str
    key: BytesColumn
    id: BytesColumn
    earliest: Int64s
    latest: Int64s
    partition: NDArray[np.int32]
    offset: Int64s
    appended_us: Int64s
    extra: Mapping[str, BytesColumn] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.latest)

    def take(self, rows: Int64s) -> Events:
        """Give the events at the given rows, in their order."""
        return Events(
            self.stream,
            self.key.take(rows),
            self.id.take(rows),
            self.earliest[rows],
            self.latest[rows],
            self.partition[rows],
            self.offset[rows],
            self.appended_us[rows],
            {name: column.take(rows) for name, column in self.extra.items()},
        )

    @classmethod
    def concat(cls, parts: Sequence[Events]) -> Events:
        """Put events of one stream one after the other."""
        first = parts[0]
        if len(parts) == 1:
            return first
        return cls(
            first.stream,
            BytesColumn.concat([part.key for part in parts]),
            BytesColumn.concat([part.id for part in parts]),
            np.concatenate([part.earliest for part in parts]),
            np.concatenate([part.latest for part in parts]),
            np.concatenate([part.partition for part in parts]),
            np.concatenate([part.offset for part in parts]),
            np.concatenate([part.appended_us for part in parts]),
            {
                name: BytesColumn.concat([part.extra[name] for part in parts])
                for name in first.extra
            },
        )

    def to_bytes(self) -> bytes:
        """Write the events into one byte string."""
        columns: dict[str, Column] = {
            "key": self.key,
            "id": self.id,
            "earliest": self.earliest,
            "latest": self.latest,
            "partition": self.partition,
            "offset": self.offset,
            "appended_us": self.appended_us,
        }
        columns |= {f"extra.{name}": column for name, column in self.extra.items()}
        return pack_columns(columns, {"stream": self.stream})

    @classmethod
    def from_bytes(cls, blob: bytes) -> Events:
        """Read what `to_bytes` wrote."""
        columns, meta = unpack_columns(blob)
        extra = {
            name.removeprefix("extra."): cast("BytesColumn", columns.pop(name))
            for name in list(columns)
            if name.startswith("extra.")
        }
        return cls(stream=meta["stream"], **cast("dict[str, Any]", columns), extra=extra)

    @classmethod
    def from_rows(
        cls, stream: str, rows: Iterable[tuple[bytes, bytes, int, int, int, int, int]]
    ) -> Events:
        """Build events from rows (key, id, earliest, latest, partition, offset, appended_us)."""
        columns = list(zip(*rows, strict=True)) or [()] * 7
        return cls(
            stream,
            BytesColumn.from_list(columns[0]),
            BytesColumn.from_list(columns[1]),
            np.array(columns[2], np.int64),
            np.array(columns[3], np.int64),
            np.array(columns[4], np.int32),
            np.array(columns[5], np.int64),
            np.array(columns[6], np.int64),
        )
