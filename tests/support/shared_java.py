"""Processes of jobs that share a JVM, one after another.

Half of the CPU time of a job's start is that of its JVM. A job that finds PySpark's gateway in its
environment uses that JVM, as under `spark-submit`; at its end it closes its Spark session. Each job
is a process of its own, with new Python workers, and a kill ends the JVM, too. The JVM has the
default settings of a job: those for Java or for its temporary files need a JVM of the job's own.
"""

from __future__ import annotations

import atexit
import os
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError

from cli.stack.processes import TAIL_LINES, ChildProcess
from tests.support.patience import END_SECONDS, PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MODULE = "tests.support.java_host"
# Settings of jobs, gateways of other JVMs, and the name of the running test.
_NOT_INHERITED = ("COINCIDE_", "PYSPARK_GATEWAY_", "PYTEST_")


def inherited_by_java(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables that the JVM and its Python workers have."""
    return {name: it for name, it in environment.items() if not name.startswith(_NOT_INHERITED)}


class JavaHost(ChildProcess):
    """A process with a JVM, and the JVM's gateway for PySpark.

    Parameters
    ----------
    inherited
        Environment variables of the JVM and of the Python workers that it starts.
    """

    def __init__(self, inherited: Mapping[str, str]) -> None:
        self.inherited = inherited
        self._folder = TemporaryDirectory(prefix="coincide-java-")
        folder = Path(self._folder.name)
        self._gateway_path = folder / "gateway"
        command = [sys.executable, "-m", _MODULE, str(self._gateway_path)]
        super().__init__("JVM", command, folder / "java.log", inherited)
        self._port, self._secret = "", ""

    @property
    def gateway(self) -> dict[str, str]:
        """Environment variables with which a job uses this JVM."""
        return {"PYSPARK_GATEWAY_PORT": self._port, "PYSPARK_GATEWAY_SECRET": self._secret}

    def start(self) -> None:
        """Start the process and wait until a job can use the JVM."""
        super().start()
        self.wait_until(self._gateway_path.exists, PATIENCE_SECONDS)
        self._port, self._secret = self._gateway_path.read_text().split()

    def is_free(self) -> bool:
        """Return whether the JVM runs and no job uses it."""
        parameters = GatewayParameters(
            port=int(self._port), auth_token=self._secret, read_timeout=END_SECONDS
        )
        try:
            with closing(JavaGateway(gateway_parameters=parameters)) as gateway:
                # The object of the Scala class, which has its static methods.
                found = getattr(gateway.jvm.org.apache.spark, "SparkContext$")
                return bool(getattr(found, "MODULE$").getActive().isEmpty())
        except (Py4JError, OSError):
            return False

    def end(self) -> None:
        """End the JVM."""
        self.stop(END_SECONDS)
        self._folder.cleanup()

    def kill(self) -> None:
        """Kill the JVM."""
        super().kill()
        self._folder.cleanup()


# JVMs that no job uses, and processes that may have ended without leaving their JVM.
_free: list[JavaHost] = []
_started: list[SharedJavaProcess] = []


def _take(environment: Mapping[str, str]) -> JavaHost:
    """Return a JVM that no job uses, with the environment of a job except its settings."""
    for process in _started.copy():
        if not process.running:
            process.leave()
    inherited = inherited_by_java({**os.environ, **environment})
    # Others use memory for nothing: the jobs of a file have the same environment.
    while _free:
        host = _free.pop()
        if host.inherited == inherited and host.is_free():
            host.begin_log()
            return host
        host.end()
    host = JavaHost(inherited)
    host.start()
    return host


@atexit.register
def _end_all() -> None:
    while _free:
        _free.pop().end()


class SharedJavaProcess(ChildProcess):
    """The process of a job, with a JVM that it leaves to later jobs; see `ChildProcess`."""

    def __init__(
        self, name: str, command: Sequence[str], log_path: Path, environment: Mapping[str, str]
    ) -> None:
        super().__init__(name, command, log_path, environment)
        self._host: JavaHost | None = None

    def start(self) -> None:
        """Start the process with a JVM that is free."""
        if self.running:
            return
        self._host = _take(self._environment)
        self._environment.update(self._host.gateway)
        _started.append(self)
        super().start()

    def stop(self, patience_seconds: float = 30) -> int | None:
        """Stop the process, and leave the JVM."""
        code = super().stop(patience_seconds)
        said = self.log_end()
        is_left = self.leave()
        assert is_left or code != 0, f"the job has not closed its Spark session{said}"
        return code

    def kill(self) -> None:
        """Kill the process, its JVM and its workers, like a crash."""
        super().kill()
        host = self._unlink()
        if host is not None:
            host.kill()

    def log_end(self, lines: int = TAIL_LINES) -> str:
        """Return the last lines of the log, and the last messages of Java."""
        java = "" if self._host is None else self._host.log_end(lines)
        return f"{super().log_end(lines)}{java}"

    def leave(self) -> bool:
        """Leave the JVM to later jobs; kill it and return False if the job still uses it."""
        host = self._unlink()
        if host is None:
            return True
        if host.is_free():
            _free.append(host)
            return True
        host.kill()
        return False

    def _unlink(self) -> JavaHost | None:
        host, self._host = self._host, None
        if host is not None:
            _started.remove(self)
        return host
