"""Processes of jobs that use a JVM after each other.

Most of the CPU time of a job's start is that of its JVM. A job that finds PySpark's gateway in its
environment uses that JVM, as under `spark-submit`; at its end it closes its Spark session. All else
is as usual: each job is a process of its own, with new Python workers. A kill ends the JVM, too.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from cli.errors import ProcessError
from cli.stack.processes import ChildProcess
from tests.support.patience import END_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MODULE = "tests.support.java_host"
_SHOWN_BYTES = 4000
# Settings of jobs, the gateways of JVMs, and the name of the running test.
_NOT_INHERITED = ("COINCIDE_", "PYSPARK_", "PYTEST_")


class JavaHost:
    """A JVM that runs, and its gateway for PySpark.

    Parameters
    ----------
    inherited
        Environment variables of the JVM and of the Python workers that it starts.
    """

    def __init__(self, inherited: Mapping[str, str]) -> None:
        self.inherited = dict(inherited)
        self._folder = TemporaryDirectory(prefix="coincide-java-")
        self._log_path = Path(self._folder.name) / "java.log"
        with self._log_path.open("wb") as log:
            # The command is the project's own.
            self._process = subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", _MODULE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=self.inherited,
                process_group=0,
            )
        port, _, secret = self._read_line().partition(" ")
        # Variables of the environment with which a job uses this JVM.
        self.environment = {"PYSPARK_GATEWAY_PORT": port, "PYSPARK_GATEWAY_SECRET": secret}

    def is_free(self) -> bool:
        """Return whether the JVM runs and no job uses it."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write("\n")
            self._process.stdin.flush()
            return self._read_line() == "free"
        except (OSError, ProcessError):
            return False

    def log_end(self) -> str:
        """Return the last messages of Java and of the Python workers."""
        with suppress(OSError):
            return self._log_path.read_bytes()[-_SHOWN_BYTES:].decode("utf-8", "replace")
        return ""

    def end(self) -> None:
        """End the JVM, which removes its temporary files."""
        assert self._process.stdin is not None
        with suppress(OSError, subprocess.TimeoutExpired):
            self._process.stdin.close()
            self._process.wait(END_SECONDS)
        self.kill()

    def kill(self) -> None:
        """Kill the JVM."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._folder.cleanup()

    def _read_line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        if not line:
            raise ProcessError(f"Java ended: {self.log_end()}")
        return line


# JVMs that no job uses, and processes that may have ended without leaving their JVM.
_free: list[JavaHost] = []
_started: list[SharedJavaProcess] = []


def _take(environment: Mapping[str, str]) -> JavaHost:
    """Return a JVM that no job uses, with all variables but those of the job and of pytest."""
    for process in _started.copy():
        if not process.running:
            process.leave()
    found = {**os.environ, **environment}
    inherited = {name: it for name, it in found.items() if not name.startswith(_NOT_INHERITED)}
    for host in _free:
        if host.inherited == inherited:
            _free.remove(host)
            return host
    return JavaHost(inherited)


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
        self._environment.update(self._host.environment)
        _started.append(self)
        super().start()

    def stop(self, patience_seconds: float = 30) -> int | None:
        """Stop the process, and leave the JVM."""
        code = super().stop(patience_seconds)
        is_left = self.leave()
        assert is_left or code != 0, f"the job has not closed its Spark session{self.log_end()}"
        return code

    def kill(self) -> None:
        """Kill the process, its JVM and its workers, like a crash."""
        super().kill()
        host = self._unlink()
        if host is not None:
            host.kill()

    def log_end(self, lines: int = 15) -> str:
        """Return the last lines of the log, and the last messages of Java."""
        said = "" if self._host is None else f"\nJava: {self._host.log_end()}"
        return f"{super().log_end(lines)}{said}"

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
