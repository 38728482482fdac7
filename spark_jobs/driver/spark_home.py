"""A home folder of Spark whose Python workers import the installed pyspark.

Spark puts `python/lib/pyspark.zip` of its home folder on the path of each Python process, before
the installed pyspark. Python compiles the modules of such an archive in every process: a start of
the job has seven of them, and each needs half a second more. The home folder that is made here
links to the parts of the installed pyspark that Java needs, without its archive.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pyspark

from spark_jobs.driver.jars import MARKER

# `conf` exists only where someone has made it.
_PARTS = ("bin", "conf", "jars")


def spark_home(folder: Path) -> Path | None:
    """Return the home folder of the installed pyspark; make it when it is missing.

    Parameters
    ----------
    folder : Path
        Folder of archives that contains it. Several installations may share the folder.

    Returns
    -------
    Path or None
        None when Coincide has not filled the folder, or cannot write it. Spark's own home folder
        works as well.
    """
    if not (folder / MARKER).is_file():
        return None
    installed = Path(pyspark.__file__).resolve().parent
    name = hashlib.sha256(str(installed).encode()).hexdigest()[:12]
    home = folder / f"home-{name}"
    if not home.is_dir():
        with suppress(OSError):
            _link(installed, home)
    return home if all((home / it).resolve() == installed / it for it in _PARTS) else None


def _link(installed: Path, home: Path) -> None:
    """Make a folder with links in one step."""
    unfinished = Path(tempfile.mkdtemp(prefix=".home-", dir=home.parent))
    try:
        unfinished.chmod(0o755)
        for part in _PARTS:
            (unfinished / part).symlink_to(installed / part)
        unfinished.rename(home)
    except OSError:
        # Another process was faster, or the disk is full.
        shutil.rmtree(unfinished)


def main() -> None:
    """Make the home folder in the folder of archives, while the image is built."""
    folder = Path(os.environ["COINCIDE_JARS"], "spark")
    sys.stdout.write(f"home folder of Spark: {spark_home(folder)}\n")


if __name__ == "__main__":
    main()
