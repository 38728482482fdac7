"""Run the ``coincide`` command as a process, as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from cli.client.rest import ServiceClient
from cli.stack.broker import free_port
from cli.stack.processes import ChildProcess
from tests.support.patience import PATIENCE_SECONDS, SERVICE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

COMMAND = (sys.executable, "-m", "cli.main")


def coincide(
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    given: str | None = None,
    timeout_seconds: float = PATIENCE_SECONDS,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end and return what it wrote and its exit code.

    Parameters
    ----------
    *arguments
        As typed after ``coincide``.
    environment
        Variables in addition to this process's own.
    given
        Standard input.
    timeout_seconds
        Longest run.
    """
    # The command under test, with arguments of the tests.
    return subprocess.run(  # noqa: S603
        [*COMMAND, *arguments],
        env={**os.environ, **(environment or {})},
        input=given,
        capture_output=True,
        text=True,
        timeout=timeout_seconds,
        check=False,
    )


def process_tree(pid: int) -> Iterator[int]:
    """Yield a process id and those of all that the process has started."""
    yield pid
    # The main thread may have started none: Java starts its children elsewhere.
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        # A thread may end meanwhile.
        with suppress(FileNotFoundError, ProcessLookupError):
            for child in task.read_text().split():
                yield from process_tree(int(child))


def command_line(pid: int) -> str:
    """Return the command line of a process, as everybody on the machine sees it; "" at its end."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except (FileNotFoundError, ProcessLookupError):
        return ""


@contextmanager
def running_service(bootstrap: str, prefix: str, logs: Path) -> Iterator[str]:
    """Run the service as a process, on a given broker and prefix, and give its URL."""
    port = free_port()
    environment = {
        "COINCIDE_BOOTSTRAP": bootstrap,
        "COINCIDE_PREFIX": prefix,
        "COINCIDE_PORT": str(port),
        "COINCIDE_BROKER_TIMEOUT_SECONDS": str(SERVICE_SECONDS),
        "COINCIDE_WRITE_TIMEOUT_SECONDS": str(SERVICE_SECONDS),
        "COINCIDE_EXPLAIN_SECONDS": str(SERVICE_SECONDS),
    }
    url = f"http://127.0.0.1:{port}"
    process = ChildProcess("service", [*COMMAND, "serve"], logs / "service.log", environment)
    process.start()
    try:
        with ServiceClient(url) as client:
            process.wait_until(client.ready, PATIENCE_SECONDS)
        yield url
    finally:
        process.stop()
