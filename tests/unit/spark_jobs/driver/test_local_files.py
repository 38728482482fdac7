"""The job starts even where the class for local files cannot be compiled."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from py4j.protocol import Py4JError

from spark_jobs.driver.local_files import use_local_files

if TYPE_CHECKING:
    import pytest
    from py4j.java_gateway import JavaGateway


class Broken:
    """A Java process that does not answer."""

    @property
    def jvm(self) -> object:
        """Fail as Py4J does."""
        raise Py4JError("no answer from Java")


def test_the_job_starts_without_the_class_and_logs_the_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert not use_local_files(cast("JavaGateway", Broken()), {})
    assert "no answer from Java" in caplog.text


def test_the_job_starts_without_the_compiler(caplog: pytest.LogCaptureFixture) -> None:
    package = SimpleNamespace(codehaus=SimpleNamespace(janino=SimpleNamespace(SimpleCompiler=None)))
    without = SimpleNamespace(jvm=SimpleNamespace(org=package))
    assert not use_local_files(cast("JavaGateway", without), {})
    assert "chmod" in caplog.text


def test_a_class_that_the_user_names_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    named = {"spark.hadoop.fs.file.impl": "org.example.Files"}
    assert not use_local_files(cast("JavaGateway", Broken()), named)
    # Java was not asked.
    assert caplog.text == ""
