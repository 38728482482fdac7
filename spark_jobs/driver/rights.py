"""Check of the file permissions of folders that hold events."""

from __future__ import annotations

import logging
import stat
from pathlib import Path
from urllib.parse import unquote, urlsplit

_log = logging.getLogger(__name__)


def warn_of_wide_folder(location: str, umask: str) -> None:
    """Log a warning if an existing folder grants rights that the umask withholds.

    The folder is not changed: the rights may have been granted on purpose.

    Parameters
    ----------
    location
        Folder or URL; only folders of this machine are checked.
    umask
        Umask in octal digits.
    """
    if "://" in location and not location.startswith("file:"):
        return
    folder = Path(unquote(urlsplit(location).path) if location.startswith("file:") else location)
    try:
        mode = stat.S_IMODE(folder.stat().st_mode)
    except OSError:
        # The folder is missing or not accessible; opening it reports the error.
        return
    wide = mode & int(umask, 8)
    if wide:
        _log.warning(
            "%s: has the mode %03o, but contains events; run `chmod %03o` on it, or set "
            "COINCIDE_UMASK to %03o if this mode is intended",
            folder,
            mode,
            mode & ~wide,
            int(umask, 8) & ~mode,
        )
