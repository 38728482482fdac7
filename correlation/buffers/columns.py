"""Columns of values of one type, and their serialisation.

A column is a numpy array of numbers, a BytesColumn, a DictionaryColumn if many byte strings are
equal or missing, or a SetsColumn of sets of byte strings. `pack_columns` writes the only serialised
format of columns: a JSON header followed by the raw arrays.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count, pairwise
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from correlation.buffers.numbering import Numbering
from correlation.errors import UnknownRecordVersionError

Int64s = NDArray[np.int64]
_MAGIC = b"CoinCol2"
_ALIGNMENT = 8


@dataclass(frozen=True, slots=True)
class BytesColumn:
    """A column of byte strings.

    Parameters
    ----------
    data : uint8[bytes]
        Concatenated values.
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
        """Memory of the column, in bytes."""
        return int(self.data.nbytes + self.offsets.nbytes)

    @classmethod
    def from_list(cls, values: Sequence[bytes]) -> BytesColumn:
        """Build a column from a sequence of values."""
        offsets = np.zeros(len(values) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=offsets[1:])
        return cls(np.frombuffer(b"".join(values), np.uint8), offsets)

    def to_list(self) -> list[bytes]:
        """Return the values as Python byte strings."""
        sizes = np.diff(self.offsets)
        if len(sizes) and sizes[0] and (sizes == sizes[0]).all():
            # Values of one length: several times faster than slices.
            whole = np.ascontiguousarray(self.data[self.offsets[0] : self.offsets[-1]])
            found: list[bytes] = whole.view(f"V{sizes[0]}").tolist()
            return found
        data = self.data.tobytes()
        bounds = self.offsets.tolist()
        return list(map(data.__getitem__, map(slice, bounds, bounds[1:])))

    def take(self, rows: Int64s) -> BytesColumn:
        """Return the values at the given rows, in the order of `rows`."""
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(self.offsets[rows + 1] - self.offsets[rows], out=offsets[1:])
        data = np.empty(int(offsets[-1]), np.uint8)
        _gather_rows_kernel(self.data, self.offsets, rows, data, offsets)
        return BytesColumn(data, offsets)

    @classmethod
    def concat(cls, columns: Sequence[BytesColumn]) -> BytesColumn:
        """Concatenate columns."""
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


def number_values() -> defaultdict[Any, int]:
    """Return a dictionary that numbers its keys from 0, in order of their first use."""
    return defaultdict(count().__next__)


@njit(cache=True)
def _gather_rows_kernel(
    data: NDArray[Any],
    offsets: Int64s,
    rows: Int64s,
    out: NDArray[Any],
    out_offsets: Int64s,
) -> None:
    """Copy the values of some rows; `data` are bytes or codes."""
    for i in range(len(rows)):
        source = offsets[rows[i]]
        start = out_offsets[i]
        size = out_offsets[i + 1] - start
        # Loops over slices are vectorised: their indices are never negative.
        values, target = data[source : source + size], out[start : start + size]
        for j in range(size):
            target[j] = values[j]


@dataclass(frozen=True, slots=True)
class DictionaryColumn:
    """A column of byte strings many of which are equal or missing.

    Parameters
    ----------
    codes : int32[n]
        Value i is values[codes[i]], or missing if the code is -1.
    values : BytesColumn
        Distinct values.
    """

    codes: NDArray[np.int32]
    values: BytesColumn

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def nbytes(self) -> int:
        """Memory of the column, in bytes."""
        return int(self.codes.nbytes) + self.values.nbytes

    @classmethod
    def from_list(cls, values: Sequence[bytes | None]) -> DictionaryColumn:
        """Build a column from a sequence of values."""
        numbers = number_values()
        codes = [-1 if it is None else numbers[it] for it in values]
        return cls(np.array(codes, np.int32), BytesColumn.from_list(list(numbers)))

    def to_list(self) -> list[bytes | None]:
        """Return the values as Python byte strings; missing values are None."""
        values = [*self.values.to_list(), None]
        return [values[code] for code in self.codes.tolist()]

    def take(self, rows: Int64s) -> DictionaryColumn:
        """Return the values at the given rows, in the order of `rows`, without unused values."""
        return DictionaryColumn(*_drop_unused(self.codes[rows], self.values))

    @classmethod
    def concat(cls, columns: Sequence[DictionaryColumn]) -> DictionaryColumn:
        """Concatenate columns."""
        numbering = Numbering()
        parts = [np.zeros(0, np.int32)]
        for column in columns:
            own = numbering.number(column.values.data, column.values.offsets).astype(np.int32)
            parts.append(np.append(own, np.int32(-1))[column.codes])
        return cls(np.concatenate(parts), BytesColumn(*numbering.values()))


