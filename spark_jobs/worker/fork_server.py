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
import os
import selectors
import signal
import socket
import sys
from contextlib import suppress

from spark_jobs.worker.fork_request import Received, Request, receive

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
_FAILED = 1


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
        received = receive(self._listener)
        if received is None:
            return None
        try:
            process = os.fork()
            if not process:
                self._leave(received)
                return received.request
            self._add(process, received.client)
        except OSError:
            # The client becomes the interpreter.
            received.client.close()
        finally:
            received.close_streams()
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

    def _leave(self, received: Received) -> None:
        """Close all descriptors of the server in a forked process, and take the streams."""
        self._selector.close()
        received.take_streams()
        received.client.close()
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
        request.run()


if __name__ == "__main__":
    main(int(sys.argv[1]))
