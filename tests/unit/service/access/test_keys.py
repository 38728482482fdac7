"""API keys: their form, the file that holds their hashes, its rights and its changes."""

from __future__ import annotations

import json
import logging
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from correlation.errors import InvalidFieldError
from service.access.callers import Caller, Role
from service.access.key_file import KeyFile
from service.access.keys import (
    changing_keys,
    find_key,
    is_key,
    is_mounted_secret,
    new_key,
    read_keys,
    write_keys,
)
from service.errors import AccessSettingsError
from tests.support.messages import assert_names, naming
from tests.support.patience import wait_until

NOW_US = 1_767_225_600_000_000


def test_key_has_a_random_secret_that_the_entry_does_not_contain() -> None:
    made = [new_key("ci", "editor", ["a-"], NOW_US) for _ in range(2)]
    (first, text), (_, other) = made
    assert text != other
    assert is_key(text)
    secret = text.split("_", 2)[2]
    # 256 bits in base64.
    assert len(secret) == 43
    assert secret not in first.model_dump_json()
    assert first.caller() == Caller("ci", Role.EDITOR, ("a-",), "key")


def test_key_is_found_by_its_whole_text_only() -> None:
    first, text = new_key("first", "viewer", (), NOW_US)
    second, other = new_key("second", "viewer", (), NOW_US)
    keys = (first, second)
    assert find_key(keys, text, NOW_US) == first
    assert find_key(keys, other, NOW_US) == second
    mixed = f"coincide_{first.id}_{other.split('_', 2)[2]}"
    for wrong in (text[:-1], text + "A", text.upper(), mixed, "coincide_", f"coincide_{first.id}_"):
        assert find_key(keys, wrong, NOW_US) is None


def test_key_expires() -> None:
    key, text = new_key("ci", "viewer", (), NOW_US, NOW_US + 10)
    assert find_key([key], text, NOW_US + 9) == key
    assert find_key([key], text, NOW_US + 10) is None


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": "Ada Lovelace"}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"role": "owner"}, "role"),
        ({"role": "viewer", "names": ["a-"]}, "names"),
        ({"role": "admin", "names": ["a-"]}, "names"),
        ({"names": [""]}, "names"),
        ({"names": ["A"]}, "names"),
        ({"expires_at_us": NOW_US}, "expires"),
    ],
)
def test_key_with_a_wrong_value_is_refused(changes: dict[str, Any], field: str) -> None:
    values: dict[str, Any] = {"name": "ci", "role": "editor", "names": (), "now_us": NOW_US}
    with pytest.raises(InvalidFieldError) as caught:
        new_key(**(values | changes))
    assert caught.value.field == field


def test_file_is_private_and_holds_hashes_only(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    key, text = new_key("ci", "editor", ["a-"], NOW_US)
    write_keys(path, [key])
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_keys(path) == (key,)
    assert text.split("_", 2)[2] not in path.read_text()
    assert [it.name for it in tmp_path.iterdir()] == ["keys.json"]


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o620, 0o602, 0o606])
def test_file_to_which_others_have_rights_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "keys.json"
    write_keys(path, [])
    path.chmod(mode)
    with pytest.raises(AccessSettingsError) as caught:
        read_keys(path)
    assert f"mode {mode:04o}" in caught.value.detail
    assert f"chmod 600 {path}" in caught.value.detail


# User of the image (Dockerfile), group of deploy/kubernetes (fsGroup), another group.
USER, GROUP, OTHER_GROUP = 10001, 10001, 10002


@pytest.mark.parametrize(
    ("mode", "owner", "group", "expected"),
    [
        (0o440, 0, GROUP, True),
        (0o640, 0, GROUP, True),
        (0o440, 0, OTHER_GROUP, False),
        (0o460, 0, GROUP, False),
        (0o450, 0, GROUP, False),
        (0o444, 0, GROUP, False),
        (0o442, 0, GROUP, False),
        (0o441, 0, GROUP, False),
        # The process can narrow the rights of its own file, and another user could widen them.
        (0o440, USER, GROUP, False),
        (0o440, 1000, GROUP, False),
    ],
)
def test_group_reads_a_file_of_root_only(
    mode: int, owner: int, group: int, *, expected: bool
) -> None:
    status = os.stat_result((stat.S_IFREG | mode, 1, 1, 1, owner, group, 0, 0, 0, 0))
    assert is_mounted_secret(status, USER, {GROUP}) is expected
    assert not is_mounted_secret(status, 0, {GROUP, 0})


