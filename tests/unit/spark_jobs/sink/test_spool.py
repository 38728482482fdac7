"""Tests of the spool of a batch's output."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spark_jobs.sink.spool import BlobSpool

if TYPE_CHECKING:
    from pathlib import Path

BLOBS = [b"", b"a", b"bc" * 500, b"\x00" * 9]


@pytest.mark.parametrize("memory_bytes", [1, 1_000_000], ids=["file", "memory"])
def test_spool_yields_its_blobs_in_order_and_again_after_an_unfinished_attempt(
    memory_bytes: int,
) -> None:
    with BlobSpool(memory_bytes) as spool:
        for blob in BLOBS:
            spool.append(blob)
        assert spool.count == len(BLOBS)
        attempt = iter(spool)
        next(attempt)
        assert list(spool) == BLOBS
        assert list(spool) == BLOBS


def test_large_spool_is_written_to_the_folder_for_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with BlobSpool(1_000) as spool:
        spool.append(b"x" * 900)
        with pytest.raises(FileNotFoundError):
            spool.append(b"x" * 900)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with BlobSpool(1_000) as spool:
        spool.append(b"x" * 100_000)
        assert list(spool) == [b"x" * 100_000]
    assert list(tmp_path.iterdir()) == []
