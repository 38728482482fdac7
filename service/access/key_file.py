"""The keys that are valid now: the file of keys, read again after each change."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from service.access.keys import find_key, read_keys
from service.errors import AccessSettingsError

if TYPE_CHECKING:
    from pathlib import Path

    from service.access.callers import Caller
    from service.access.keys import Key

_LOGGER = logging.getLogger(__name__)


class KeyFile:
    """Finds callers by their keys.

    Every request compares the state of the file with that of the last read, so that a revocation
    has effect at once. If the file has become unusable, the last valid keys remain in force.

    Parameters
    ----------
    path : Path
        The file.

    Raises
    ------
    AccessSettingsError
        When the file cannot be used at the start.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._state = self._look()
        self._keys: tuple[Key, ...] = read_keys(path)
        self.problem: str | None = None

    def find(self, text: str, now_us: int) -> Caller | None:
        """Return the caller of a key; None: the key is not valid."""
        self.refresh()
        found = find_key(self._keys, text, now_us)
        return None if found is None else found.caller()

    def has(self, key_id: str | None) -> bool:
        """Return whether the file still has a key."""
        self.refresh()
        return any(it.id == key_id for it in self._keys)

    def refresh(self) -> None:
        """Read the file again if it has changed; an unusable file is logged once."""
        state = self._look()
        if state == self._state:
            return
        # Recorded before the read: a change during the read causes another one.
        self._state = state
        try:
            self._keys = read_keys(self._path)
        except AccessSettingsError as error:
            self.problem = "the file of keys cannot be used; the last valid keys remain in force"
            _LOGGER.error("%s; the last valid keys remain in force", error.detail)  # noqa: TRY400 - the sentence has the cause
            return
        self.problem = None
        _LOGGER.info("the file of keys was read again: %d keys", len(self._keys))

    def _look(self) -> tuple[int, ...] | None:
        """Return what changes when the file changes; None: it cannot be found."""
        try:
            found = self._path.stat()
        except OSError:
            return None
        return (
            found.st_ino,
            found.st_size,
            found.st_mtime_ns,
            found.st_ctime_ns,
            found.st_mode,
        )
