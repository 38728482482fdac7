"""Numbering of byte strings: equal values get equal numbers, in order of their first use.

Algorithm. A hash table with open addressing and linear probing over the concatenated bytes; no
Python object is made of a value. The hash function is SipHash-1-3 with a key of the process, as for
Python's own byte strings, so values that collide cannot be chosen. The numbers do not depend on
the key.

Reference. Aumasson, Bernstein 2012: SipHash: a fast short-input PRF.

Cost. O(bytes), expected.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Int64s = NDArray[np.int64]
Bytes = NDArray[np.uint8]
_UInt64s = NDArray[np.uint64]
_EMPTY = -1
_MASK = 2**64 - 1
# Python's hash of byte strings has a random key in each process.
_KEY = np.array([hash(b"coincide 0") & _MASK, hash(b"coincide 1") & _MASK], np.uint64)
# The initial state of SipHash, and the constant that it mixes in at the end.
_INITIAL = np.array(
    [0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573], np.uint64
)
_FINAL = np.uint64(0xFF)
_BYTE = np.uint64(8)
_WORD = 8


class Numbering:
    """Numbers of byte strings, from 0 in order of their first use."""

    __slots__ = ("_count", "_data", "_hashes", "_offsets", "_slots")

    def __init__(self) -> None:
        self._count = 0
        self._data = np.empty(0, np.uint8)
        self._offsets = np.zeros(1, np.int64)
        self._hashes = np.empty(0, np.uint64)
        self._slots = np.full(2, _EMPTY, np.int32)

    def __len__(self) -> int:
        return self._count

    def number(self, data: Bytes, offsets: Int64s) -> Int64s:
        """Return the number of each value, int64[n] below 2**31; new values get new numbers.

        Parameters
        ----------
        data : uint8[bytes]
            Concatenated values.
        offsets : int64[n + 1]
            Value i is data[offsets[i]:offsets[i + 1]].
        """
        codes = np.empty(len(offsets) - 1, np.int64)
        self._reserve(len(codes), int(offsets[-1] - offsets[0]))
        # Sums of SipHash are modulo 2**64.
        with np.errstate(over="ignore"):
            self._count = _number_values_kernel(
                read_only(data),
                read_only(offsets),
                self._data,
                self._offsets,
                self._hashes,
                self._slots,
                self._count,
                _KEY,
                codes,
            )
        return codes

    def values(self) -> tuple[Bytes, Int64s]:
        """Return the distinct values in the order of their numbers, as data and offsets."""
        offsets = self._offsets[: self._count + 1].copy()
        return self._data[: offsets[-1]].copy(), offsets

    def _reserve(self, values: int, size: int) -> None:
        """Make room for a number of new values with a number of bytes together."""
        count = self._count + values
        if count > len(self._hashes):
            room = max(count, 2 * len(self._hashes))
            self._offsets = _extended(self._offsets, room + 1)
            self._hashes = _extended(self._hashes, room)
        used = int(self._offsets[self._count])
        if used + size > len(self._data):
            self._data = _extended(self._data, max(used + size, 2 * len(self._data)))
        if 2 * count > len(self._slots):
            self._slots = np.full(1 << (2 * count - 1).bit_length(), _EMPTY, np.int32)
            _fill_slots_kernel(self._hashes, self._count, self._slots)


def _extended(column: NDArray[Any], size: int) -> NDArray[Any]:
    found = np.empty(size, column.dtype)
    found[: len(column)] = column
    return found


def read_only(column: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view: numba compiles other kernels for writable arguments."""
    view = np.ascontiguousarray(column).view()
    view.flags.writeable = False
    return view


@njit(cache=True)
def _fill_slots_kernel(hashes: _UInt64s, count: int, slots: NDArray[np.int32]) -> None:
    """Insert all values into an empty table."""
    mask = len(slots) - 1
    for number in range(count):
        place = np.int64(hashes[number] & np.uint64(mask))
        while slots[place] != _EMPTY:
            place = (place + 1) & mask
        slots[place] = number


