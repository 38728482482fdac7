"""Files of a running process, some of which may disappear while they are listed."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_OTHERS = 0o077


def paths_below(folder: Path) -> Iterator[Path]:
    """Yield the files and folders below a folder, which must exist."""
    assert folder.is_dir()
    # Unlike `rglob`, os.walk leaves out folders that disappear.
    for place, folders, names in os.walk(folder):
        yield from (Path(place, name) for name in (*folders, *names))


def visible_to_others(folder: Path) -> list[Path]:
    """Return the files and folders below a folder that other users have rights on."""
    found = []
    for path in paths_below(folder):
        with suppress(FileNotFoundError):
            if path.lstat().st_mode & _OTHERS:
                found.append(path)
    return found
