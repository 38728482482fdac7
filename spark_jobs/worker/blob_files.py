"""Local disk cache of state blobs.

Spark assigns each task to any idle worker, so a slot moves to another worker every few batches,
and that worker restores its program. For a million events, a restore takes a second through Spark's
state store, and some hundredths of a second from the files. A blob that is missing in the cache is
read from the state.

In a cluster a slot may move to another machine and leave its files behind. Files that were not used
for a while are therefore removed.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

UNUSED_SECONDS = 3600.0
_PRUNE_EVERY_SECONDS = 600.0
# Time of this process's last search for unused files, by folder.
_pruned_at: dict[str, float] = {}


@dataclass(frozen=True, slots=True)
class BlobFiles:
    """Files in a folder, named by unique tokens.

    Parameters
    ----------
    folder : str
        Folder on the machine of the worker; created when it is first needed.
    """

    folder: str

    def put(self, token: str, blob: bytes) -> None:
        """Write a blob; errors, such as a full disk, are ignored."""
        path = Path(self.folder, token)
        unfinished = path.with_suffix(f".{os.getpid()}")
        try:
            Path(self.folder).mkdir(0o700, parents=True, exist_ok=True)
            unfinished.write_bytes(blob)
            unfinished.rename(path)
            self._prune()
        except OSError:
            # A partial file would take space that the checkpoint on the same disk needs.
            with suppress(OSError):
                unfinished.unlink()

    def get(self, token: str | None) -> bytes | None:
        """Return a blob, or None when it is not in the cache."""
        if token is None:
            return None
        path = Path(self.folder, token)
        try:
            blob = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        return blob

    def remove(self, token: str | None) -> None:
        """Remove a blob."""
        if token is not None:
            with suppress(OSError):
                Path(self.folder, token).unlink()

    def _prune(self) -> None:
        now = time.monotonic()
        if now - _pruned_at.get(self.folder, -_PRUNE_EVERY_SECONDS) < _PRUNE_EVERY_SECONDS:
            return
        _pruned_at[self.folder] = now
        for path in Path(self.folder).iterdir():
            with suppress(OSError):
                if path.stat().st_mtime < time.time() - UNUSED_SECONDS:
                    path.unlink()

    def clear(self) -> None:
        """Remove all blobs; call it only while no query runs."""
        with suppress(OSError):
            for path in Path(self.folder).iterdir():
                path.unlink()
