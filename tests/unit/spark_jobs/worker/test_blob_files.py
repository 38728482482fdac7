"""Disk cache of state blobs: it may lose any blob, but never returns a wrong blob."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

from spark_jobs.worker.blob_files import UNUSED_SECONDS, BlobFiles


def test_blob_comes_back_until_it_is_removed(tmp_path: Path) -> None:
    files = BlobFiles(str(tmp_path / "cache"))
    assert files.get("a") is None
    files.put("a", b"1")
    files.put("b", b"2")
    assert (files.get("a"), files.get("b"), files.get(None)) == (b"1", b"2", None)
    files.remove("a")
    files.remove("a")
    assert (files.get("a"), files.get("b")) == (None, b"2")
    files.clear()
    assert files.get("b") is None


def test_folder_that_cannot_be_made_is_an_empty_cache() -> None:
    files = BlobFiles("/dev/null/cache")
    files.put("a", b"1")
    files.remove("a")
    files.clear()
    assert files.get("a") is None


def test_full_disk_is_an_empty_cache_and_leaves_nothing_behind(tmp_path: Path) -> None:
    files = BlobFiles(str(tmp_path))
    files.put("small", b"1")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
    try:
        files.put("large", bytes(10_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (files.get("small"), files.get("large")) == (b"1", None)
    assert [path.name for path in tmp_path.iterdir()] == ["small"]


def test_files_that_nobody_has_used_for_long_are_removed(tmp_path: Path) -> None:
    long_ago = time.time() - UNUSED_SECONDS - 1
    for name in ("left", "used"):
        (tmp_path / name).write_bytes(name.encode())
        os.utime(tmp_path / name, (long_ago, long_ago))
    files = BlobFiles(str(tmp_path))
    assert files.get("used") == b"used"
    files.put("fresh", b"fresh")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fresh", "used"]
