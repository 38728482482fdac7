"""Java's classes, stored before the tests, so that their jobs start faster.

`main` runs a job, which stores the classes when it ends. Tests also run without them: the first JVM
that ends stores them then.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from pathlib import Path
from tempfile import TemporaryDirectory

from cli.stack.broker import EmbeddedBroker
from correlation.resources.streams import Stream
from spark_jobs.driver.java_archive import JavaArchive
from tests.support.java_cache import JAVA_CACHE, share_java_classes
from tests.support.job import JobUnderTest
from tests.support.patience import MAX_DELAY_US
from tests.support.workload import NearCondition, Workload

_UNCERTAINTY_US = 20_000


def stored_classes() -> Path | None:
    """Return the file with the classes, if it exists."""
    path = JavaArchive(JAVA_CACHE, JAVA_CACHE).path
    return path if path.is_file() else None


def main() -> int:
    """Run a job, unless the classes are stored; return its exit code."""
    if stored_classes() is not None:
        return 0
    with TemporaryDirectory() as folder, EmbeddedBroker() as broker:
        job = _prepare(broker.bootstrap, Path(folder))
        share_java_classes()
        environment = {**os.environ, **job.environment, "COINCIDE_UNTIL_END": "true"}
        command = [sys.executable, "-m", "spark_jobs.main"]
        return subprocess.run(command, env=environment, check=False).returncode  # noqa: S603


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


if __name__ == "__main__":
    sys.exit(main())
