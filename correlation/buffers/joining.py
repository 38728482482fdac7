"""Byte strings that are joined from pieces, many of which are equal.

A few events may form many pairs, so that the records of the pairs repeat the JSON of the events. A
byte string is then a column of codes of its pieces; the pieces are written once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat

import numpy as np
from numba import njit
from numpy.typing import NDArray

from correlation.buffers.columns import BytesColumn, Int64s
from correlation.buffers.numbering import read_only

Codes = NDArray[np.int32]
_UInt8s = NDArray[np.uint8]
# Code of no piece.
MISSING = -1
_COMMA = ord(",")
# Size of the length in front of a framed value.
_FRAME_BYTES = 8


class Pieces:
    """A growing table of pieces."""

    __slots__ = ("_count", "_parts")

    def __init__(self) -> None:
        self._parts: list[BytesColumn] = []
        self._count = 0

    def add(self, values: BytesColumn, places: Int64s | None = None) -> Int64s:
        """Add pieces.

        Parameters
        ----------
        values : BytesColumn
            The pieces.
        places : int64[n] or None
            Places in `values`; None: each value once.

        Returns
        -------
        int64[n]
            Codes of the pieces at `places`.
        """
        first = self._count
        self._parts.append(values)
        self._count += len(values)
        return np.arange(first, self._count) if places is None else places + first

    def stack(self, count: int, parts: Iterable[Int64s | bytes]) -> Codes:
        """Return the codes of byte strings that are joined from k parts, int32[k, n].

        Parameters
        ----------
        count : int
            Number of byte strings, n.
        parts : iterable of int64[n] or bytes
            Codes of a part of all byte strings, or the bytes of a constant part, which are added.
            Consecutive constant parts become one.
        """
        rows: list[Int64s | int] = []
        constants: list[bytes] = []
        is_constant = False
        for part in parts:
            if not isinstance(part, bytes):
                rows.append(part)
            elif is_constant:
                constants[-1] += part
            else:
                rows.append(self._count + len(constants))
                constants.append(part)
            is_constant = isinstance(part, bytes)
        self.add(BytesColumn.from_list(constants))
        codes = np.empty((len(rows), count), np.int32)
        for place, row in enumerate(rows):
            codes[place] = row
        return codes

    def to_column(self) -> BytesColumn:
        """Return all pieces, in the order of their codes."""
        return BytesColumn.concat(self._parts)


def join_lists(count: int, parts: Iterable[Sequence[bytes] | bytes]) -> list[bytes]:
    """Join a few byte strings from parts; see `Pieces.stack`.

    Parameters
    ----------
    count : int
        Number of byte strings.
    parts : iterable of list of bytes, or bytes
        A part of each byte string, or the constant part of all.
    """
    lists = (repeat(it, count) if isinstance(it, bytes) else it for it in parts)
    return list(map(b"".join, zip(*lists, strict=True)))


def join_pieces(pieces: BytesColumn, codes: Codes) -> BytesColumn:
    """Join byte strings from pieces.

    Parameters
    ----------
    pieces : BytesColumn
        The pieces.
    codes : int32[k, n]
        Byte string i consists of the pieces codes[0, i], ..., codes[k - 1, i]; MISSING: no piece.
    """
    return BytesColumn(
        *_join_pieces_kernel(read_only(pieces.data), read_only(pieces.offsets), read_only(codes))
    )


def joined_offsets(pieces: BytesColumn, codes: Codes) -> Int64s:
    """Return the offsets of the byte strings that `join_pieces` returns, int64[n + 1]."""
    return _add_sizes_kernel(read_only(pieces.offsets), read_only(codes))


def select_pieces(pieces: BytesColumn, rows: Sequence[Codes]) -> tuple[BytesColumn, list[Codes]]:
    """Return the pieces that have codes, and the new codes."""
    is_used = np.zeros(len(pieces) + 1, np.bool_)
    for codes in rows:
        is_used[codes] = True
    used = np.flatnonzero(is_used[:-1])
    numbers = np.full(len(pieces) + 1, MISSING, np.int32)
    numbers[used] = np.arange(len(used))
    return pieces.take(used), [numbers[codes] for codes in rows]


def frame_values(values: BytesColumn) -> BytesColumn:
    """Return the values, each prefixed with its length; see `result_format.framed`."""
    return BytesColumn(*_frame_values_kernel(read_only(values.data), read_only(values.offsets)))


def write_numbers(numbers: Sequence[float], encode: Callable[[object], bytes]) -> BytesColumn:
    """Write one or more numbers as JSON.

    Parameters
    ----------
    numbers : sequence of int or float
        The numbers.
    encode : callable
        JSON encoder that writes arrays without spaces; it is called once.
    """
    return BytesColumn(*_split_array_kernel(np.frombuffer(encode(numbers), np.uint8)))


@njit(cache=True)
def _add_sizes_kernel(offsets: Int64s, codes: Codes) -> Int64s:
    """Return the offsets of all byte strings."""
    out_offsets = np.empty(codes.shape[1] + 1, np.int64)
    out_offsets[0] = 0
    for i in range(codes.shape[1]):
        size = 0
        for k in range(len(codes)):
            code = codes[k, i]
            if code != MISSING:
                size += offsets[code + 1] - offsets[code]
        out_offsets[i + 1] = out_offsets[i] + size
    return out_offsets


@njit(cache=True)
def _join_pieces_kernel(data: _UInt8s, offsets: Int64s, codes: Codes) -> tuple[_UInt8s, Int64s]:
    """Return data and offsets of all byte strings."""
    out_offsets = _add_sizes_kernel(offsets, codes)
    out = np.empty(out_offsets[-1], np.uint8)
    for i in range(codes.shape[1]):
        position = out_offsets[i]
        for k in range(len(codes)):
            code = codes[k, i]
            if code == MISSING:
                continue
            start = offsets[code]
            size = offsets[code + 1] - start
            # Loops over slices are vectorised: their indices are never negative.
            source, target = data[start : start + size], out[position : position + size]
            for j in range(size):
                target[j] = source[j]
            position += size
    return out, out_offsets


@njit(cache=True)
def _frame_values_kernel(data: _UInt8s, offsets: Int64s) -> tuple[_UInt8s, Int64s]:
    """Return data and offsets of the values, each after its length, little-endian."""
    count = len(offsets) - 1
    out_offsets = np.empty(count + 1, np.int64)
    out_offsets[0] = 0
    out = np.empty(offsets[-1] - offsets[0] + count * _FRAME_BYTES, np.uint8)
    for i in range(count):
        position, size = out_offsets[i], offsets[i + 1] - offsets[i]
        end = position + _FRAME_BYTES + size
        for j in range(_FRAME_BYTES):
            out[position + j] = (size >> (8 * j)) & 0xFF
        out[position + _FRAME_BYTES : end] = data[offsets[i] : offsets[i + 1]]
        out_offsets[i + 1] = end
    return out, out_offsets


@njit(cache=True)
def _split_array_kernel(text: _UInt8s) -> tuple[_UInt8s, Int64s]:
    """Return data and offsets of the numbers of a JSON array."""
    count = 1
    for byte in text:
        count += byte == _COMMA
    out = np.empty(len(text) - 1 - count, np.uint8)
    out_offsets = np.empty(count + 1, np.int64)
    out_offsets[0] = 0
    size = number = 0
    # Without brackets.
    for byte in text[1:-1]:
        if byte == _COMMA:
            number += 1
            out_offsets[number] = size
        else:
            out[size] = byte
            size += 1
    out_offsets[count] = size
    return out, out_offsets
