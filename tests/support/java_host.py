"""A JVM for the jobs of tests, run as a process: `python -m tests.support.java_host FILE`.

The JVM is that of a job. Its port and its secret are written to the file. It ends with SIGTERM.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark import SparkContext

from spark_jobs.driver.session import open_session
from spark_jobs.settings import Settings
from tests.support.java_cache import share_java_classes


def main(file: Path) -> None:
    """Start the JVM, and wait for SIGTERM."""
    # Leaving the process as usual ends the JVM and removes its temporary files.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    share_java_classes()
    with TemporaryDirectory() as folder:
        # Only its defaults are used: each job has its own settings.
        settings = Settings(bootstrap="127.0.0.1:1", checkpoint=str(Path(folder) / "checkpoint"))
        open_session(settings).stop()
    gateway = SparkContext._gateway  # noqa: SLF001 - PySpark has no public name for it
    assert gateway is not None
    found = gateway.gateway_parameters
    # The file appears with its content.
    new = file.with_suffix(".new")
    new.write_text(f"{found.port} {found.auth_token}")
    new.rename(file)
    while True:
        signal.pause()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
