"""A home folder of Spark whose Python workers import the installed pyspark.

Spark puts `python/lib/pyspark.zip` of its home folder on the path of each Python process, before
the installed pyspark. Python compiles the modules of such an archive in every process: a start of
the job has about eight of them, and each needs half a second more. The home folder that is made
here links to the parts of the installed pyspark that Java needs, without its archive.
"""

from __future__ import annotations

from pathlib import Path

import pyspark

# `conf` exists only where someone has made it.
_PARTS = ("bin", "conf", "jars")


def make_spark_home(folder: Path) -> Path:
    """Make a home folder of the installed pyspark.

    Parameters
    ----------
    folder : Path
        Folder in which it is made; it must exist until Java ends.
    """
    installed = Path(pyspark.__file__).resolve().parent
    home = folder / "home"
    home.mkdir()
    for part in _PARTS:
        (home / part).symlink_to(installed / part)
    return home
