"""Modules imported before Spark's Python workers are forked."""

from __future__ import annotations

import subprocess
import sys

import pytest

_COUNT = """
from pathlib import Path
from spark_jobs.worker.worker_daemon import import_all
import_all()
print(sum(1 for _ in Path("/proc/self/task").iterdir()))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_imports_start_no_thread_before_the_fork() -> None:
    # The command is this test's own.
    counted = subprocess.run(  # noqa: S603
        [sys.executable, "-c", _COUNT], capture_output=True, check=True, text=True
    )
    assert counted.stdout.split() == ["1"]
