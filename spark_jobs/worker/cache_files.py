"""Disk cache of precomputed tables of conditions, beside the compiled kernels.

The s-windows of 1,000 x 1,000 templates take ten seconds on one core. They depend only on the
registered resources, so they are stored in numba's cache folder: `NUMBA_CACHE_DIR` or, if that is
not set, `coincide` in the user's cache folder. A missing or damaged file is computed again. A
folder that cannot be written is not used.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from numba import config

# Max total size of the files of a folder; the least recently used files are removed first.
MAX_BYTES = 512 * 2**20
_PRIVATE_FOLDER, _PRIVATE_FILE = 0o700, 0o600
_FOLDER = "conditions"


@dataclass(frozen=True, slots=True)
class CacheFiles:
    """Files in a folder; a name identifies all inputs of the content.

    Parameters
    ----------
    folder : Path
        Created when it is first needed; only the owner can access the folder and its files.
    """

    folder: Path

    def get(self, name: str) -> bytes | None:
        """Return the blob of a name, or None when it is not in the cache."""
        path = self.folder / name
        try:
            blob = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        return blob

    def put(self, name: str, blob: bytes) -> None:
        """Write a blob; errors, such as a full disk, are ignored."""
        unfinished = self.folder / f".{name}.{os.getpid()}"
        try:
            self.folder.mkdir(_PRIVATE_FOLDER, parents=True, exist_ok=True)
            unfinished.unlink(missing_ok=True)
            descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE_FILE)
            with os.fdopen(descriptor, "wb") as file:
                file.write(blob)
            unfinished.replace(self.folder / name)
            self._prune()
        except OSError:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)

    def _prune(self) -> None:
        """Remove the least recently used files until the total size is within the limit."""
        found = []
        for path in self.folder.iterdir():
            with suppress(OSError):
                status = path.stat()
                found.append((status.st_mtime_ns, status.st_size, path))
        room = MAX_BYTES
        for _, size, path in sorted(found, reverse=True):
            room -= size
            if room < 0:
                with suppress(OSError):
                    path.unlink()


def cache_of_conditions() -> CacheFiles:
    """Return the cache of this installation."""
    # numba sets this value when it reads the environment.
    kernels = vars(config)["CACHE_DIR"]
    beside = Path(kernels) if kernels else Path.home() / ".cache" / "coincide"
    return CacheFiles(beside / _FOLDER)
