"""`make test` and `make nightly` check the indexes of kernels; `make check` does not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CHECKED = "NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR="


def commands(target: str) -> list[str]:
    """Return the commands of a target that run tests without Kafka and Spark."""
    shown = subprocess.run(  # noqa: S603 - a target of the project
        ["make", "--dry-run", "--always-make", target],  # noqa: S607 - the make of the path
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = shown.stdout.replace("\\\n", " ").splitlines()
    return [it for it in lines if "pytest" in it and "not (kafka or spark" in it]


@pytest.mark.parametrize(
    ("target", "is_checked"), [("test", True), ("nightly", True), ("check", False)]
)
def test_kernels_are_checked_except_by_make_check(target: str, *, is_checked: bool) -> None:
    (command,) = commands(target)
    assert command.startswith(CHECKED) is is_checked
