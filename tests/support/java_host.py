"""A JVM for the jobs of tests, run as a process: `python -m tests.support.java_host`.

The JVM is that of a job. The first line of output has its port and its secret. Each line of input
is answered with `free` if no job uses the JVM, or `used`. The JVM ends with the input.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from py4j.java_gateway import GatewayParameters
from pyspark import SparkContext

from spark_jobs.driver.session import open_session
from spark_jobs.settings import Settings
from tests.support.java_cache import share_java_classes


def main() -> None:
    """Start the JVM, and answer until the input ends."""
    share_java_classes()
    with TemporaryDirectory() as folder:
        # Only its defaults are used: each job has its own settings.
        settings = Settings(bootstrap="127.0.0.1:1", checkpoint=str(Path(folder) / "checkpoint"))
        open_session(settings).stop()
    gateway = SparkContext._gateway  # noqa: SLF001 - PySpark has no public name for it
    assert gateway is not None
    parameters: GatewayParameters = gateway.gateway_parameters
    print(parameters.port, parameters.auth_token, flush=True)  # noqa: T201 - see the module
    # The object of the Scala class, which has its static methods.
    contexts = getattr(getattr(gateway.jvm.org.apache.spark, "SparkContext$"), "MODULE$")
    for _ in sys.stdin:
        is_free = contexts.getActive().isEmpty()
        print("free" if is_free else "used", flush=True)  # noqa: T201 - see the module


if __name__ == "__main__":
    main()