def _drop_unused(
    codes: NDArray[np.int32], values: BytesColumn
) -> tuple[NDArray[np.int32], BytesColumn]:
    """Return the codes and values without the values that have no code; -1 stays -1."""
    # The additional last element is for the code -1.
    is_used = np.zeros(len(values) + 1, np.bool_)
    is_used[codes] = True
    used = np.flatnonzero(is_used[:-1])
    if len(used) == len(values):
        return codes, values
    renumbered = np.full(len(values) + 1, -1, np.int32)
    renumbered[used] = np.arange(len(used))
    return renumbered[codes], values.take(used)


@dataclass(frozen=True, slots=True)
class SetsColumn:
    """A column of sets of byte strings, which share one dictionary.

    Parameters
    ----------
    offsets : int64[n + 1]
        Set i has the codes codes[offsets[i]:offsets[i + 1]]; offsets[0] is 0.
    codes : int32[m]
        Places in `values`; distinct within a set, in any order.
    values : BytesColumn
        Distinct values that are in at least one set.
    """

    offsets: Int64s
    codes: NDArray[np.int32]
    values: BytesColumn

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        """Memory of the column, in bytes."""
        return int(self.offsets.nbytes + self.codes.nbytes) + self.values.nbytes

    @classmethod
    def from_list(cls, sets: Sequence[Collection[bytes]]) -> SetsColumn:
        """Build a column from sets, or from collections of distinct values."""
        numbers = number_values()
        offsets = np.zeros(len(sets) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, sets), np.int64, len(sets)), out=offsets[1:])
        codes = map(numbers.__getitem__, chain.from_iterable(sets))
        found = np.fromiter(codes, np.int32, int(offsets[-1]))
        return cls(offsets, found, BytesColumn.from_list(list(numbers)))

    def to_list(self) -> list[frozenset[bytes]]:
        """Return the sets as Python sets."""
        values, codes, bounds = self.values.to_list(), self.codes.tolist(), self.offsets.tolist()
        return [
            frozenset(map(values.__getitem__, codes[low:high])) for low, high in pairwise(bounds)
        ]

    def take(self, rows: Int64s) -> SetsColumn:
        """Return the sets at the given rows, in the order of `rows`, without unused values."""
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(self.offsets[rows + 1] - self.offsets[rows], out=offsets[1:])
        codes = np.empty(int(offsets[-1]), np.int32)
        _gather_rows_kernel(self.codes, self.offsets, rows, codes, offsets)
        return SetsColumn(offsets, *_drop_unused(codes, self.values))

    @classmethod
    def concat(cls, columns: Sequence[SetsColumn]) -> SetsColumn:
        """Concatenate columns."""
        joined = DictionaryColumn.concat(
            [DictionaryColumn(column.codes, column.values) for column in columns]
        )
        sizes = [np.zeros(1, np.int64), *(np.diff(column.offsets) for column in columns)]
        offsets = np.cumsum(np.concatenate(sizes), dtype=np.int64)
        return cls(offsets, joined.codes, joined.values)


Column = NDArray[Any] | BytesColumn | DictionaryColumn | SetsColumn
Columns = Mapping[str, Column]


def take_columns(columns: Columns, rows: Int64s) -> dict[str, Column]:
    """Return the given rows of each column, in the order of `rows`."""
    return {
        name: column[rows] if isinstance(column, np.ndarray) else column.take(rows)
        for name, column in columns.items()
    }


