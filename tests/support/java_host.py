"""A JVM for the jobs of tests, run as a process: `python -m tests.support.java_host FILE`.

The JVM is started as a job starts its own. Its port and its secret are written to the file. The
process and the JVM end with SIGTERM.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark import SparkContext

from spark_jobs.driver.session import open_session
from spark_jobs.settings import Settings
from tests.support.java_cache import share_java_classes
from tests.support.shared_java import inherited_by_java


def main(file: Path) -> None:
    """Start the JVM, and wait for SIGTERM."""
    ended, end = os.pipe()
    signal.signal(signal.SIGTERM, lambda *_: os.write(end, b"x"))
    for name in os.environ.keys() - inherited_by_java(os.environ).keys():
        del os.environ[name]
    share_java_classes()
    with TemporaryDirectory() as folder:
        # The session has the default settings: each job has a session of its own.
        settings = Settings(bootstrap="127.0.0.1:1", checkpoint=str(Path(folder) / "checkpoint"))
        open_session(settings).stop()
    gateway = SparkContext._gateway  # noqa: SLF001 - PySpark has no public name for it
    assert gateway is not None
    found = gateway.gateway_parameters
    # The file appears with its content.
    new = file.with_suffix(".new")
    new.write_text(f"{found.port} {found.auth_token}")
    new.rename(file)
    # At its end the process ends the JVM and removes the JVM's temporary files.
    os.read(ended, 1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
