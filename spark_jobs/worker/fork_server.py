"""A process with Spark's modules imported, which forks the processes that plan a query.

To start a query, Spark starts about eight Python processes, one after another: each unpickles the
source or the sink, answers a question, and ends or waits. Each imports the same modules for a
quarter of a second or more. This server imports them once, while Java starts, and forks a process
for each request of `spark_jobs.worker.fork_client`. The process gets the command, environment and
standard streams that Spark has given to the client. The client lives as long as the process: when
Spark terminates the client, the server terminates the process.

The driver starts the server with a socket on which it listens, as
`python -m spark_jobs.worker.fork_server DESCRIPTOR`. The server ends with the driver, at the end of
its standard input.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import struct
import sys
from contextlib import suppress
from typing import NamedTuple

# Not `pyspark.daemon`, nor what Spark starts without it: each process executes its own.
_MODULES = (
    "pyspark.worker",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.write_into_data_source",
    "pyspark.sql.streaming.stateful_processor_api_client",
    "spark_jobs.source.source",
    "spark_jobs.source.offset_planner",
    "spark_jobs.sink.sink",
    "spark_jobs.worker.operator",
)
_STREAMS = 3
# Clients send their request at once.
_REQUEST_SECONDS = 1.0
_MAX_REQUEST_BYTES = 16 * 1024 * 1024
_FAILED = 1


class Request(NamedTuple):
    """Command of a forked process, and its surroundings.

    Attributes
    ----------
    command : list of str
        Module and arguments.
    environment : dict of str to str
        Environment variables.
    folder : str
        Working folder.
    """

    command: list[str]
    environment: dict[str, str]
    folder: str


class _Forked:
    """A forked process, whose client waits for its end.

    Parameters
    ----------
    process : int
        Process id.
    client : socket
        Connection of the client.
    """

    def __init__(self, process: int, client: socket.socket) -> None:
        self.process = process
        self.client = client
        self.descriptor = os.pidfd_open(process)
        self.is_awaited = True


class ForkServer:
    """Forks a process for each request, and sends its exit code to the client.

    Parameters
    ----------
    listener : socket
        Socket on which clients connect.
    """

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._selector = selectors.DefaultSelector()
        self._forked: set[_Forked] = set()

    def serve(self) -> Request | None:
        """Serve until the standard input ends.

        Returns
        -------
        Request or None
            The request, in a forked process; None in the server at its end.
        """
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(sys.stdin, selectors.EVENT_READ)
        while True:
            # Descriptors of ended processes are used again: the data tells what an event is about.
            for key, _ in self._selector.select():
                if key.fileobj is sys.stdin:
                    return None
                if key.fileobj is self._listener:
                    request = self._accept()
                    if request is not None:
                        return request
                elif key.fileobj is key.data.client:
                    self._terminate(key.data)
                elif key.data in self._forked:
                    self._end(key.data)

    def _accept(self) -> Request | None:
        """Fork a process; return its request in this process, and None in the server."""
        streams: list[int] = []
        client = None
        try:
            client, _ = self._listener.accept()
            client.settimeout(_REQUEST_SECONDS)
            header, streams, _, _ = socket.recv_fds(client, 4, _STREAMS)
            request = _read_request(client, header)
            if request is not None and len(streams) == _STREAMS and not _is_closed(client):
                process = os.fork()
                if not process:
                    self._leave(streams)
                    return request
                self._add(process, client)
                client = None
        except (OSError, ValueError):
            # The client becomes the interpreter.
            pass
        finally:
            if client is not None:
                client.close()
            for stream in streams:
                with suppress(OSError):
                    os.close(stream)
        return None

    def _add(self, process: int, client: socket.socket) -> None:
        try:
            it = _Forked(process, client)
        except OSError:
            # The client becomes the interpreter.
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            raise
        self._forked.add(it)
        self._selector.register(it.descriptor, selectors.EVENT_READ, it)
        self._selector.register(it.client, selectors.EVENT_READ, it)
        # A client that was terminated meanwhile is noticed by its event.
        with suppress(OSError):
            it.client.sendall(b"+")

    def _leave(self, streams: list[int]) -> None:
        """Close all descriptors of the server in a forked process, and take the streams."""
        self._selector.close()
        for place, stream in enumerate(streams):
            os.dup2(stream, place)
        for it in self._forked:
            os.close(it.descriptor)
            it.client.close()
        self._listener.close()

    def _terminate(self, it: _Forked) -> None:
        """Terminate the process of a client that was terminated."""
        if it.is_awaited:
            it.is_awaited = False
            self._selector.unregister(it.client)
            # A process that has ended keeps its id until `_end`.
            os.kill(it.process, signal.SIGTERM)

    def _end(self, it: _Forked) -> None:
        """Send the exit code of a process to its client."""
        _, status = os.waitpid(it.process, 0)
        self._forked.remove(it)
        self._selector.unregister(it.descriptor)
        os.close(it.descriptor)
        if it.is_awaited:
            it.is_awaited = False
            self._selector.unregister(it.client)
        code = os.waitstatus_to_exitcode(status)
        with suppress(OSError):
            it.client.sendall(bytes([code if 0 <= code < 256 else _FAILED]))  # noqa: PLR2004 - a byte
        it.client.close()


def _is_closed(client: socket.socket) -> bool:
    """Return whether a client that has sent its request has ended."""
    client.settimeout(0)
    try:
        return not client.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False


def _read_request(client: socket.socket, header: bytes) -> Request | None:
    """Read a request; None if the client has ended."""
    if len(header) < struct.calcsize("!I"):
        return None
    (size,) = struct.unpack("!I", header)
    if size > _MAX_REQUEST_BYTES:
        return None
    content = bytearray()
    while len(content) < size:
        part = client.recv(size - len(content))
        if not part:
            return None
        content += part
    return Request(*json.loads(content))


def run(request: Request) -> None:
    """Run a command of Python in this process, as the interpreter does with `-m`."""
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.environment)
    given = request.environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [it for it in given if it and it not in sys.path]
    module, *arguments = request.command
    sys.argv[:] = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def main(descriptor: int) -> None:
    """Serve on a socket; in a forked process, run its command.

    Parameters
    ----------
    descriptor : int
        File descriptor of the socket.
    """
    # An interrupted driver ends the server when it has stopped the query.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=descriptor) as listener:
        for name in _MODULES:
            importlib.import_module(name)
        gc.collect()
        gc.freeze()
        request = ForkServer(listener).serve()
    if request is not None:
        run(request)


if __name__ == "__main__":
    main(int(sys.argv[1]))
