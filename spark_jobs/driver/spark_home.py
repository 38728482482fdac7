"""A home folder of Spark whose Python workers import the installed pyspark.

Spark puts `python/lib/pyspark.zip` of its home folder on the path of each Python process, before
the installed pyspark. Python compiles the modules of such an archive in every process: a start of
the job has about eight of them, and each needs half a second more. The home folder that is made
here links to the parts of the installed pyspark that Java needs, without its archive.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pyspark

# `conf` exists only where someone has made it.
_PARTS = ("bin", "conf", "jars")


def make_spark_home(home: Path) -> Path:
    """Make a home folder of the installed pyspark, unless it exists.

    Parameters
    ----------
    home : Path
        The folder; it must exist until Java ends. Its parent must exist.

    Returns
    -------
    Path
        The folder.
    """
    installed = Path(pyspark.__file__).resolve().parent
    home.mkdir(exist_ok=True)
    for part in _PARTS:
        # Another job may be making the same folder.
        with suppress(FileExistsError):
            (home / part).symlink_to(installed / part)
    return home
