"""Files of backups."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from cli.client.backup import Backup, Record, read_file, restore, write_file
from cli.errors import UsageError
from cli.settings import read_settings

BACKUP = Backup(
    "p",
    1_700_000_000_000_000,
    [
        Record("state", b"0/1", b"\x00\xff{}", []),
        Record("config", b"stream/a", b"{}", [("n", b"\xfe"), ("n", None)]),
        Record("config", b"stream/gone", None, [("coincide.version", b"7")]),
    ],
)


def written(folder: Path) -> Path:
    file = folder / "backup.jsonl"
    write_file(BACKUP, file)
    return file


def test_file_has_every_byte_of_the_records(tmp_path: Path) -> None:
    file = written(tmp_path)
    assert read_file(file) == BACKUP
    assert [it.name for it in tmp_path.iterdir()] == [file.name]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (BACKUP.count("config"), BACKUP.count("state")) == (1, 1)
    write_file(BACKUP._replace(records=[]), file)
    assert read_file(file).records == []


def test_file_stays_as_it_was_if_the_new_one_cannot_be_written(tmp_path: Path) -> None:
    file = written(tmp_path)
    broken = Backup("p", 0, [Record("state", b"", "text", [])])  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        write_file(broken, file)
    assert read_file(file) == BACKUP
    assert [it.name for it in tmp_path.iterdir()] == [file.name]


@pytest.mark.parametrize("kept", range(5))
def test_cut_file_is_not_restored(tmp_path: Path, kept: int) -> None:
    file = written(tmp_path)
    lines = file.read_bytes().splitlines(keepends=True)
    assert len(lines) == 5
    file.write_bytes(b"".join(lines[:kept]))
    with pytest.raises(UsageError):
        read_file(file)


@pytest.mark.parametrize(
    ("line", "text", "named"),
    [
        (0, b"[]", "line 1"),
        (0, b"{}", "line 1"),
        (0, b'{"v": 1, "prefix": "p", "made_at": "noon"}', "line 1"),
        (4, b"[]", "line 5"),
        (4, b'{"records": 2}', "not complete"),
        (4, b"", "line 5|not complete"),
        (0, b'{"v": 2, "prefix": "p", "made_at": 0}', "version 2"),
        (1, b"\xff", "line 2"),
        (2, b'{"part": "audit", "key": "", "value": null, "headers": []}', "line 3"),
        (3, b'{"part": "state", "key": "?", "value": null, "headers": []}', "line 4"),
        (3, b'{"part": "state", "key": "", "value": null}', "line 4"),
    ],
)
def test_file_that_is_no_backup_is_refused_with_its_line(
    tmp_path: Path, line: int, text: bytes, named: str
) -> None:
    file = written(tmp_path)
    lines = file.read_bytes().splitlines()
    lines[line] = text
    file.write_bytes(b"\n".join(lines))
    with pytest.raises(UsageError, match=named):
        read_file(file)


def test_backup_of_another_prefix_is_refused() -> None:
    # No broker is asked.
    settings = read_settings(bootstrap="127.0.0.1:1")
    with pytest.raises(UsageError, match="COINCIDE_PREFIX"):
        restore(settings, BACKUP, ["config"])