@njit(cache=True)
def _number_values_kernel(
    data: Bytes,
    offsets: Int64s,
    known: Bytes,
    known_offsets: Int64s,
    hashes: _UInt64s,
    slots: NDArray[np.int32],
    count: int,
    key: _UInt64s,
    codes: Int64s,
) -> int:
    """Set the number of each value; add new values; return how many values are known.

    Parameters
    ----------
    data, offsets
        The values.
    known, known_offsets, hashes
        The known values and their hashes, with room for all new ones.
    slots : ndarray of int32
        Hash table of numbers; its length is a power of two.
    count : int
        Number of known values.
    key : ndarray of uint64, shape (2,)
        Key of the hash function.
    codes : ndarray of int64, shape (n,)
        Numbers to set.
    """
    mask = len(slots) - 1
    for i in range(len(codes)):
        start, stop = offsets[i], offsets[i + 1]
        if i and _equal_kernel(data, start, stop, data, offsets[i - 1], start):
            codes[i] = codes[i - 1]
            continue
        value = _sip_hash_kernel(data, start, stop, key)
        place = np.int64(value & np.uint64(mask))
        while True:
            number = slots[place]
            if number == _EMPTY:
                break
            if hashes[number] == value and _equal_kernel(
                data, start, stop, known, known_offsets[number], known_offsets[number + 1]
            ):
                break
            place = (place + 1) & mask
        if number == _EMPTY:
            number = count
            slots[place] = number
            hashes[number] = value
            begin = known_offsets[number]
            for j in range(stop - start):
                known[begin + j] = data[start + j]
            known_offsets[number + 1] = begin + stop - start
            count += 1
        codes[i] = number
    return count


@njit(cache=True)
def _equal_kernel(a: Bytes, start: int, stop: int, b: Bytes, first: int, last: int) -> bool:
    """Return whether a[start:stop] and b[first:last] are equal."""
    if stop - start != last - first:
        return False
    for j in range(stop - start):  # noqa: SIM110 - numba compiles no generators
        if a[start + j] != b[first + j]:
            return False
    return True


@njit(cache=True)
def _sip_hash_kernel(data: Bytes, start: int, stop: int, key: _UInt64s) -> np.uint64:
    """Return the SipHash-1-3 of data[start:stop]."""
    a, b = _INITIAL[0] ^ key[0], _INITIAL[1] ^ key[1]
    c, d = _INITIAL[2] ^ key[0], _INITIAL[3] ^ key[1]
    position = start
    while stop - position >= _WORD:
        word = _read_word_kernel(data, position, position + _WORD)
        a, b, c, d = _mix_kernel(a, b, c, d ^ word)
        a ^= word
        position += _WORD
    size = np.uint64(stop - start) << np.uint64(56)
    word = size | _read_word_kernel(data, position, stop)
    a, b, c, d = _mix_kernel(a, b, c, d ^ word)
    a ^= word
    c ^= _FINAL
    for _ in range(3):
        a, b, c, d = _mix_kernel(a, b, c, d)
    return a ^ b ^ c ^ d


@njit(cache=True)
def _read_word_kernel(data: Bytes, start: int, stop: int) -> np.uint64:
    """Return at most eight bytes as a number, the lowest byte first."""
    word = np.uint64(0)
    for j in range(stop - 1, start - 1, -1):
        word = (word << _BYTE) | np.uint64(data[j])
    return word


@njit(cache=True)
def _mix_kernel(
    a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    """Return the state after a round of SipHash."""
    a, c = a + b, c + d
    b, d = _rotate_kernel(b, np.uint64(13)) ^ a, _rotate_kernel(d, np.uint64(16)) ^ c
    a = _rotate_kernel(a, np.uint64(32))
    c, a = c + b, a + d
    b, d = _rotate_kernel(b, np.uint64(17)) ^ c, _rotate_kernel(d, np.uint64(21)) ^ a
    return a, b, _rotate_kernel(c, np.uint64(32)), d


@njit(cache=True)
def _rotate_kernel(word: np.uint64, by: np.uint64) -> np.uint64:
    """Return a word rotated to the left."""
    return (word << by) | (word >> (np.uint64(64) - by))
