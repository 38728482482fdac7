"""Java archives are used from an existing folder, or downloaded completely or not at all."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from cli.errors import JarsError
from cli.stack.jars import MARKER, broker_jars, connector_jars, home_of, pin, present
from cli.stack.pins import pinned

_CONNECTOR = "spark-sql-kafka-0-10_2.13-4.2.0.jar"

# A mirror that is a folder on this machine.
_MIRROR = """\
<ivysettings>
  <settings defaultResolver="mirror"/>
  <resolvers>
    <filesystem name="mirror" m2compatible="true">
      <artifact pattern="{folder}/[organisation]/[module]/[revision]/[artifact]-[revision].[ext]"/>
    </filesystem>
  </resolvers>
</ivysettings>
"""
_MODULES = {
    "org/apache/spark": {
        "spark-sql-kafka-0-10_2.13": "4.2.0",
        "spark-token-provider-kafka-0-10_2.13": "4.0.0",
    },
    "org/apache/kafka": {"kafka-clients": "3.9.2"},
    "org/apache/commons": {"commons-pool2": "2.13.1"},
}


_JARS = {
    f"{module}-{revision}.jar": module.encode()
    for modules in _MODULES.values()
    for module, revision in modules.items()
}


def _make_mirror(folder: Path, *, without: str = "") -> Path:
    for organisation, modules in _MODULES.items():
        for module, revision in modules.items():
            if module != without:
                place = folder / organisation / module / revision
                place.mkdir(parents=True)
                (place / f"{module}-{revision}.jar").write_bytes(module.encode())
    settings = folder / "ivysettings.xml"
    settings.write_text(_MIRROR.format(folder=folder))
    return settings


@pytest.fixture(autouse=True)
def _pins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pin the archives of the mirror, whose content is made up."""
    listing = tmp_path / "pins"
    lines = [f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in _JARS.items()]
    listing.write_text("".join(lines))
    monkeypatch.setattr("cli.stack.jars._PINS", {"connector": listing, "broker": listing})


def _put_jars(folder: Path, **changes: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in {**_JARS, **changes}.items():
        (folder / name).write_bytes(content)
    return folder


def test_own_folder_of_jars_is_used_without_what_is_not_pinned(tmp_path: Path) -> None:
    own = _put_jars(tmp_path / "jars" / "connector", **{"another.jar": b"unknown"})
    assert connector_jars(own.parent) == [own / name for name in sorted(_JARS)]
    assert [path.name for path in own.parent.iterdir()] == ["connector"]


def test_own_folder_may_hold_the_jars_themselves(tmp_path: Path) -> None:
    own = _put_jars(tmp_path / "jars")
    assert home_of(own, "connector") == own
    assert connector_jars(own) == [own / name for name in sorted(_JARS)]


def test_own_folder_with_another_archive_of_that_name_is_refused(tmp_path: Path) -> None:
    own = _put_jars(tmp_path / "jars" / "connector", **{_CONNECTOR: b"something else"})
    digest = hashlib.sha256(b"something else").hexdigest()
    with pytest.raises(
        JarsError, match=rf"{_CONNECTOR}: is not the archive .* is {digest}, and must be .*; remove"
    ):
        connector_jars(own.parent)


def test_own_folder_without_one_of_the_archives_is_refused(tmp_path: Path) -> None:
    own = _put_jars(tmp_path / "jars" / "connector")
    (own / "kafka-clients-3.9.2.jar").unlink()
    with pytest.raises(JarsError, match=r"kafka-clients-3\.9\.2\.jar: is missing; put "):
        connector_jars(own.parent)


def test_archive_of_a_mirror_that_is_another_is_not_put_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = _make_mirror(tmp_path / "mirror")
    (changed,) = (tmp_path / "mirror").rglob("kafka-clients-3.9.2.jar")
    changed.write_bytes(b"something else")
    monkeypatch.setenv("COINCIDE_IVY_SETTINGS", str(settings))
    folder = tmp_path / "jars"
    with pytest.raises(JarsError, match=r"kafka-clients-3\.9\.2\.jar: is not the archive"):
        connector_jars(folder)
    assert not present(folder, "connector")
    assert not (folder / "connector").exists()


def test_what_a_killed_fetch_left_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = _put_jars(tmp_path / "jars" / ".connector-left" / "new").parent
    monkeypatch.setenv("COINCIDE_IVY_SETTINGS", str(_make_mirror(tmp_path / "mirror")))
    assert len(connector_jars(tmp_path / "jars")) == len(_JARS)
    assert not left.exists()


def test_pin_writes_the_hashes_of_what_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COINCIDE_IVY_SETTINGS", str(_make_mirror(tmp_path / "mirror")))
    expected = (tmp_path / "pins").read_text().splitlines()
    listing = tmp_path / "new pins"
    monkeypatch.setattr("cli.stack.jars._PINS", {"connector": listing})
    pin()
    assert sorted(listing.read_text().splitlines()) == sorted(expected)


def test_the_lists_pin_what_the_descriptor_names() -> None:
    root = Path(__file__).parents[4]
    connector = pinned(root / "cli" / "stack" / "connector.sha256")
    assert sorted(connector) == sorted(_JARS)
    broker = pinned(root / "cli" / "stack" / "jars.sha256")
    assert {"kafka_2.13-4.3.1.jar", "slf4j-simple-1.7.36.jar"} < set(broker)
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in {**connector, **broker}.values())


def test_jars_of_another_descriptor_do_not_count(tmp_path: Path) -> None:
    own = tmp_path / "connector"
    own.mkdir()
    (own / _CONNECTOR).touch()
    (own / MARKER).write_text("hash of another version")
    assert not present(tmp_path, "connector")


def test_jars_come_from_the_mirror_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = _make_mirror(tmp_path / "mirror")
    monkeypatch.setenv("COINCIDE_IVY_SETTINGS", str(settings))
    folder = tmp_path / "jars"
    stale = folder / "connector"
    stale.mkdir(parents=True)
    (stale / "old.jar").touch()
    (stale / MARKER).write_text("hash of another version")
    names = [jar.name for jar in connector_jars(folder)]
    assert names == [
        "commons-pool2-2.13.1.jar",
        "kafka-clients-3.9.2.jar",
        _CONNECTOR,
        "spark-token-provider-kafka-0-10_2.13-4.0.0.jar",
    ]
    # There now: the mirror is not asked again.
    monkeypatch.setenv("COINCIDE_IVY_SETTINGS", str(tmp_path / "gone"))
    assert len(connector_jars(folder)) == len(names)


def test_failed_fetch_leaves_nothing_and_shows_what_ivy_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = _make_mirror(tmp_path / "mirror", without="kafka-clients")
    monkeypatch.setenv("COINCIDE_IVY_SETTINGS", str(settings))
    folder = tmp_path / "jars"
    with pytest.raises(JarsError, match=r"(?s)COINCIDE_IVY_SETTINGS.*kafka-clients.*not found"):
        connector_jars(folder)
    assert not present(folder, "connector")
    assert sorted(path.name for path in folder.iterdir()) == [".lock", "ivy"]


def test_settings_file_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COINCIDE_IVY_SETTINGS", str(tmp_path / "gone.xml"))
    with pytest.raises(JarsError, match=r"COINCIDE_IVY_SETTINGS: .*gone\.xml"):
        broker_jars(tmp_path / "jars")
