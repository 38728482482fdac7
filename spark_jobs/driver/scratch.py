"""Temporary folders that a later process removes when their owner was killed.

A process that is killed cannot remove its temporary files. Each folder therefore holds a lock that
the kernel releases with its owner, and every new folder begins with a sweep: folders whose lock is
free are removed. A lock (`flock`) is seen by all processes of one kernel, so the folder of a
running process is safe also between containers that share it. Between machines that share a file
system locks may not be seen; the lock file names the machine and its start, and folders of other
machines are left alone.
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
    """A temporary folder, readable by its owner only, that goes with its process.

    Removed by `close`, at the process's end, or by the first `ScratchFolder` that is made after the
    process was killed.

    Parameters
    ----------
    purpose
        A word in the folder's name.
    parent
        Folder in which it is made; that of the system for temporary files by default.
    """

    def __init__(self, purpose: str, parent: Path | None = None) -> None:
        parent = parent or Path(tempfile.gettempdir())
        _sweep(parent)
        self.path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{purpose}-", dir=parent))
        # Locked before it has its name: no sweep finds a lock that is not yet held.
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
    """Let the temporary files that this process makes meanwhile go with a folder.

    Parameters
    ----------
    folder
        Most likely that of a `ScratchFolder`: what a killed process leaves is swept with it.
    """
    before = tempfile.tempdir
    tempfile.tempdir = str(folder)
    try:
        yield
    finally:
        tempfile.tempdir = before


def _sweep(parent: Path) -> None:
    """Remove the folders below `parent` whose owners are gone."""
    for folder in parent.glob(f"{_PREFIX}*/"):
        # Some cannot be opened, are in use, or have a lock file that is not whole (ValueError).
        with suppress(OSError, ValueError):
            if not folder.is_symlink() and folder.stat().st_uid == os.geteuid():
                _remove_if_left(folder)


def _remove_if_left(folder: Path) -> None:
    """Remove a folder if its lock is free and was made on this machine."""
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        host, boot = os.pread(lock, 1024, 0).decode().split("\n")
        # Containers of a machine have one start and many names; a restarted machine, one name.
        this_host, this_boot = _machine()
        if host == this_host or boot == this_boot:
            shutil.rmtree(folder)
    finally:
        os.close(lock)


def _machine() -> tuple[str, str]:
    """Return the host's name, and what tells its present start from others."""
    boot = _BOOT.read_text(encoding="ascii").strip() if _BOOT.exists() else platform.node()
    return platform.node(), boot
