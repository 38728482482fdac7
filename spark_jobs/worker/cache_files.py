"""What conditions computed beforehand, as files beside the compiled kernels.

The s-windows of 1,000 x 1,000 templates take ten seconds of a core. They are a function of what is
registered, so they are kept where numba keeps the kernels: `NUMBA_CACHE_DIR` or, where that is not
set, `coincide` in the user's cache folder. It is a cache: a file that is missing, or that is not as
it was written, is computed anew, and a folder that cannot be written is done without.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from numba import config

# Of all files of a folder; those that nobody has used for longest go first.
MOST_BYTES = 512 * 2**20
_PRIVATE_FOLDER, _PRIVATE_FILE = 0o700, 0o600
_FOLDER = "conditions"


@dataclass(frozen=True, slots=True)
class CacheFiles:
    """Files in a folder, by names that say all that their contents depend on.

    Parameters
    ----------
    folder : Path
        Made when it is first needed, for its owner only, as its files are.
    """

    folder: Path

    def get(self, name: str) -> bytes | None:
        """Return what was put under a name, None if it is not there."""
        path = self.folder / name
        try:
            blob = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        return blob

    def put(self, name: str, blob: bytes) -> None:
        """Keep a blob, if that is possible: a full disk is no reason to stop."""
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
        """Remove the files that were used least recently, as long as there are too many bytes."""
        found = []
        for path in self.folder.iterdir():
            with suppress(OSError):
                status = path.stat()
                found.append((status.st_mtime_ns, status.st_size, path))
        room = MOST_BYTES
        for _, size, path in sorted(found, reverse=True):
            room -= size
            if room < 0:
                with suppress(OSError):
                    path.unlink()


def cache_of_conditions() -> CacheFiles:
    """Return the cache of this installation."""
    # Set by numba as it reads the environment.
    kernels = vars(config)["CACHE_DIR"]
    beside = Path(kernels) if kernels else Path.home() / ".cache" / "coincide"
    return CacheFiles(beside / _FOLDER)
