"""Blobs of the state as files on the worker's machine: a second way to them, past the JVM.

Spark hands each task any idle worker, so a slot comes to another worker every few batches, which
has to restore its program. Through Spark's state store that takes a second for a million events;
the files make it some hundredths. They are a cache: a blob that is not there is in the state.

In a cluster a slot may move to another machine and leave its files behind, so those that nobody
has used for a while are removed.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

UNUSED_SECONDS = 3600.0
_PRUNE_EVERY_SECONDS = 600.0
# When this process last looked for files that nobody uses, by folder.
_pruned_at: dict[str, float] = {}


@dataclass(frozen=True, slots=True)
class BlobFiles:
    """Files in a folder, named by tokens that are never used twice.

    Parameters
    ----------
    folder : str
        On the machine of the worker; made when it is first needed.
    """

    folder: str

    def put(self, token: str, blob: bytes) -> None:
        """Keep a blob, if that is possible: a full disk is no reason to stop."""
        path = Path(self.folder, token)
        unfinished = path.with_suffix(f".{os.getpid()}")
        try:
            Path(self.folder).mkdir(0o700, parents=True, exist_ok=True)
            unfinished.write_bytes(blob)
            unfinished.rename(path)
            self._prune()
        except OSError:
            # What was written of it would take space that the checkpoint beside it needs.
            with suppress(OSError):
                unfinished.unlink()

    def get(self, token: str | None) -> bytes | None:
        """Give a blob, None when it is not here."""
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
        """Forget a blob."""
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
        """Forget all blobs; only while no query runs."""
        with suppress(OSError):
            for path in Path(self.folder).iterdir():
                path.unlink()
