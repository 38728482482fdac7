"""The Dockerfile and the Compose file pass their linters.

Both linters are development dependencies; hadolint has no package for Windows.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.tools import skip

ROOT = Path(__file__).parents[3]
# Beside this Python first, then the user's own.
PLACES = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
CASES = {
    "hadolint": ["--failure-threshold", "style", "Dockerfile"],
    "check-jsonschema": ["--builtin-schema", "vendor.compose-spec", "deploy/compose.yaml"],
}


@pytest.mark.parametrize("linter", CASES)
def test_linter_finds_nothing(linter: str) -> None:
    path = shutil.which(linter, path=PLACES)
    if path is None:
        # Not every platform has a wheel of hadolint.
        skip(f"{linter} is not installed", "make setup")
    # A linter, on the project's own files.
    done = subprocess.run(  # noqa: S603
        [path, *CASES[linter]], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_missing_linter_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setattr(sys.modules[__name__], "PLACES", "")
    with pytest.raises(pytest.fail.Exception, match="hadolint is not installed"):
        test_linter_finds_nothing("hadolint")
