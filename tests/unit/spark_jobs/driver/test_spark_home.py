"""The home folder of Spark: what Java needs, and no archive of Python modules."""

from __future__ import annotations

from pathlib import Path

import pyspark
import pytest

from spark_jobs.driver.jars import MARKER
from spark_jobs.driver.spark_home import main, spark_home

INSTALLED = Path(pyspark.__file__).resolve().parent


@pytest.fixture
def archives(tmp_path: Path) -> Path:
    """Return a folder that Coincide has filled."""
    folder = tmp_path / "spark"
    folder.mkdir()
    (folder / MARKER).touch()
    return folder


def test_home_links_to_the_installed_jars_and_has_no_archive_of_pyspark(archives: Path) -> None:
    home = spark_home(archives)
    assert home is not None
    assert (home / "jars").resolve() == INSTALLED / "jars"
    assert (home / "bin" / "spark-submit").is_file()
    assert not (home / "python").exists()
    # A second start uses it, and leaves nothing else behind.
    assert spark_home(archives) == home
    assert set(archives.iterdir()) == {home, archives / MARKER}


def test_folder_of_the_site_is_not_changed(tmp_path: Path) -> None:
    assert spark_home(tmp_path) is None
    assert not list(tmp_path.iterdir())


def test_home_with_links_to_other_jars_is_not_used(archives: Path, tmp_path: Path) -> None:
    home = spark_home(archives)
    assert home is not None
    (home / "jars").unlink()
    (home / "jars").symlink_to(tmp_path)
    assert spark_home(archives) is None


def test_image_has_the_home_beside_its_archives(
    archives: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COINCIDE_JARS", str(archives.parent))
    main()
    assert str(spark_home(archives)) in capsys.readouterr().out
