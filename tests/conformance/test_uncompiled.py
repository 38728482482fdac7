"""Kernels also run as plain Python, as a debugger needs them (NUMBA_DISABLE_JIT=1)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
# Intervals, histograms and sets.
FILES = (
    "test_algorithms.py",
    pytest.param("test_shapes.py", marks=pytest.mark.nightly),
    pytest.param("test_topk_join.py", marks=pytest.mark.nightly),
)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_kernels_give_the_judges_results_uncompiled(name: str) -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "HYPOTHESIS_PROFILE": "few"}
    # Numpy's scalars warn when a product wraps around, as hashes of sets do.
    options = ["-q", "-p", "no:cacheprovider", "-W", "ignore:overflow encountered:RuntimeWarning"]
    command = ["-m", "pytest", *options, str(FOLDER / name)]
    done = subprocess.run(  # noqa: S603 - the command is the project's own
        [sys.executable, *command], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stdout[-5000:]
