"""The home folder of Spark: what Java needs, and no archive of Python modules."""

from __future__ import annotations

from pathlib import Path

import pyspark

from spark_jobs.driver.spark_home import make_spark_home

INSTALLED = Path(pyspark.__file__).resolve().parent


def test_home_links_to_the_installed_jars_and_has_no_archive_of_pyspark(tmp_path: Path) -> None:
    home = make_spark_home(tmp_path / "home")
    assert (home / "jars").resolve() == INSTALLED / "jars"
    assert (home / "bin" / "spark-submit").is_file()
    assert not (home / "python").exists()


def test_home_that_exists_is_used_again(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "jars").symlink_to(INSTALLED / "jars")
    for _ in range(2):
        home = make_spark_home(tmp_path / "home")
        assert (home / "bin" / "spark-submit").is_file()
