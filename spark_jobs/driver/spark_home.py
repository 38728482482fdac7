"""A home folder of Spark whose Python workers import the installed pyspark.

Spark puts `python/lib/pyspark.zip` of its home folder on the path of each Python process, before
the installed pyspark. Python compiles the modules of such an archive in every process: a start of
the job has seven of them, and each needs half a second more. The home folder that is made here
links to the parts of the installed pyspark that Java needs, without its archive.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import pyspark

# `conf` exists only where someone has made it.
_PARTS = ("bin", "conf", "jars")


def spark_home(folder: Path) -> Path | None:
    """Return the home folder of the installed pyspark; make it when it is missing.

    Parameters
    ----------
    folder : Path
        Folder that contains it, which may be shared by several installations.

    Returns
    -------
    Path or None
        None when the folder cannot be written; Spark's own home folder also works.
    """
    installed = Path(pyspark.__file__).resolve().parent
    name = hashlib.sha256(str(installed).encode()).hexdigest()[:12]
    home = folder / f"home-{name}"
    if not home.is_dir():
        with suppress(OSError):
            unfinished = Path(tempfile.mkdtemp(prefix=".home-", dir=folder))
            unfinished.chmod(0o755)
            for part in _PARTS:
                (unfinished / part).symlink_to(installed / part)
            try:
                unfinished.rename(home)
            except OSError:
                # Another process was faster.
                shutil.rmtree(unfinished)
    return home if home.is_dir() else None
