"""Blobs of a batch between the operator and Kafka: in memory, or in a temporary file if large."""

from __future__ import annotations

import struct
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator

_SIZE = struct.Struct("<q")
# About a million alarms. More is written to a file.
_MEMORY_BYTES = 64 * 1024 * 1024


class BlobSpool:
    """A sequence of blobs that is written once and can be read repeatedly.

    Parameters
    ----------
    memory_bytes : int
        Max size in memory; a larger spool is a file in the folder for temporary files (TMPDIR),
        which is removed when the spool is closed.
    """

    def __init__(self, memory_bytes: int = _MEMORY_BYTES) -> None:
        self._file = SpooledTemporaryFile(max_size=memory_bytes)  # noqa: SIM115 - closed in __exit__
        self.count = 0

    def append(self, blob: bytes) -> None:
        """Add a blob; not while the spool is read."""
        self._file.write(_SIZE.pack(len(blob)))
        self._file.write(blob)
        self.count += 1

    def __iter__(self) -> Iterator[bytes]:
        """Yield the blobs in the order in which they were added."""
        self._file.seek(0)
        for _ in range(self.count):
            (size,) = _SIZE.unpack(self._file.read(_SIZE.size))
            yield self._file.read(size)

    def __enter__(self) -> Self:
        """Return the spool itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the blobs."""
        self._file.close()
