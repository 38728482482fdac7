"""Temporary folders: only the leftovers of killed processes are removed."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from spark_jobs.driver import scratch
from spark_jobs.driver.scratch import ScratchFolder, temporary_files_in

_SCRIPT = """\
import sys
from spark_jobs.driver.scratch import ScratchFolder
folder = ScratchFolder("test")
(folder.path / "sub").mkdir()
(folder.path / "sub" / "file").write_text("x")
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def _temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def _owner() -> subprocess.Popen[str]:
    """Start a process that has a folder; it has made it when this returns."""
    # The script above.
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", _SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline()
    return process


def _leave_one(tmp_path: Path) -> Path:
    with _owner() as killed:
        killed.kill()
    (left,) = tmp_path.glob("coincide-test-*")
    return left


def test_folder_goes_with_its_process(tmp_path: Path) -> None:
    with _owner() as process:
        (folder,) = tmp_path.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        process.communicate()
    assert list(tmp_path.iterdir()) == []


def test_folder_of_a_killed_process_is_swept_and_that_of_a_running_one_is_not(
    tmp_path: Path,
) -> None:
    with _owner() as running:
        (kept,) = tmp_path.iterdir()
        left = _leave_one_beside(tmp_path, kept)
        with ScratchFolder("another") as own:
            assert not left.exists()
            assert set(tmp_path.iterdir()) == {kept, own.path}
            assert (kept / "sub" / "file").exists()
        running.communicate()


def _leave_one_beside(tmp_path: Path, kept: Path) -> Path:
    with _owner() as killed:
        killed.kill()
    (left,) = set(tmp_path.iterdir()) - {kept}
    return left


def test_folder_of_another_machine_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = _leave_one(tmp_path)
    monkeypatch.setattr(scratch, "_machine", lambda: ("elsewhere", "another start"))
    with ScratchFolder("another"):
        assert left.exists()


def test_folder_that_is_left_from_before_a_restart_of_the_machine_is_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = _leave_one(tmp_path)
    host = scratch._machine()[0]  # noqa: SLF001 - the machine is what the test changes
    monkeypatch.setattr(scratch, "_machine", lambda: (host, "another start"))
    with ScratchFolder("another"):
        assert not left.exists()


def test_folders_without_a_lock_and_links_stay(tmp_path: Path) -> None:
    left = _leave_one(tmp_path)
    moved = tmp_path / "precious"
    left.rename(moved)
    (tmp_path / "coincide-link").symlink_to(moved)
    (tmp_path / "coincide-data").mkdir()
    (tmp_path / "coincide-file").touch()
    with ScratchFolder("another"):
        assert (moved / "sub" / "file").exists()
        assert {path.name for path in tmp_path.glob("coincide-*")} >= {
            "coincide-link",
            "coincide-data",
            "coincide-file",
        }


def test_temporary_files_go_with_the_folder_meanwhile(tmp_path: Path) -> None:
    folder = ScratchFolder("test")
    with suppress(KeyError), temporary_files_in(folder.path):
        made = Path(tempfile.mkdtemp())
        raise KeyError
    assert made.parent == folder.path
    folder.close()
    assert not made.exists()
    assert Path(tempfile.mkdtemp()).parent == tmp_path
