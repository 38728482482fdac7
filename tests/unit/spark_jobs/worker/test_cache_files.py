"""Disk cache of precomputed tables: private, bounded, and its errors never fail a condition."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest
from numba import config

from spark_jobs.worker import cache_files
from spark_jobs.worker.cache_files import CacheFiles, cache_of_conditions

if TYPE_CHECKING:
    from pathlib import Path


def test_a_blob_is_kept_for_its_owner_only(tmp_path: Path) -> None:
    files = CacheFiles(tmp_path / "more" / "conditions")
    assert files.get("one") is None
    files.put("one", b"1")
    files.put("one", b"2")
    assert files.get("one") == b"2"
    assert stat.S_IMODE((files.folder / "one").stat().st_mode) == 0o600
    assert stat.S_IMODE(files.folder.stat().st_mode) == 0o700
    assert [it.name for it in files.folder.iterdir()] == ["one"]


def test_what_was_used_min_recently_makes_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_files, "MAX_BYTES", 25)
    files = CacheFiles(tmp_path)
    for seconds, name in enumerate(("a", "b")):
        files.put(name, bytes(10))
        os.utime(tmp_path / name, (seconds, seconds))
    # Used again: now b is the oldest.
    assert files.get("a") == bytes(10)
    files.put("c", bytes(10))
    assert sorted(it.name for it in tmp_path.iterdir()) == ["a", "c"]


def test_a_folder_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    files = CacheFiles(tmp_path / "file" / "conditions")
    files.put("one", b"1")
    assert files.get("one") is None


@pytest.mark.parametrize("given", [True, False])
def test_the_cache_is_beside_the_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, given: bool
) -> None:
    monkeypatch.setitem(vars(config), "CACHE_DIR", str(tmp_path) if given else "")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    beside = tmp_path if given else tmp_path / "home" / ".cache" / "coincide"
    assert cache_of_conditions().folder == beside / "conditions"
