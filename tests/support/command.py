"""Run the ``coincide`` command as a process, as a user does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cli.client.rest import ServiceClient
from cli.stack.broker import HOST, free_port
from cli.stack.processes import ChildProcess
from tests.support.patience import PATIENCE_SECONDS, SERVICE_SECONDS

if TYPE_CHECKING:
    import signal
    from collections.abc import Iterator, Mapping

COMMAND = (sys.executable, "-m", "cli.main")
_PATIENT = {"COINCIDE_CLIENT_TIMEOUT_SECONDS": str(PATIENCE_SECONDS)}


def coincide(
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    given: str | None = None,
    timeout_seconds: float = PATIENCE_SECONDS,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end and return its output and exit code.

    Parameters
    ----------
    *arguments
        Arguments after ``coincide``.
    environment
        Environment variables in addition to those of this process.
    given
        Standard input.
    timeout_seconds
        Max run time.
    """
    # The command under test, with arguments of the tests.
    return subprocess.run(  # noqa: S603
        [*COMMAND, *arguments],
        env={**os.environ, **_PATIENT, **(environment or {})},
        input=given,
        capture_output=True,
        text=True,
        timeout=timeout_seconds,
        check=False,
    )


def process_tree(pid: int) -> Iterator[int]:
    """Yield a process id and the ids of all its descendants."""
    yield pid
    for child in _children(pid):
        yield from process_tree(child)


def _children(pid: int) -> list[int]:
    """Return the ids of the children of a process; empty after its end."""
    found: list[int] = []
    # The process, or one of its threads, may end in the meantime.
    with suppress(FileNotFoundError, ProcessLookupError):
        # All threads are checked: Java starts its children from other threads than the main thread.
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                found += map(int, (thread / "children").read_text().split())
    return found


def send_signal(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process, unless it has ended."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def command_line(pid: int) -> str:
    """Return the command line of a process as other users see it, or "" after its end."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def start_of(pid: int) -> str:
    """Return when a process was started, in ticks since the boot, or "" after its end.

    Systems give the id of an ended process to another one, which has another start.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    # The name of the command, in parentheses, may have spaces.
    state, *fields = stat.rpartition(")")[2].split()
    return "" if state == "Z" else fields[18]


def variables(pid: int) -> dict[str, str]:
    """Return the environment variables with which a process was started; empty after its end."""
    try:
        entries = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def has_socket(pid: int) -> bool:
    """Return whether a process has a socket open."""
    for link in Path(f"/proc/{pid}/fd").iterdir():
        # It may be closed in the meantime.
        with suppress(FileNotFoundError):
            if str(link.readlink()).startswith("socket:"):
                return True
    return False


def is_python_worker(pid: int) -> bool:
    """Return whether a process runs Python functions of the job, or forks such processes.

    Neither the process from which the first daemons are forked counts, nor the client whose place
    a daemon has taken.
    """
    line = command_line(pid)
    if "worker_daemon" not in line or " -IS " in line:
        return False
    # The arguments are those of the process from which it is forked.
    return not re.search(r"( \d+)+ $", line) or "worker_daemon" in command_line(parent(pid))


def parent(pid: int) -> int:
    """Return the parent of a process, or 0 after its end."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(stat.rpartition(")")[2].split()[1])


def is_submitted_driver(pid: int) -> bool:
    """Return whether a process is the Python process of a job that `spark-submit` has started."""
    line = command_line(pid)
    return "spark_jobs/main.py" in line and "java" not in line.partition(" ")[0]


def is_commit_worker(pid: int) -> bool:
    """Return whether a process calls the `commit` of the sink, or forks such processes."""
    return "python_streaming_sink_runner" in command_line(pid)


def service_process(
    bootstrap: str, prefix: str, logs: Path, more: Mapping[str, str] | None = None
) -> tuple[ChildProcess, str]:
    """Build a process of the service, which is not started, and its URL.

    Parameters
    ----------
    bootstrap
        Address of the broker.
    prefix
        Prefix of the installation.
    logs
        Folder of the log.
    more
        Further environment variables of the service.
    """
    port = free_port()
    environment = {
        "COINCIDE_BOOTSTRAP": bootstrap,
        "COINCIDE_PREFIX": prefix,
        "COINCIDE_PORT": str(port),
        "COINCIDE_BROKER_TIMEOUT_SECONDS": str(SERVICE_SECONDS),
        "COINCIDE_WRITE_TIMEOUT_SECONDS": str(SERVICE_SECONDS),
        "COINCIDE_EXPLAIN_SECONDS": str(SERVICE_SECONDS),
        **(more or {}),
    }
    process = ChildProcess("service", [*COMMAND, "serve"], logs / "service.log", environment)
    return process, f"http://{HOST}:{port}"


@contextmanager
def running_service(bootstrap: str, prefix: str, logs: Path, **settings: str) -> Iterator[str]:
    """Run the service as a process, with a given broker and prefix, and yield its URL."""
    process, url = service_process(bootstrap, prefix, logs, settings)
    process.start()
    try:
        with ServiceClient(url) as client:
            process.wait_until(client.ready, PATIENCE_SECONDS)
        yield url
    finally:
        process.stop()
