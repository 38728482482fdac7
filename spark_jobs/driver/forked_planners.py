"""The driver's part of the fork server: start it, and let Spark start its client.

Spark starts the Python processes that plan a query with the interpreter of the session's functions.
For a session on this machine that is the client of a fork server, which has their modules imported
(`spark_jobs.worker.fork_server`). Where a client cannot be executed, Spark starts the interpreter.
"""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
from pathlib import Path

from spark_jobs.driver.child_end import end_child
from spark_jobs.worker import fork_client, fork_server
from spark_jobs.worker.worker_daemon import NO_THREADS

# Linux takes longer first lines of scripts since 5.1 only, and no path with white space.
_MAX_INTERPRETER = 120
_END_SECONDS = 10
# As of the processes that Spark starts: without buffers, and with the same hashes.
_ENVIRONMENT = {**NO_THREADS, "PYTHONUNBUFFERED": "1"}
_HASHES = "PYTHONHASHSEED"


def start_fork_server(folder: Path) -> str:
    """Start a fork server, which ends with this process; return the interpreter for Spark.

    Parameters
    ----------
    folder : Path
        Folder for the client and the socket, which exists until this process ends. Its path must be
        short enough for a socket.
    """
    client = _write_client(folder)
    if client is None:
        return sys.executable
    with socket.socket(socket.AF_UNIX) as listener:
        # Clients that connect at once wait until the server has imported its modules.
        listener.bind(str(folder / fork_client.SOCKET))
        listener.listen()
        number = listener.fileno()
        command = [sys.executable, "-m", fork_server.__name__, str(number)]
        environment = {_HASHES: "0", **os.environ, **_ENVIRONMENT}
        # The command is built here.
        server = subprocess.Popen(  # noqa: S603
            command, stdin=subprocess.PIPE, env=environment, pass_fds=[number]
        )
    atexit.register(end_child, server, _END_SECONDS)
    return str(client)


def _write_client(folder: Path) -> Path | None:
    """Write the client as an executable; None if this machine would not run it."""
    line = f"#!{sys.executable} -IS"
    if len(line) > _MAX_INTERPRETER or len(line.split()) > 2 or not hasattr(os, "pidfd_open"):  # noqa: PLR2004 - the interpreter and its options
        return None
    path = folder / "python"
    path.write_text(f"{line}\n{Path(fork_client.__file__).read_text()}")
    path.chmod(0o700)
    # False on a file system that is mounted without the right to execute.
    return path if os.access(path, os.X_OK) else None
