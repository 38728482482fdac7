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
        # Installed by hand only: not every platform has a wheel of hadolint.
        pytest.skip(f"{linter} is not installed")
    # A linter, on the project's own files.
    done = subprocess.run(  # noqa: S603
        [path, *CASES[linter]], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
