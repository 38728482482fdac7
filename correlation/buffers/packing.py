"""The only serialised format of columns: a JSON header followed by the raw arrays."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from correlation.buffers.columns import BytesColumn, Column, DictionaryColumn, SetsColumn
from correlation.errors import UnknownRecordVersionError

_MAGIC = b"CoinCol2"
_ALIGNMENT = 8


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
        raw = np.ascontiguousarray(array).view(np.uint8).data
        pieces += [raw, b"\0" * (-array.nbytes % _ALIGNMENT)]
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
