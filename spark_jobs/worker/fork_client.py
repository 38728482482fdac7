"""Start a Python process for Spark: one that was started early, or an interpreter of its own.

The driver writes this file into its folder of temporary files as an executable, and Spark starts
it instead of the interpreter (`spark_jobs.driver.early_python`). The sockets of the fork server and
of the daemons that wait are in the same folder. The file is run without the site packages, so it
imports little: it passes the command, the environment and the standard streams to the other process
and waits for its end. If that does not answer, and for processes that must not be forked, it
becomes the interpreter.
"""

import json
import os
import socket
import struct
import sys

SOCKET = "fork.sock"
_DAEMON, _ROLE = "spark_jobs.worker.worker_daemon", "COINCIDE_WORKER_ROLE"
# A process that tests and operators look for by its command.
_OWN = "pyspark.sql.worker.python_streaming_sink_runner"
# The server answers at once, unless it still imports its modules. Spark waits 10 s for a process
# that plans a query, and without a limit for a daemon, which may have to compile kernels.
_PATIENCE_SECONDS = 4
_STREAMS = (0, 1, 2)


def main(arguments: list[str]) -> int:
    """Run a command of Python; return its exit code."""
    code = None if _OWN in arguments or arguments[:1] != ["-m"] else fork(arguments[1:])
    if code is None:
        os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606 - the interpreter
    return code


def fork(command: list[str]) -> int | None:
    """Let another process run a command; return the exit code, or None if it does not.

    Parameters
    ----------
    command : list of str
        Module and arguments.
    """
    folder = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - importing pathlib takes as long as all others
    is_daemon = command[0] == _DAEMON
    name = socket_of_daemon(os.environ.get(_ROLE, "")) if is_daemon else SOCKET
    with socket.socket(socket.AF_UNIX) as server:
        try:
            server.settimeout(None if is_daemon else _PATIENCE_SECONDS)
            server.connect(f"{folder}/{name}")
            request = json.dumps([command, dict(os.environ), os.getcwd()]).encode()  # noqa: PTH109 - see above
            socket.send_fds(server, [struct.pack("!I", len(request))], _STREAMS)
            server.sendall(request)
            if not server.recv(1):
                return None
        except OSError:
            return None
        # The other process must be the only one that has the streams open.
        for stream in _STREAMS:
            os.close(stream)
        server.settimeout(None)
        code = server.recv(1)
    return code[0] if code else 1


def socket_of_daemon(role: str) -> str:
    """Return the name of the socket on which the first daemon of a role of workers waits."""
    return f"workers-{role}.sock"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
