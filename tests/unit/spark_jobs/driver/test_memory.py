"""Memory of the job's processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spark_jobs.driver.memory import MemoryUse

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/smaps_rollup").exists(), reason="only Linux reports it"
)
# A process in the place of Java, with a worker that holds 64 MiB, until its input ends.
WORKER = "import sys; held = b'x' * 2**26; print('held', flush=True); sys.stdin.read()"
PARENT = """import subprocess, sys
subprocess.run([sys.executable, "-c", sys.argv[1], "spark_jobs.worker.worker_daemon"], check=True)
"""


@needs_proc
def test_memory_is_that_of_driver_java_and_workers() -> None:
    command = [sys.executable, "-c", PARENT, WORKER]
    with subprocess.Popen(  # noqa: S603 - a process of this test
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        use = MemoryUse(process.pid)
        found = use.look()
        process.communicate()
        assert set(found) == {"driver", "java", "workers"}
        assert 2**26 <= found["workers"] < 2**28
        assert 0 < found["java"] < 2**26 < found["driver"] + 2**26
        # Measured every few seconds only.
        assert use.look() is found


@needs_proc
def test_workers_are_those_that_the_driver_has_started_too() -> None:
    command = [sys.executable, "-c", WORKER, "spark_jobs.worker.worker_daemon"]
    with subprocess.Popen(  # noqa: S603 - a process of this test
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        # In the place of Java, a process without children.
        with subprocess.Popen(["sleep", "600"]) as java:  # noqa: S607 - as above
            found = MemoryUse(java.pid).look()
            java.kill()
        process.communicate()
        assert 2**26 <= found["workers"] < 2**28


def test_memory_is_empty_where_it_is_not_known(tmp_path: Path) -> None:
    assert MemoryUse(os.getpid(), tmp_path).look() == {}
