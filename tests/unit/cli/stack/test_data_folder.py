"""The data folder: files of other programs are never removed."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from cli.errors import UsageError
from cli.stack.data_folder import MARKER, exclusive, remove_data
from tests.support.messages import naming

if TYPE_CHECKING:
    from pathlib import Path

_OWN = ("broker/kafka/meta.properties", "checkpoint-0123456789ab/query/offsets/0", "logs/job.log")


def _fill(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def _files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "name",
    [
        "logs/important.txt",
        "checkpoint-mymodel/weights.bin",
        "broker/notes.txt",
        "checkpoint-0123456789ab",
        "README",
    ],
)
def test_a_folder_that_holds_something_else_is_refused_and_left(tmp_path: Path, name: str) -> None:
    _fill(tmp_path, name)
    with (
        pytest.raises(UsageError, match=rf"{tmp_path} is not a folder .*--data or COINCIDE_DATA"),
        exclusive(tmp_path),
    ):
        remove_data(tmp_path)
    assert _files(tmp_path) == {name}


def test_a_folder_without_a_marker_is_never_emptied(tmp_path: Path) -> None:
    _fill(tmp_path, *_OWN)
    with pytest.raises(UsageError, match="is not marked"):
        remove_data(tmp_path)
    assert _files(tmp_path) == set(_OWN)


def test_a_folder_of_an_earlier_version_is_adopted(tmp_path: Path) -> None:
    _fill(tmp_path, ".lock", *_OWN)
    with exclusive(tmp_path):
        remove_data(tmp_path)
    assert _files(tmp_path) == {".lock", MARKER}


def test_what_others_put_into_a_marked_folder_stays(tmp_path: Path) -> None:
    data = tmp_path / "new" / "data"
    with exclusive(data):
        pass
    others = {"logs/important.txt", "checkpoint-mymodel/weights.bin"}
    _fill(data, *_OWN, *others)
    _fill(tmp_path, "elsewhere/precious")
    (data / "checkpoint-ba9876543210").symlink_to(tmp_path / "elsewhere")
    with exclusive(data):
        remove_data(data)
    assert _files(data) == {".lock", MARKER, *others}
    assert _files(tmp_path / "elsewhere") == {"precious"}


def test_a_second_stack_is_kept_out(tmp_path: Path) -> None:
    (tmp_path / ".lock").write_text("99999999")
    with (
        exclusive(tmp_path),
        pytest.raises(
            UsageError, match=rf"another local stack uses .* \(process {os.getpid()}\); stop it"
        ),
        exclusive(tmp_path),
    ):
        pass


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    _fill(tmp_path, "file")
    with pytest.raises(UsageError, match=naming("file", "not a folder", "COINCIDE_DATA")):
        exclusive(tmp_path / "file").__enter__()
    with pytest.raises(UsageError, match=naming("below", os.strerror(errno.ENOTDIR))):
        exclusive(tmp_path / "file" / "below").__enter__()
