"""Python processes that are started while Java starts, before Spark asks for them.

Spark starts Python processes with the interpreter of the session's functions. For a session on this
machine that is a client (`spark_jobs.worker.fork_client`). Instead of an interpreter that imports
its modules, it finds:

- a server that forks the processes that plan a query (`spark_jobs.worker.fork_server`);
- the first daemon of each role of workers, which waits with its kernels loaded
  (`spark_jobs.worker.worker_daemon`).

Where a client cannot be executed, Spark starts the interpreter.
"""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from spark_jobs.driver.child_end import end_child
from spark_jobs.worker import fork_client, fork_server, worker_daemon

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Linux takes longer first lines of scripts since 5.1 only, and no path with white space.
_MAX_INTERPRETER = 120
_END_SECONDS = 10
# As of the processes that Spark starts: without buffers, and with the same hashes.
_ENVIRONMENT = {**worker_daemon.NO_THREADS, "PYTHONUNBUFFERED": "1"}
_HASHES = "PYTHONHASHSEED"


def start_early(folder: Path, environment: Mapping[str, str]) -> str:
    """Start the processes, which end with this process; return the interpreter for Spark.

    Parameters
    ----------
    folder : Path
        Folder for the client and the sockets, which exists until this process ends. Its path must
        be short enough for a socket.
    environment : mapping of str to str
        Further environment variables of the workers.
    """
    client = write_client(folder)
    if client is None:
        return sys.executable
    start_fork_server(folder)
    start_daemons(folder, environment)
    return str(client)


def start_fork_server(folder: Path) -> None:
    """Start the server that forks the processes that plan a query; see `start_early`."""
    _start([fork_server.__name__], [folder / fork_client.SOCKET], {})


def start_daemons(folder: Path, environment: Mapping[str, str]) -> None:
    """Start the first daemon of each role of workers; see `start_early`."""
    process = _start(
        [worker_daemon.__name__, worker_daemon.WORKERS],
        [folder / fork_client.socket_of_daemon(role) for role in worker_daemon.ROLES],
        environment,
    )
    # It does not look at its input while it imports or compiles. Registered later, it runs before
    # the function that waits for its end.
    atexit.register(process.terminate)


def _start(
    command: Sequence[str], paths: Sequence[Path], environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start a module with arguments, and the descriptors of sockets on which it listens."""
    with ExitStack() as opened:
        numbers = []
        # Clients that connect at once wait until the modules are imported.
        for path in paths:
            listener = opened.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(str(path))
            listener.listen()
            numbers.append(listener.fileno())
        # The command is built here.
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", *command, *map(str, numbers)],
            stdin=subprocess.PIPE,
            env={_HASHES: "0", **os.environ, **_ENVIRONMENT, **environment},
            pass_fds=numbers,
        )
    atexit.register(end_child, process, _END_SECONDS)
    return process


def write_client(folder: Path) -> Path | None:
    """Write the client as an executable; return None if this machine would not run it."""
    line = f"#!{sys.executable} -IS"
    if len(line) > _MAX_INTERPRETER or len(line.split()) > 2 or not hasattr(os, "pidfd_open"):  # noqa: PLR2004 - the interpreter and its options
        return None
    path = folder / "python"
    path.write_text(f"{line}\n{Path(fork_client.__file__).read_text()}")
    path.chmod(0o700)
    # False on a file system that is mounted without the right to execute.
    return path if os.access(path, os.X_OK) else None
