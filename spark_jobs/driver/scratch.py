"""Temporary folders that a later process removes when their owner was killed.

A killed process cannot remove its temporary files. Each folder therefore holds a lock that the
kernel releases when the owner ends. Creating a folder first removes all folders whose lock is free.
All processes of one kernel see a lock (`flock`), so containers that share a folder do not remove
the folders of each other's running processes. Machines that share a file system may not see each
other's locks. The lock file therefore names the machine and its boot id, and folders of other
machines are not removed.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import platform
import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

_PREFIX = "coincide-"
_LOCK = ".coincide-lock"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class ScratchFolder:
    """A temporary folder, readable by its owner only, that is removed with its process.

    The folder is removed by `close`, at the end of the process, or, after the process was killed,
    by the next `ScratchFolder` that is created.

    Parameters
    ----------
    purpose
        A word in the folder's name.
    parent
        Parent folder; the system's folder for temporary files by default.
    """

    def __init__(self, purpose: str, parent: Path | None = None) -> None:
        parent = parent or Path(tempfile.gettempdir())
        _sweep(parent)
        self.path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{purpose}-", dir=parent))
        # The file is locked before it gets its name, so a sweep never finds it unlocked.
        unnamed = self.path / f"{_LOCK}.new"
        self._lock = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        os.write(self._lock, "\n".join(_machine()).encode())
        unnamed.rename(self.path / _LOCK)
        atexit.register(self.close)

    def close(self) -> None:
        """Remove the folder."""
        if self._lock >= 0:
            atexit.unregister(self.close)
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


@contextmanager
def temporary_files_in(folder: Path) -> Iterator[None]:
    """Create the temporary files of this process in a folder.

    Parameters
    ----------
    folder
        Usually the folder of a `ScratchFolder`, so that a sweep also removes these files.
    """
    before = tempfile.tempdir
    tempfile.tempdir = str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before


def _sweep(parent: Path) -> None:
    """Remove the folders in `parent` whose owners have ended."""
    for folder in parent.glob(f"{_PREFIX}*/"):
        # Some folders cannot be opened, are in use, or have an incomplete lock file (ValueError).
        with suppress(OSError, ValueError):
            if not folder.is_symlink() and folder.stat().st_uid == os.geteuid():
                _remove_if_left(folder)


def _remove_if_left(folder: Path) -> None:
    """Remove a folder if its lock is free and was created on this machine."""
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        host, boot = os.pread(lock, 1024, 0).decode().split("\n")
        # Containers of one machine share the boot id; a restarted machine keeps its host name.
        this_host, this_boot = _machine()
        if host == this_host or boot == this_boot:
            shutil.rmtree(folder)
    finally:
        os.close(lock)


def _machine() -> tuple[str, str]:
    """Return the host name and the boot id."""
    boot = _BOOT.read_text(encoding="ascii").strip() if _BOOT.exists() else platform.node()
    return platform.node(), boot
