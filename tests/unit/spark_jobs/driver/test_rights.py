"""File rights: a warning for existing folders that others may read; rights stay unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spark_jobs.driver.rights import warn_of_wide_folder

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"])
def test_a_folder_that_others_may_read_is_named_with_its_mend(
    form: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "a checkpoint"
    folder.mkdir()
    folder.chmod(0o755)
    warn_of_wide_folder(
        form.format(str(folder).replace(" ", "%20") if ":" in form else folder), "077"
    )
    (said,) = caplog.messages
    assert said.startswith(f"{folder}: has the mode 755, ")
    assert "`chmod 700`" in said
    assert "COINCIDE_UMASK to 022" in said
    assert folder.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize(("mode", "umask"), [(0o700, "077"), (0o750, "027"), (0o755, "022")])
def test_a_folder_as_the_umask_says_is_not_named(
    mode: int, umask: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tmp_path.chmod(mode)
    warn_of_wide_folder(str(tmp_path), umask)
    warn_of_wide_folder(str(tmp_path / "not yet"), umask)
    warn_of_wide_folder("hdfs:///checkpoint", umask)
    assert caplog.messages == []
