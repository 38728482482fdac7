"""Tests run with kernels that check the indexes of arrays, except those of a million pairs."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("target", "count"), [("check", 1), ("test", 2), ("nightly", 2), ("screenshots", 1)]
)
def test_kernels_of_tests_are_checked(target: str, count: int) -> None:
    shown = subprocess.run(  # noqa: S603 - a target of the project
        ["make", "--dry-run", "--always-make", target],  # noqa: S607 - the make of the path
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    commands = re.split(r"[;&\n]", shown.stdout.replace("\\\n", " "))
    found = [it for it in commands if "pytest -" in it and "test_many_pairs" not in it]
    assert len(found) == count
    assert all("NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=" in it for it in found), found
