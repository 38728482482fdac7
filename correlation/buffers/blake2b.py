"""BLAKE2b digests of many messages.

Algorithm. BLAKE2b without key and with digests of 16 bytes, as `hashlib.blake2b(digest_size=16)`
computes it; no Python object is made of a message.

Reference. RFC 7693: The BLAKE2 Cryptographic Hash and Message Authentication Code (MAC).

Cost. O(bytes), in blocks of 128 bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from correlation.buffers.columns import BytesColumn, Int64s

_UInt64s = NDArray[np.uint64]
_Words4 = tuple[np.uint64, np.uint64, np.uint64, np.uint64]
_BLOCK_BYTES = 128
_DIGEST_BYTES = 16
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
_IV = np.array(
    [
        *(0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1),
        *(0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179),
    ],
    np.uint64,
)
# Depth and fanout 1, no key, size of the digest (section 2.5).
_PARAMETERS = np.uint64(0x01010000 | _DIGEST_BYTES)
# Message schedule of the ten rounds; rounds 11 and 12 repeat the first two (section 2.7).
_SIGMA = np.array(
    [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
        [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
        [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
        [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
        [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
        [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
        [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
        [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
        [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
    ],
    # Unsigned: indices that may be negative cost more.
    np.uint64,
)
_ROUNDS = 12


def digest_messages(messages: BytesColumn) -> BytesColumn:
    """Return the digest of each message, as 32 hexadecimal digits.

    Parameters
    ----------
    messages : BytesColumn
        The messages; an empty message is possible.
    """
    size = 2 * _DIGEST_BYTES
    found = np.empty(len(messages) * size, np.uint8)
    # Sums of BLAKE2b are modulo 2**64.
    with np.errstate(over="ignore"):
        _digest_messages_kernel(messages.data, messages.offsets, found)
    return BytesColumn(found, np.arange(len(messages) + 1, dtype=np.int64) * size)


@njit(cache=True)
def _digest_messages_kernel(
    data: NDArray[np.uint8], offsets: Int64s, out: NDArray[np.uint8]
) -> None:
    """Write the digests of all messages, one after the other."""
    # The words of a block are little-endian, as on every platform of numba.
    block: _UInt64s = np.zeros(16, np.uint64)
    block_bytes: NDArray[Any] = block.view(np.uint8)
    state = np.empty(8, np.uint64)
    state_bytes = state.view(np.uint8)
    written = 0
    for i in range(len(offsets) - 1):
        start, stop = offsets[i], offsets[i + 1]
        state[:] = _IV
        state[0] ^= _PARAMETERS
        position = start
        while True:
            last = min(position + _BLOCK_BYTES, stop)
            for j in range(last - position):
                block_bytes[j] = data[position + j]
            block_bytes[last - position :] = 0
            position = last
            _compress_kernel(state, block, np.uint64(last - start), last == stop)
            if last == stop:
                break
        for j in range(_DIGEST_BYTES):
            out[written] = _HEX[state_bytes[j] >> 4]
            out[written + 1] = _HEX[state_bytes[j] & 15]
            written += 2


@njit(cache=True)
def _compress_kernel(state: _UInt64s, m: _UInt64s, count: np.uint64, is_last: bool) -> None:  # noqa: FBT001 - kernels take positional arguments
    """Change the state by a block of a message of which `count` bytes are read (section 3.2)."""
    v0, v1, v2, v3 = state[0], state[1], state[2], state[3]
    v4, v5, v6, v7 = state[4], state[5], state[6], state[7]
    v8, v9, v10, v11 = _IV[0], _IV[1], _IV[2], _IV[3]
    v12, v13, v14, v15 = _IV[4] ^ count, _IV[5], _IV[6], _IV[7]
    if is_last:
        v14 = ~v14
    for number in range(_ROUNDS):
        s = _SIGMA[number % len(_SIGMA)]
        v0, v4, v8, v12 = _mix_kernel(v0, v4, v8, v12, m[s[0]], m[s[1]])
        v1, v5, v9, v13 = _mix_kernel(v1, v5, v9, v13, m[s[2]], m[s[3]])
        v2, v6, v10, v14 = _mix_kernel(v2, v6, v10, v14, m[s[4]], m[s[5]])
        v3, v7, v11, v15 = _mix_kernel(v3, v7, v11, v15, m[s[6]], m[s[7]])
        v0, v5, v10, v15 = _mix_kernel(v0, v5, v10, v15, m[s[8]], m[s[9]])
        v1, v6, v11, v12 = _mix_kernel(v1, v6, v11, v12, m[s[10]], m[s[11]])
        v2, v7, v8, v13 = _mix_kernel(v2, v7, v8, v13, m[s[12]], m[s[13]])
        v3, v4, v9, v14 = _mix_kernel(v3, v4, v9, v14, m[s[14]], m[s[15]])
    state[0] ^= v0 ^ v8
    state[1] ^= v1 ^ v9
    state[2] ^= v2 ^ v10
    state[3] ^= v3 ^ v11
    state[4] ^= v4 ^ v12
    state[5] ^= v5 ^ v13
    state[6] ^= v6 ^ v14
    state[7] ^= v7 ^ v15


@njit(cache=True)
def _mix_kernel(
    a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64, x: np.uint64, y: np.uint64
) -> _Words4:
    """Return four words of the working vector after the mixing function G (section 3.1)."""
    a = a + b + x
    d = _rotate_kernel(d ^ a, np.uint64(32))
    c = c + d
    b = _rotate_kernel(b ^ c, np.uint64(24))
    a = a + b + y
    d = _rotate_kernel(d ^ a, np.uint64(16))
    c = c + d
    b = _rotate_kernel(b ^ c, np.uint64(63))
    return a, b, c, d


@njit(cache=True)
def _rotate_kernel(word: np.uint64, by: np.uint64) -> np.uint64:
    """Return a word rotated to the right."""
    return (word >> by) | (word << (np.uint64(64) - by))
