"""Byte strings that are joined from pieces, many of which are equal.

A few events may form many pairs, so that the records of the pairs repeat the JSON of the events. A
byte string is then a column of codes of its pieces; the pieces are written once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit
from numpy.typing import NDArray

from correlation.buffers.columns import BytesColumn, Int64s
from correlation.buffers.numbering import read_only

Codes = NDArray[np.int32]
# Code of no piece.
MISSING = -1
_COMMA = ord(",")


class Pieces:
    """A growing table of pieces."""

    __slots__ = ("_count", "_parts")

    def __init__(self) -> None:
        self._parts: list[BytesColumn | bytes] = []
        self._count = 0

    def one(self, value: bytes) -> int:
        """Add a piece and return its code."""
        self._parts.append(value)
        self._count += 1
        return self._count - 1

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

    def to_column(self) -> BytesColumn:
        """Return all pieces, in the order of their codes."""
        offsets = np.zeros(self._count + 1, np.int64)
        content: list[bytes | memoryview] = []
        place = size = 0
        for part in self._parts:
            if isinstance(part, bytes):
                content.append(part)
                place, size = place + 1, size + len(part)
                offsets[place] = size
                continue
            first, last = int(part.offsets[0]), int(part.offsets[-1])
            content.append(np.ascontiguousarray(part.data[first:last]).data)
            offsets[place + 1 : place + len(part) + 1] = part.offsets[1:] + (size - first)
            place, size = place + len(part), size + last - first
        return BytesColumn(np.frombuffer(b"".join(content), np.uint8), offsets)


def stack_codes(count: int, rows: Sequence[Int64s | int]) -> Codes:
    """Return the codes of joined byte strings, int32[k, n], from those of each of k pieces.

    Parameters
    ----------
    count : int
        Number of byte strings, n.
    rows : sequence of int64[n] or int
        Codes of a piece, or the one code of all byte strings.
    """
    codes = np.empty((len(rows), count), np.int32)
    for place, row in enumerate(rows):
        codes[place] = row
    return codes


def join_pieces(pieces: BytesColumn, codes: Codes) -> BytesColumn:
    """Join byte strings from pieces.

    Parameters
    ----------
    pieces : BytesColumn
        The pieces.
    codes : int32[k, n]
        Byte string i consists of the pieces codes[0, i], ..., codes[k - 1, i]; MISSING: no piece.
    """
    offsets = joined_offsets(pieces, codes)
    data = np.empty(int(offsets[-1]), np.uint8)
    _join_pieces_kernel(
        read_only(pieces.data), read_only(pieces.offsets), read_only(codes), offsets, data
    )
    return BytesColumn(data, offsets)


def joined_offsets(pieces: BytesColumn, codes: Codes) -> Int64s:
    """Return the offsets of the byte strings that `join_pieces` returns, int64[n + 1]."""
    offsets = np.empty(codes.shape[1] + 1, np.int64)
    _add_sizes_kernel(read_only(pieces.offsets), read_only(codes), offsets)
    return offsets


def select_pieces(pieces: BytesColumn, rows: Sequence[Codes]) -> tuple[BytesColumn, list[Codes]]:
    """Return the pieces that have codes, and the new codes."""
    is_used = np.zeros(len(pieces) + 1, np.bool_)
    for codes in rows:
        is_used[codes] = True
    used = np.flatnonzero(is_used[:-1])
    numbers = np.full(len(pieces) + 1, MISSING, np.int32)
    numbers[used] = np.arange(len(used))
    return pieces.take(used), [numbers[codes] for codes in rows]


def split_numbers(text: bytes) -> BytesColumn:
    """Return the numbers of a JSON array of one or more numbers."""
    inner = np.frombuffer(text, np.uint8)[1:-1]
    is_digit = inner != _COMMA
    commas = np.flatnonzero(~is_digit)
    data = inner[is_digit]
    offsets = np.empty(len(commas) + 2, np.int64)
    offsets[0], offsets[-1] = 0, len(data)
    offsets[1:-1] = commas - np.arange(len(commas))
    return BytesColumn(data, offsets)


@njit(cache=True)
def _add_sizes_kernel(offsets: Int64s, codes: Codes, out_offsets: Int64s) -> None:
    """Set the offsets of all byte strings."""
    out_offsets[0] = 0
    for i in range(len(out_offsets) - 1):
        size = 0
        for k in range(len(codes)):
            code = codes[k, i]
            if code != MISSING:
                size += offsets[code + 1] - offsets[code]
        out_offsets[i + 1] = out_offsets[i] + size


@njit(cache=True)
def _join_pieces_kernel(
    data: NDArray[np.uint8],
    offsets: Int64s,
    codes: Codes,
    out_offsets: Int64s,
    out: NDArray[np.uint8],
) -> None:
    """Copy the pieces of all byte strings."""
    for i in range(len(out_offsets) - 1):
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
