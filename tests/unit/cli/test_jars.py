"""Java archives: taken where they are, fetched whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cli.errors import JarsError
from cli.jars import MARKER, broker_jars, home_of, present, spark_jars

if TYPE_CHECKING:
    from pathlib import Path

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
_SPARK = {
    "org/apache/spark": {
        "spark-sql-kafka-0-10_2.13": "4.2.0",
        "spark-token-provider-kafka-0-10_2.13": "4.0.0",
    },
    "org/apache/kafka": {"kafka-clients": "3.9.2"},
    "org/apache/commons": {"commons-pool2": "2.13.1"},
}


def _make_mirror(folder: Path, *, without: str = "") -> Path:
    for organisation, modules in _SPARK.items():
        for module, revision in modules.items():
            if module != without:
                place = folder / organisation / module / revision
                place.mkdir(parents=True)
                (place / f"{module}-{revision}.jar").write_bytes(module.encode())
    settings = folder / "ivysettings.xml"
    settings.write_text(_MIRROR.format(folder=folder))
    return settings


def test_own_folder_of_jars_is_used_as_it_is(tmp_path: Path) -> None:
    own = tmp_path / "spark"
    own.mkdir()
    (own / _CONNECTOR).touch()
    (own / "another.jar").touch()
    assert spark_jars(tmp_path) == [own / "another.jar", own / _CONNECTOR]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["spark"]


def test_own_folder_may_hold_the_jars_of_spark_themselves(tmp_path: Path) -> None:
    (tmp_path / _CONNECTOR).touch()
    assert home_of(tmp_path, "spark") == tmp_path
    assert spark_jars(tmp_path) == [tmp_path / _CONNECTOR]


def test_jars_of_another_descriptor_do_not_count(tmp_path: Path) -> None:
    own = tmp_path / "spark"
    own.mkdir()
    (own / _CONNECTOR).touch()
    (own / MARKER).write_text("hash of another version")
    assert not present(tmp_path, "spark")


def test_jars_come_from_the_mirror_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = _make_mirror(tmp_path / "mirror")
    monkeypatch.setenv("COINCIDE_IVY_SETTINGS", str(settings))
    folder = tmp_path / "jars"
    stale = folder / "spark"
    stale.mkdir(parents=True)
    (stale / "old.jar").touch()
    (stale / MARKER).write_text("hash of another version")
    names = [jar.name for jar in spark_jars(folder)]
    assert names == [
        "commons-pool2-2.13.1.jar",
        "kafka-clients-3.9.2.jar",
        _CONNECTOR,
        "spark-token-provider-kafka-0-10_2.13-4.0.0.jar",
    ]
    # There now: the mirror is not asked again.
    monkeypatch.setenv("COINCIDE_IVY_SETTINGS", str(tmp_path / "gone"))
    assert len(spark_jars(folder)) == len(names)


def test_failed_fetch_leaves_nothing_and_shows_what_ivy_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = _make_mirror(tmp_path / "mirror", without="kafka-clients")
    monkeypatch.setenv("COINCIDE_IVY_SETTINGS", str(settings))
    folder = tmp_path / "jars"
    with pytest.raises(JarsError, match=r"(?s)COINCIDE_IVY_SETTINGS.*kafka-clients.*not found"):
        spark_jars(folder)
    assert not present(folder, "spark")
    assert sorted(path.name for path in folder.iterdir()) == [".lock", "ivy"]


def test_settings_file_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COINCIDE_IVY_SETTINGS", str(tmp_path / "gone.xml"))
    with pytest.raises(JarsError, match=r"COINCIDE_IVY_SETTINGS names .*gone\.xml"):
        broker_jars(tmp_path / "jars")
