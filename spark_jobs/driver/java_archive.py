"""Java's classes, stored when a program ends and loaded by later starts.

Java needs 4 of the 18 CPU seconds of a job's start to read and check its classes, and 1.5 of the
3.7 of the embedded broker's. It can write the loaded classes to a file when it ends, and map this
file at the next start (class data sharing). It ignores a file of another version of itself, or of
other archives.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path

import pyspark

from spark_jobs.driver.spark_home import make_spark_home

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
        """Store the file that Java has written, or remove the file with which it crashed.

        Files of other versions are removed. An error is logged.

        Parameters
        ----------
        exit_code : int
            Java's exit code, or minus the number of the signal that has ended it.
        """
        if exit_code in _ENDED:
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
            program = self.path.name.partition("-")[0]
            for other in self.path.parent.glob(f"{program}-*.jsa"):
                if other != self.path:
                    other.unlink(missing_ok=True)
        except OSError as error:
            _log.warning("Java's classes are not stored: %s; the next start is slower", error)
            with suppress(OSError):
                copy.unlink(missing_ok=True)


class JavaArchive(ClassArchive):
    """The classes of the job: of the installed Java and Spark.

    Parameters
    ----------
    folder : Path
        Folder of the file; it must exist.
    scratch : Path
        Folder for the unfinished file.

    Attributes
    ----------
    home : Path
        Spark's home folder of all starts that use the file: Java compares the paths of classes.
    """

    def __init__(self, folder: Path, scratch: Path) -> None:
        version = _version()
        super().__init__(folder.absolute() / f"java-{version}.jsa", scratch)
        self.home = folder.absolute() / f"home-{version}"

    @property
    def options(self) -> str:
        """`arguments` as an option of Spark."""
        return " ".join(f'"{it}"' for it in self.arguments)


def open_archive(folder: Path | None, scratch: Path) -> JavaArchive | None:
    """Return the file in a folder, which is created if it is missing.

    Parameters
    ----------
    folder : Path or None
        The folder.
    scratch : Path
        Folder for the unfinished file.

    Returns
    -------
    JavaArchive or None
        None if no folder is set, or it cannot be written: the reason is logged.
    """
    if folder is None:
        return None
    archive = JavaArchive(folder, scratch)
    try:
        archive.path.parent.mkdir(parents=True, exist_ok=True)
        make_spark_home(archive.home)
    except OSError as error:
        _log.warning("Java's classes cannot be stored: %s; correct COINCIDE_JAVA_CACHE", error)
        return None
    return archive


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


def _version() -> str:
    """Return a digest of the installed Java and of Spark's archives."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    jars = Path(pyspark.__file__).resolve().parent / "jars"
    return digest(
        None if java is None else Path(java), pyspark.__version__, jars, jars.stat().st_mtime_ns
    )
