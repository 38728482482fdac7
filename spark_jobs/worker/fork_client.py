"""Start a Python process for Spark: forked by the fork server, or as an interpreter of its own.

The driver writes this file into its folder of temporary files as an executable, and Spark starts
it instead of the interpreter (`spark_jobs.driver.forked_planners`). The server's socket is in the
same folder. The file is run without the site packages, so it imports little: it passes the command,
the environment and the standard streams to the server and waits for the process. If the server does
not answer, and for processes that must not be forked, it becomes the interpreter.
"""

import json
import os
import socket
import struct
import sys

SOCKET = "fork.sock"
# Processes that import other modules, and those that tests and operators look for by their command.
_OWN = ("spark_jobs.worker.worker_daemon", "pyspark.sql.worker.python_streaming_sink_runner")
# The server answers at once, unless it still imports its modules. Spark waits 10 s for a process.
_PATIENCE_SECONDS = 4
_STREAMS = (0, 1, 2)


def main(arguments: list[str]) -> int:
    """Run a command of Python; return its exit code."""
    code = None if set(arguments) & set(_OWN) or arguments[:1] != ["-m"] else fork(arguments[1:])
    if code is None:
        os.execv(sys.executable, [sys.executable, *arguments])  # noqa: S606 - the interpreter
    return code


def fork(command: list[str]) -> int | None:
    """Let the server fork a process; return its exit code, or None if it has not been forked.

    Parameters
    ----------
    command : list of str
        Module and arguments.
    """
    folder = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - importing pathlib takes as long as all others
    with socket.socket(socket.AF_UNIX) as server:
        try:
            server.settimeout(_PATIENCE_SECONDS)
            server.connect(f"{folder}/{SOCKET}")
            request = json.dumps([command, dict(os.environ), os.getcwd()]).encode()  # noqa: PTH109 - see above
            socket.send_fds(server, [struct.pack("!I", len(request))], _STREAMS)
            server.sendall(request)
            if not server.recv(1):
                return None
        except OSError:
            return None
        # The server must not write to streams that only the process has open.
        for stream in _STREAMS:
            os.close(stream)
        server.settimeout(None)
        code = server.recv(1)
    return code[0] if code else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
