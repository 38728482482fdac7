"""Line output of a replay: to standard output, or to a file that appears when it is complete."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cli.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path
    from typing import BinaryIO

    Write = Callable[[Iterable[bytes]], None]


@contextmanager
def lines_to(path: Path | None) -> Iterator[Write]:
    """Open a file for lines, or standard output.

    Parameters
    ----------
    path
        The file. It is written under a name that ends in ``.part`` and renamed at the end; a
        device or a pipe is written directly.

    Raises
    ------
    UsageError
        The file cannot be written.
    """
    if path is None:
        yield _writer(sys.stdout.buffer)
        sys.stdout.buffer.flush()
    elif path.exists() and not path.is_file():
        with _refusals(path):
            opened = path.open("wb")
        with opened:
            yield _writer(opened, path)
    else:
        part = path.with_name(f"{path.name}.part")
        with _refusals(path):
            opened = part.open("wb")
        try:
            with opened:
                yield _writer(opened, path)
            with _refusals(path):
                part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


@contextmanager
def _refusals(path: Path) -> Iterator[None]:
    """Convert an OSError to a UsageError that names the file."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error


def _writer(opened: BinaryIO, path: Path | None = None) -> Write:
    def write(lines: Iterable[bytes]) -> None:
        ended = (line + b"\n" for line in lines)
        if path is None:
            opened.writelines(ended)
            return
        with _refusals(path):
            opened.writelines(ended)

    return write