def concat_columns(parts: Sequence[Columns], sizes: Sequence[int]) -> dict[str, Column]:
    """Concatenate columns by name.

    Parameters
    ----------
    parts : sequence of mappings
        Columns of each part. Columns of the same name have the same type.
    sizes : sequence of int
        Number of rows of each part.

    Returns
    -------
    dict
        The columns of all parts. Rows of a part that lacks a column are filled with missing values:
        code -1, an empty byte string, an empty set, NaN, False, or the minimum of the integer type.
    """
    examples = {name: column for part in parts for name, column in part.items()}
    return {
        name: _concat(
            [
                part[name] if name in part else _missing_like(example, size)
                for part, size in zip(parts, sizes, strict=True)
            ]
        )
        for name, example in examples.items()
    }


def _concat(columns: Sequence[Any]) -> Column:
    first = columns[0]
    if isinstance(first, np.ndarray):
        joined: NDArray[Any] = np.concatenate(columns)
        return joined
    found: Column = type(first).concat(columns)
    return found


def _missing_like(column: Column, size: int) -> Column:
    """Return a column of missing values of the same type."""
    if isinstance(column, SetsColumn):
        return SetsColumn.from_list([()] * size)
    if isinstance(column, DictionaryColumn):
        return DictionaryColumn(np.full(size, -1, np.int32), BytesColumn.from_list([]))
    if isinstance(column, BytesColumn):
        return BytesColumn.from_list([b""] * size)
    kind = column.dtype
    missing = {"f": np.nan, "b": False}.get(kind.kind)
    return np.full(size, np.iinfo(kind).min if missing is None else missing, kind)


def pack_columns(columns: Mapping[str, Column], meta: Mapping[str, object]) -> bytes:
    """Write columns and a small JSON-able header as one byte string.

    Parameters
    ----------
    columns : mapping of name to column
        One-dimensional arrays of fixed-width numbers, or columns of the classes of this module.
    meta : mapping
        JSON-able metadata.
    """
    arrays: list[NDArray[Any]] = []
    layout: list[list[object]] = []
    for name, column in columns.items():
        if isinstance(column, BytesColumn):
            parts = _bytes_arrays(column)
            layout.append([name, "bytes", len(parts[0]), len(parts[1])])
        elif isinstance(column, DictionaryColumn):
            parts = [column.codes, *_bytes_arrays(column.values)]
            layout.append([name, "dictionary", *map(len, parts)])
        elif isinstance(column, SetsColumn):
            parts = [column.offsets, column.codes, *_bytes_arrays(column.values)]
            layout.append([name, "sets", *map(len, parts)])
        else:
            parts = [column]
            layout.append([name, column.dtype.str, len(column)])
        arrays.extend(parts)
    header = json.dumps({"columns": layout, "meta": meta}).encode()
    pieces: list[bytes | memoryview] = [_MAGIC, len(header).to_bytes(8, "little"), header]
    pieces.append(b"\0" * (-len(header) % _ALIGNMENT))
    for array in arrays:
        pieces += [
            np.ascontiguousarray(array).view(np.uint8).data,
            b"\0" * (-array.nbytes % _ALIGNMENT),
        ]
    return b"".join(pieces)


def _bytes_arrays(column: BytesColumn) -> list[NDArray[Any]]:
    first, last = column.offsets[0], column.offsets[-1]
    return [column.data[first:last], column.offsets - first]


def unpack_columns(blob: bytes) -> tuple[dict[str, Column], dict[str, Any]]:
    """Read the output of `pack_columns`; the arrays are views of the byte string.

    Raises
    ------
    UnknownRecordVersionError
        `pack_columns` did not write the byte string.
    """
    if blob[:8] != _MAGIC:
        raise UnknownRecordVersionError(f"not packed columns: begins with {blob[:8]!r}")
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
            columns[name] = BytesColumn(read("|u1", counts[0]), read("<i8", counts[1]))
        elif kind == "dictionary":
            codes = read("<i4", counts[0])
            values = BytesColumn(read("|u1", counts[1]), read("<i8", counts[2]))
            columns[name] = DictionaryColumn(codes, values)
        elif kind == "sets":
            offsets, codes = read("<i8", counts[0]), read("<i4", counts[1])
            values = BytesColumn(read("|u1", counts[2]), read("<i8", counts[3]))
            columns[name] = SetsColumn(offsets, codes, values)
        else:
            columns[name] = read(kind, counts[0])
    return columns, header["meta"]
