"""The stored Java classes of the job; see `spark_jobs.driver.class_archive`."""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path

import pyspark

from spark_jobs.driver.class_archive import ClassArchive, digest
from spark_jobs.driver.spark_home import make_spark_home

_log = logging.getLogger(__name__)


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


def _version() -> str:
    """Return a digest of the installed Java and of Spark's archives."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin") if home else None)
    jars = Path(pyspark.__file__).resolve().parent / "jars"
    return digest(
        None if java is None else Path(java), pyspark.__version__, jars, jars.stat().st_mtime_ns
    )
