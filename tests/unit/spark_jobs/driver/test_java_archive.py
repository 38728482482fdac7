"""The file with Java's classes is stored, and removed when Java crashes with it."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from spark_jobs.driver.class_archive import ClassArchive
from spark_jobs.driver.java_archive import JavaArchive
from tests.support.messages import assert_names

if TYPE_CHECKING:
    from pathlib import Path


def _closed(folder: Path, exit_code: int, *, stored: bool) -> list[str]:
    """Return the content of the stored files after a run of Java."""
    path = JavaArchive(folder, folder).path
    if stored:
        path.write_text("before")
    archive = JavaArchive(folder, folder)
    if not stored:
        # As Java does at its end.
        (folder / "java.jsa").write_text("written")
    archive.close(exit_code)
    return [it.read_text() for it in folder.glob("java-*")]


@pytest.mark.parametrize("exit_code", [0, 128 + signal.SIGTERM])
def test_classes_are_stored_after_a_run_without_error(tmp_path: Path, exit_code: int) -> None:
    assert _closed(tmp_path, exit_code, stored=False) == ["written"]


def test_classes_of_other_programs_stay(tmp_path: Path) -> None:
    others = {"broker-1.jsa", "java-1.jsa"}
    for name in others:
        (tmp_path / name).touch()
    assert _closed(tmp_path, 0, stored=False) == ["written"]
    assert {it.name for it in tmp_path.glob("*-1.jsa")} == {"broker-1.jsa"}


def test_file_that_was_loaded_is_not_replaced_by_one_of_an_earlier_run(tmp_path: Path) -> None:
    path = tmp_path / "broker-2.jsa"
    path.write_text("present")
    archive = ClassArchive(path, tmp_path)
    (tmp_path / "java.jsa").write_text("of an earlier run")
    archive.close(0)
    assert path.read_text() == "present"


def test_unfinished_file_is_removed_when_it_is_stored(tmp_path: Path) -> None:
    archive = ClassArchive(tmp_path / "broker-1.jsa", tmp_path)
    (tmp_path / "java.jsa").write_text("written")
    archive.close(0)
    assert [it.name for it in tmp_path.iterdir()] == ["broker-1.jsa"]


@pytest.mark.parametrize("exit_code", [1, -signal.SIGKILL, -signal.SIGABRT])
def test_classes_are_not_stored_after_an_error(tmp_path: Path, exit_code: int) -> None:
    assert _closed(tmp_path, exit_code, stored=False) == []


@pytest.mark.parametrize("exit_code", [-signal.SIGABRT, -signal.SIGSEGV, 128 + signal.SIGABRT])
def test_classes_with_which_java_crashed_are_removed(
    tmp_path: Path, exit_code: int, caplog: pytest.LogCaptureFixture
) -> None:
    assert _closed(tmp_path, exit_code, stored=True) == []
    assert_names(caplog.text, "Java failed", "removed")


@pytest.mark.parametrize("exit_code", [0, 1, -signal.SIGKILL, -signal.SIGTERM])
def test_classes_stay_when_java_ends_otherwise(tmp_path: Path, exit_code: int) -> None:
    assert _closed(tmp_path, exit_code, stored=True) == ["before"]
