"""One cache of compiled kernels for all workers of a test run.

Numba does not lock its cache. Two processes that compile different signatures of a function at the
same moment choose the same file for both, and the index then names a file with the wrong kernel.
Here each compilation has a file of its own. Files and indexes are replaced as a whole, so a race
can only lose an entry of an index, and that kernel is compiled again.
"""

from __future__ import annotations

import shutil
import uuid
from typing import TYPE_CHECKING

from numba.core.caching import IndexDataCacheFile

if TYPE_CHECKING:
    from pathlib import Path

# Files that are not complete, and the tables of `spark_jobs.worker.cache_files`.
_NO_KERNELS = ("*.tmp.*", "conditions")


def share_kernels() -> None:
    """Store the kernels that this process compiles in files that no other process writes."""
    # Numba has no setting for the names of the files, only this private method.
    IndexDataCacheFile._data_name = _unique_name  # type: ignore[method-assign]  # noqa: SLF001


def copy_kernels(cache: Path, folder: Path) -> None:
    """Copy a cache to a new folder while other processes write to it."""
    shutil.copytree(cache, folder, ignore=shutil.ignore_patterns(*_NO_KERNELS))


def _unique_name(file: IndexDataCacheFile, _number: int) -> str:
    """Return the name of a new file for a kernel; numba's own names are numbered from 1."""
    return str(file._data_name_pattern.format(number=uuid.uuid4().int))  # noqa: SLF001