READ_AS_POD = """
import os, sys
from pathlib import Path
from service.access.keys import read_keys
from service.errors import AccessSettingsError

path, user, group = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
os.setgroups([group])
os.setgid(user)
os.setuid(user)
try:
    print([it.name for it in read_keys(Path(path))])
except AccessSettingsError as error:
    print(error.detail)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of root and change user")
@pytest.mark.parametrize(
    ("mode", "group", "said"),
    [
        (0o440, GROUP, "['ci']"),
        (0o444, GROUP, "other users have rights"),
        (0o440, OTHER_GROUP, "cannot be read (Permission denied)"),
    ],
)
def test_secret_is_read_with_the_group_of_the_pod(mode: int, group: int, said: str) -> None:
    # Other users cannot enter the folders of pytest.
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        path = Path(folder) / "keys.json"
        write_keys(path, [new_key("ci", "viewer", (), NOW_US)[0]])
        os.chown(path, 0, group)
        path.chmod(mode)
        command = [sys.executable, "-c", READ_AS_POD, str(path), str(USER), str(GROUP)]
        # This Python, with the script above.
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
        assert said in done.stdout


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"v": 2, "keys": []}',
        '{"v": 1}',
        '{"v": 1, "keys": [{}]}',
        '{"v": 1, "keys": [], "more": 1}',
    ],
)
def test_file_that_is_not_valid_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "keys.json"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(AccessSettingsError, match=naming(path, "not a valid file")):
        read_keys(path)


def test_error_does_not_repeat_the_content_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text('{"v": 1, "keys": [{"name": "planted-secret"}]}')
    path.chmod(0o600)
    with pytest.raises(AccessSettingsError) as caught:
        read_keys(path)
    assert "planted-secret" not in caught.value.detail
    assert "keys.0" in caught.value.detail


def test_two_keys_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    write_keys(path, [new_key("ci", "viewer", (), NOW_US)[0] for _ in range(2)])
    with pytest.raises(AccessSettingsError, match=naming(path, "two keys", "name ci")):
        read_keys(path)


def test_missing_file_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(AccessSettingsError, match="coincide keys create NAME"):
        read_keys(tmp_path / "keys.json")


def test_revocation_and_new_keys_have_effect_at_once(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    first, text = new_key("first", "viewer", (), NOW_US)
    write_keys(path, [first])
    keys = KeyFile(path)
    assert keys.find(text, NOW_US) == first.caller()
    second, other = new_key("second", "admin", (), NOW_US)
    write_keys(path, [second])
    assert keys.find(text, NOW_US) is None
    assert keys.find(other, NOW_US) == second.caller()


@pytest.mark.parametrize("damage", ["content", "rights", "removed"])
def test_unusable_file_keeps_the_last_valid_keys(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    path = tmp_path / "keys.json"
    key, text = new_key("ci", "viewer", (), NOW_US)
    write_keys(path, [key])
    keys = KeyFile(path)
    content = path.read_text()
    if damage == "content":
        path.write_text("{")
    elif damage == "rights":
        path.chmod(0o644)
    else:
        path.unlink()
    for _ in range(3):
        assert keys.find(text, NOW_US) == key.caller()
    assert_names(keys.problem, "file of keys", "last valid keys")
    # Reported once, not for every request.
    assert [it.levelname for it in caplog.records] == ["ERROR"]
    restored = json.loads(content) | {"keys": []}
    path.unlink(missing_ok=True)
    path.write_text(json.dumps(restored))
    path.chmod(0o600)
    assert keys.find(text, NOW_US) is None
    assert keys.problem is None


def test_interrupted_write_leaves_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "keys.json"
    key, _ = new_key("ci", "viewer", (), NOW_US)
    write_keys(path, [key])

    def fail(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        write_keys(path, [])
    assert read_keys(path) == (key,)
    assert [it.name for it in tmp_path.iterdir()] == ["keys.json"]


def test_changes_of_the_file_exclude_each_other(tmp_path: Path) -> None:
    path, held = tmp_path / "keys.json", threading.Event()

    def change() -> None:
        with changing_keys(path):
            held.set()

    def waits() -> bool:
        place = f":{(tmp_path / '.keys.json.lock').stat().st_ino} "
        locks = Path("/proc/locks").read_text(encoding="ascii").splitlines()
        return any("->" in line and place in line for line in locks)

    other = threading.Thread(target=change)
    with changing_keys(path):
        other.start()
        wait_until(waits)
        assert not held.is_set()
    other.join()
    assert held.is_set()


def test_a_change_keeps_owner_and_mode(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    write_keys(path, [])
    if os.geteuid() == 0:
        os.chown(path, 1234, 1234)
    before = path.stat()
    write_keys(path, [new_key("a", "viewer", (), 0)[0]])
    after = path.stat()
    assert after.st_ino != before.st_ino
    assert (after.st_uid, after.st_gid, after.st_mode) == (
        before.st_uid,
        before.st_gid,
        before.st_mode,
    )


def test_empty_prefix_in_the_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    write_keys(path, [new_key("a", "editor", ["a-"], 0)[0]])
    path.write_text(path.read_text().replace('"a-"', '""'))
    with pytest.raises(AccessSettingsError, match=r"at keys\.0\.names"):
        read_keys(path)
