"""Serialisation of a table of s-windows, so that it outlives the process.

Definitions. Only cells of declared shapes are written. The name of a table is a hash of all inputs
of its s-windows: the window and its threshold, the declared shapes in their order, and `FORMAT`.
`FORMAT` must be raised by every change of this code to the bytes or to the computed s-windows.

Layout. A hash of the remaining bytes (BLAKE2b, 32 bytes), then compressed little-endian int64: the
cells row by row, then the intervals of s-windows with gaps. Bytes with a wrong hash are ignored.
"""

from __future__ import annotations

import zlib
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from correlation.timing.histograms.template_ranges import GAPS

if TYPE_CHECKING:
    from correlation.timing.histograms.table import WindowTable

FORMAT = 1
_HASH_BYTES = 32
_LITTLE_ENDIAN = "<i8"
_NUMBER_BYTES = 8
_CELL = 2


def name_table(table: WindowTable) -> str:
    """Return the name of all tables with the same declared shapes and window."""
    window = table.window
    keys = [table.rows.declared_keys(), table.columns.declared_keys()]
    said = [
        repr((FORMAT, *window.scalars()[:6])).encode(),
        *(b"%d" % len(listed) for listed in keys),
        *(part for listed in keys for part in listed),
    ]
    digest = blake2b(digest_size=_HASH_BYTES)
    for part in said:
        digest.update(len(part).to_bytes(_NUMBER_BYTES, "little"))
        digest.update(part)
    return f"s-windows-{digest.hexdigest()}"


def dump_table(table: WindowTable) -> bytes:
    """Write the cells of declared shapes."""
    numbers = [table.declared_cells().ravel(), table.spans().ravel()]
    packed = zlib.compress(np.concatenate(numbers).astype(_LITTLE_ENDIAN).tobytes(), level=1)
    return _hash(packed) + packed


def load_table(table: WindowTable, blob: bytes) -> bool:
    """Fill in unknown cells from the bytes of `dump_table`.

    Parameters
    ----------
    table : WindowTable
        A table with the name under which the bytes were stored.
    blob : bytes
        The stored bytes, perhaps truncated or damaged.

    Returns
    -------
    bool
        Whether the bytes are valid; if not, the table is unchanged.
    """
    packed = blob[_HASH_BYTES:]
    if _hash(packed) != blob[:_HASH_BYTES]:
        return False
    numbers = np.frombuffer(zlib.decompress(packed), _LITTLE_ENDIAN).astype(np.int64)
    mine = table.declared_cells()
    if len(numbers) < mine.size or len(numbers) % _CELL:
        return False
    cells = numbers[: mine.size].reshape(mine.shape)
    spans = numbers[mine.size :].reshape(-1, _CELL)
    has_gaps = cells[..., 0] >= GAPS
    if (cells[has_gaps].sum(axis=1) - GAPS > len(spans)).any():
        return False
    table.merge(cells, spans)
    return True


def _hash(packed: bytes) -> bytes:
    return blake2b(packed, digest_size=_HASH_BYTES).digest()
