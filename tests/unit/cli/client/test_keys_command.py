"""The commands `coincide keys`: create, list and revoke keys in a file."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from cli.main import main
from service.access.callers import Caller, Role
from service.access.key_file import KeyFile
from service.access.keys import read_keys
from tests.support.messages import assert_names

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "keys.json"
    monkeypatch.setenv("COINCIDE_KEYS_FILE", str(found))
    return found


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Return exit code, output and errors of `coincide keys`."""
    with pytest.raises(SystemExit) as ended:
        main(["keys", *arguments])
    output, errors = capsys.readouterr()
    return int(ended.value.code or 0), output, errors


def test_created_key_is_printed_once_and_accepted(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--role", "editor", "--names", "a-", "--names", "b-")
    code, output, errors = run(capsys, "create", "ci", *options)
    assert code == 0
    (text,) = output.splitlines()
    assert text not in errors
    found = KeyFile(path).find(text, time.time_ns() // 1000)
    assert found == Caller("ci", Role.EDITOR, ("a-", "b-"), "key")
    assert text.split("_", 2)[2] not in path.read_text()
    for listed in (run(capsys, "list"), run(capsys, "list", "--json")):
        assert listed[0] == 0
        assert "ci" in listed[1]
        assert text not in listed[1]
        assert "sha256" not in listed[1]


def test_json_has_the_key(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, output, _ = run(capsys, "create", "ci", "--role", "admin", "--json")
    made = json.loads(output)
    assert code == 0
    assert KeyFile(path).find(made["key"], time.time_ns() // 1000) is not None
    assert made["name"] == "ci"


def test_key_expires_after_a_duration_or_at_a_time(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before_us = time.time_ns() // 1000
    assert run(capsys, "create", "one", "--role", "viewer", "--expires", "90d")[0] == 0
    later = ("--expires", "2100-01-01T00:00:00Z")
    assert run(capsys, "create", "two", "--role", "viewer", *later)[0] == 0
    one, two = read_keys(path)
    assert one.expires_at is not None
    ninety_days_us = 90 * 86_400_000_000
    assert before_us <= one.expires_at - ninety_days_us <= time.time_ns() // 1000
    assert two.expires_at == 4_102_444_800_000_000


def test_revoked_key_is_removed(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two"):
        assert run(capsys, "create", name, "--role", "viewer")[0] == 0
    assert run(capsys, "revoke", "one")[:2] == (0, "key one was revoked\n")
    assert [it.name for it in read_keys(path)] == ["two"]


@pytest.mark.parametrize(
    ("arguments", "option", "names"),
    [
        (("create", "Ada", "--role", "admin"), "NAME", ["'Ada'", "valid name"]),
        (("create", "ada", "--role", "owner"), "--role", ["'owner'", "viewer"]),
        (
            ("create", "ada", "--role", "viewer", "--names", "a-"),
            "--names",
            ["role viewer", "role editor"],
        ),
        (("create", "ada", "--role", "viewer", "--expires", "soon"), "--expires", ["'soon'"]),
        (
            ("create", "ada", "--role", "viewer", "--expires", "2001-01-01T00:00:00Z"),
            "--expires",
            ["future"],
        ),
        (("create", "known", "--role", "viewer"), "NAME", ["known"]),
        (("revoke", "ada"), "NAME", ["ada"]),
    ],
)
def test_wrong_arguments_are_named(
    path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    option: str,
    names: list[str],
) -> None:
    assert run(capsys, "create", "known", "--role", "viewer")[0] == 0
    before = path.read_bytes()
    code, output, errors = run(capsys, *arguments)
    assert (code, output) == (2, "")
    assert errors.startswith(f"error: {option}: ")
    assert_names(errors, *names)
    assert path.read_bytes() == before


def test_file_must_be_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COINCIDE_KEYS_FILE", raising=False)
    code, _, errors = run(capsys, "list")
    assert code == 2
    assert errors.startswith("error: --file: is missing; ")


def test_file_that_others_may_read_is_refused(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "create", "known", "--role", "viewer")[0] == 0
    path.chmod(0o644)
    code, _, errors = run(capsys, "list")
    assert code == 2
    assert f"chmod 600 {path}" in errors
