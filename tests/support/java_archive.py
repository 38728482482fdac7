"""Class data of Spark's Java, loaded once for all jobs of a test run.

To read and check its classes, Java needs 10 s of the CPU time of a job's start (measured on two
cores). `main` runs a job and writes its classes to a file, from which the jobs of the tests load
them. Java ignores a file of another version or of other jars. Tests also run without the file.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path
from tempfile import TemporaryDirectory

import pyspark
from pyspark import SparkContext

from cli.stack.broker import EmbeddedBroker
from correlation.resources.streams import Stream
from spark_jobs.main import run
from spark_jobs.settings import Settings
from tests.support.job import ARCHIVE, JAVA_OPTIONS, JobUnderTest
from tests.support.patience import MAX_DELAY_US
from tests.support.workload import NearCondition, Workload

_UNCERTAINTY_US = 20_000


def main() -> int:
    """Write the file, if it does not exist or is older than the installed jars of Spark."""
    jars = Path(pyspark.__file__).parent / "jars"
    if ARCHIVE.is_file() and ARCHIVE.stat().st_mtime > jars.stat().st_ctime:
        return 0
    ARCHIVE.parent.mkdir(parents=True, exist_ok=True)
    unfinished = ARCHIVE.with_suffix(f".{os.getpid()}")
    with TemporaryDirectory() as folder, EmbeddedBroker() as broker:
        job = _prepare(broker.bootstrap, Path(folder))
        os.environ.update(job.environment)
        os.environ[JAVA_OPTIONS] = f"-XX:ArchiveClassesAtExit={unfinished}"
        code = run(Settings(until_end=True), threading.Event())
        # The job ends Java when this process ends, but waits for a minute only.
        gateway = SparkContext._gateway  # noqa: SLF001 - PySpark has no public access to the process
        if code == 0 and gateway is not None and _ends(gateway.proc):
            unfinished.replace(ARCHIVE)
    unfinished.unlink(missing_ok=True)
    return code


def _prepare(bootstrap: str, folder: Path) -> JobUnderTest:
    """Return an installation whose streams have events and whose condition has pairs."""
    prefix = f"classes{uuid.uuid4().hex[:10]}"
    job = JobUnderTest(bootstrap, prefix, folder)
    for name in "ab":
        job.add_stream(Stream(name, f"{prefix}-{name}", _UNCERTAINTY_US, MAX_DELAY_US))
    job.register(NearCondition("near", "a", "b", 30_000, "0.6").resource)
    now_us = time.time_ns() // 1_000
    job.send(
        Workload("ab", 1, begin_us=now_us, max_uncertainty_us=_UNCERTAINTY_US).take(400),
    )
    return job


def _ends(java: subprocess.Popen[bytes]) -> bool:
    """End Java, which then writes the file; return whether it has ended without an error."""
    if java.stdin is not None:
        # PySpark's gateway ends at the end of its input.
        java.stdin.close()
    return java.wait() == 0


if __name__ == "__main__":
    sys.exit(main())
