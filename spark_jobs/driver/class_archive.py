"""Java's classes, stored when a program ends and loaded by later starts.

Java needs 4 of the 18 CPU seconds of a job's start to read and check its classes, and 1.5 of the
3.7 of the embedded broker's. It can write the loaded classes to a file when it ends, and map this
file at the next start (class data sharing). It ignores a file of another version of itself, or of
other archives.

This module does not import pyspark: `coincide doctor` uses it where pyspark may be missing.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_log = logging.getLogger(__name__)

# Java names each class that it does not store.
_QUIET = "-Xlog:cds*=error"
# Java has ended by itself, or after SIGTERM.
_ENDED = (0, 128 + signal.SIGTERM)
# Java's own errors end it with one of these signals. Bash adds 128 to the number.
_CRASHES = {
    code
    for number in (signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGSEGV)
    for code in (-number, 128 + number)
}


class ClassArchive:
    """A file of the classes of a Java program.

    Parameters
    ----------
    path : Path
        The file. Its name begins with that of the program and a hyphen.
    scratch : Path
        Folder for the unfinished file.

    Attributes
    ----------
    path : Path
        The file.
    exists : bool
        Whether the file existed at the start.
    """

    def __init__(self, path: Path, scratch: Path) -> None:
        self.path = path
        self.exists = path.is_file()
        self._unfinished = scratch / "java.jsa"

    @property
    def arguments(self) -> tuple[str, str]:
        """Arguments with which Java loads the file or, if it did not exist, writes it."""
        if self.exists:
            return f"-XX:SharedArchiveFile={self.path}", _QUIET
        return f"-XX:ArchiveClassesAtExit={self._unfinished}", _QUIET

    def close(self, exit_code: int) -> None:
        """Store the file that Java has written, if any, or remove that with which it crashed.

        Files of other versions are removed. An error is logged.

        Parameters
        ----------
        exit_code : int
            Java's exit code, or minus the number of the signal that has ended it.
        """
        if exit_code in _ENDED and not self.exists:
            self._store()
        elif exit_code in _CRASHES:
            self.discard()

    def discard(self) -> None:
        """Remove the file with which Java failed: every start would fail if it is the cause."""
        if self.exists:
            _log.warning("Java failed: its stored classes are removed, %s", self.path)
            with suppress(OSError):
                self.path.unlink(missing_ok=True)

    def _store(self) -> None:
        if not self._unfinished.is_file():
            return
        copy = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        try:
            shutil.copyfile(self._unfinished, copy)
            copy.replace(self.path)
        except OSError as error:
            _log.warning("Java's classes are not stored: %s; the next start is slower", error)
            with suppress(OSError):
                copy.unlink(missing_ok=True)
            return
        with suppress(OSError):
            self._unfinished.unlink()
        program = self.path.name.partition("-")[0]
        for other in self.path.parent.glob(f"{program}-*.jsa"):
            if other != self.path:
                with suppress(OSError):
                    other.unlink(missing_ok=True)


def digest(java: Path | None, *parts: object) -> str:
    """Return a digest of a version of Java, and of what its classes are read from.

    Parameters
    ----------
    java : Path or None
        Java's executable.
    *parts : object
        Names, sizes and times of the archives.
    """
    read = [*parts]
    if java is not None:
        found = java.resolve()
        read += [found, found.stat().st_size, found.stat().st_mtime_ns]
    return hashlib.sha256(repr(read).encode()).hexdigest()[:16]
