"""Columns of values of one type.

A column is a numpy array of numbers, a BytesColumn, a DictionaryColumn if many byte strings are
equal or missing, or a SetsColumn of sets of byte strings. `packing` writes columns as bytes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count, pairwise
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from correlation.buffers.numbering import Numbering

Int64s = NDArray[np.int64]


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

    def view(self, low: int, high: int) -> BytesColumn:
        """Return the values low, …, high - 1 without a copy."""
        return BytesColumn(self.data, self.offsets[low : high + 1])

    def take(self, rows: Int64s) -> BytesColumn:
        """Return the values at the given rows, in the order of `rows`."""
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(self.offsets[rows + 1] - self.offsets[rows], out=offsets[1:])
        data = np.empty(int(offsets[-1]), np.uint8)
        _gather_rows_kernel(self.data, self.offsets, rows, data, offsets)
        return BytesColumn(data, offsets)

    def pick(self, rows: Int64s) -> list[bytes]:
        """Return the values at a few rows as Python byte strings."""
        bounds = zip(self.offsets[rows].tolist(), self.offsets[rows + 1].tolist(), strict=True)
        return [self.data[low:high].tobytes() for low, high in bounds]

    @classmethod
    def concat(cls, columns: Sequence[BytesColumn]) -> BytesColumn:
        """Concatenate columns."""
        offsets = np.zeros(sum(map(len, columns)) + 1, np.int64)
        content = [np.zeros(0, np.uint8)]
        count = size = 0
        for column in columns:
            first, last = int(column.offsets[0]), int(column.offsets[-1])
            end = count + len(column)
            np.add(column.offsets[1:], size - first, out=offsets[count + 1 : end + 1])
            content.append(column.data[first:last])
            count, size = end, size + last - first
        return cls(np.concatenate(content), offsets)


def number_values() -> defaultdict[Any, int]:
    """Return a dictionary that numbers its keys from 0, in order of their first use."""
    return defaultdict(count().__next__)


def number_present(values: Sequence[Any]) -> tuple[NDArray[np.int32], list[Any]]:
    """Return numbers of the values, from 0 in order of their first use; None is missing.

    Returns
    -------
    int32[n], list
        Number of each value, -1 if it is missing; and the distinct values.
    """
    numbers = number_values()
    numbers[None] = -1
    codes = np.fromiter(map(numbers.__getitem__, values), np.int32, len(values))
    del numbers[None]
    return codes, list(numbers)


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
        source, start, end = offsets[rows[i]], out_offsets[i], out_offsets[i + 1]
        # Assignment of a slice is several times faster than that of each byte.
        out[start:end] = data[source : source + end - start]


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
        codes, distinct = number_present(values)
        return cls(codes, BytesColumn.from_list(distinct))

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
        offsets, codes, values = _number_members(sets)
        return cls(offsets, codes, BytesColumn.from_list(values))

    @classmethod
    def from_strings(cls, sets: Sequence[Collection[str]]) -> SetsColumn:
        """Build a column from sets of strings; each distinct string is encoded once, in UTF-8."""
        offsets, codes, values = _number_members(sets)
        return cls(offsets, codes, BytesColumn.from_list([*map(str.encode, values)]))

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


def _number_members(
    sets: Sequence[Collection[Any]],
) -> tuple[Int64s, NDArray[np.int32], list[Any]]:
    """Return the bounds and the numbers of the members of each set, and the distinct members."""
    numbers = number_values()
    offsets = np.zeros(len(sets) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, sets), np.int64, len(sets)), out=offsets[1:])
    codes = map(numbers.__getitem__, chain.from_iterable(sets))
    return offsets, np.fromiter(codes, np.int32, int(offsets[-1])), list(numbers)


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
