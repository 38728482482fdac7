"""The data folder of the local stack: claimed, locked, and removed only if Coincide owns it.

At its first use, a new or empty folder gets a marker; so does the folder of an older version, which
has no marker but contains only files of the stack. Any other folder is rejected and not changed.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cli.errors import UsageError
from cli.stack.processes import LOGS_KEPT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MARKER = ".coincide-data"
_MARKER_TEXT = (
    "The local stack of Coincide keeps its data here. `coincide up --fresh` removes from this "
    "folder: broker, the checkpoint-... folders, and the logs of service and job.\n"
)
_LOCK = ".lock"
_CHECKPOINT = re.compile(r"checkpoint-[0-9a-f]{12}")
# Suffixes of log files: the present one, and those of rotated logs.
_ROTATED = ("", *(f".{number}" for number in range(1, LOGS_KEPT + 1)))
_LOGS = frozenset(f"{name}.log{end}" for name in ("service", "job") for end in _ROTATED)
_BROKER = frozenset(
    {"kafka", "server.properties", "tmp", *(f"broker.log{end}" for end in _ROTATED)}
)
_REMEDY = "use another folder with --data or COINCIDE_DATA"


def check_data(data: Path) -> None:
    """Check that the data folder can be claimed, without creating anything.

    Raises
    ------
    UsageError
        The path is not a folder, cannot be read, or is not owned by a local stack.
    """
    try:
        if data.is_dir():
            _refuse_foreign(data)
        elif data.exists():
            raise UsageError(f"{data} is not a folder; {_REMEDY}")
    except OSError as error:
        raise UsageError(
            f"the data folder {data} cannot be read: {error.strerror}; {_REMEDY}"
        ) from error


def is_claimed(data: Path) -> bool:
    """Return whether a local stack has used the data folder before."""
    return (data / _LOCK).is_file()


@contextmanager
def exclusive(data: Path) -> Iterator[None]:
    """Claim the data folder, and lock it against a second stack.

    Raises
    ------
    UsageError
        The folder cannot be created or written, is not owned by a local stack, or is in use.
    """
    try:
        data.mkdir(parents=True, exist_ok=True)
        _refuse_foreign(data)
        # Not truncated: it contains the process id of the stack that holds the lock.
        lock = (data / _LOCK).open("a+", encoding="ascii", errors="replace")
    except FileExistsError:
        raise UsageError(f"{data} is not a folder; {_REMEDY}") from None
    except OSError as error:
        raise UsageError(
            f"the data folder {data} cannot be created or written: {error.strerror}; {_REMEDY}"
        ) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            process = lock.read()
            by = f" (process {process})" if process.isdecimal() else ""
            raise UsageError(
                f"another local stack uses {data}{by}; stop it, or use another folder with --data"
            ) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        if not (data / MARKER).exists():
            (data / MARKER).write_text(_MARKER_TEXT, encoding="utf-8")
        yield


def remove_data(data: Path) -> None:
    """Remove the files of earlier local stacks from the data folder, and no other files.

    Raises
    ------
    UsageError
        The folder has no marker, or a file in it cannot be removed.
    """
    if not (data / MARKER).is_file():
        raise UsageError(f"{data} is not marked as a folder of the local stack; {_REMEDY}")
    folders = [path for path in data.iterdir() if _CHECKPOINT.fullmatch(path.name)]
    try:
        for path in (data / "broker", *folders):
            # A symbolic link may point to a foreign folder: only the link is removed.
            if path.is_symlink() or path.is_file():
                path.unlink()
            elif path.exists():
                shutil.rmtree(path)
        if not (data / "logs").is_symlink():
            for name in _LOGS:
                (data / "logs" / name).unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be removed: {error.strerror}") from error


def _refuse_foreign(data: Path) -> None:
    """Raise UsageError when the folder has no marker and contains foreign files."""
    if (data / MARKER).is_file():
        return
    foreign = next(_foreign(data), None)
    if foreign is not None:
        raise UsageError(
            f"{data.absolute()} is not a folder of the local stack: {foreign} is a foreign file; "
            f"{_REMEDY}; it must be new or empty"
        )


def _foreign(data: Path) -> Iterator[Path]:
    """Yield the paths in an unmarked folder that the local stack does not write."""
    known = {"logs": _LOGS, "broker": _BROKER}
    for path in sorted(data.iterdir()):
        if path.name == _LOCK and path.is_file():
            continue
        if path.is_symlink() or not path.is_dir():
            yield path
        elif path.name in known:
            yield from (found for found in path.iterdir() if found.name not in known[path.name])
        elif not _CHECKPOINT.fullmatch(path.name):
            yield path
