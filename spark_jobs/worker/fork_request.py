"""Requests of `spark_jobs.worker.fork_client`: receive one, and run its command in this process."""

from __future__ import annotations

import json
import os
import runpy
import socket
import struct
import sys
from contextlib import suppress
from typing import NamedTuple

_STREAMS = 3
# Clients send their request at once.
_REQUEST_SECONDS = 1.0
_MAX_REQUEST_BYTES = 16 * 1024 * 1024


class Request(NamedTuple):
    """Command of a process, and its surroundings.

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

    def apply(self) -> None:
        """Set the folder, environment and arguments of this process to those of the request."""
        os.chdir(self.folder)
        os.environ.clear()
        os.environ.update(self.environment)
        given = self.environment.get("PYTHONPATH", "").split(os.pathsep)
        sys.path[1:1] = [it for it in given if it and it not in sys.path]
        sys.argv[:] = self.command

    def run(self) -> None:
        """Run the command of Python in this process, as the interpreter does with `-m`."""
        self.apply()
        runpy.run_module(self.command[0], run_name="__main__", alter_sys=True)


class Received(NamedTuple):
    """A request that was received.

    Attributes
    ----------
    client : socket
        Connection of the client, which waits for an answer.
    streams : list of int
        Descriptors of its standard streams.
    request : Request
        The request.
    """

    client: socket.socket
    streams: list[int]
    request: Request

    def take_streams(self) -> None:
        """Let the standard streams of the client be those of this process, too."""
        for place, stream in enumerate(self.streams):
            os.dup2(stream, place)

    def close_streams(self) -> None:
        """Close the descriptors of the streams."""
        _close(self.streams)


def receive(listener: socket.socket) -> Received | None:
    """Accept a client, and receive its request; None if the client has ended, or sends no request.

    Parameters
    ----------
    listener : socket
        Socket to which a client has connected.
    """
    client: socket.socket | None = None
    streams: list[int] = []
    try:
        client, _ = listener.accept()
        client.settimeout(_REQUEST_SECONDS)
        header, streams, _, _ = socket.recv_fds(client, struct.calcsize("!I"), _STREAMS)
        request = _read_request(client, header)
        if request is not None and len(streams) == _STREAMS and not _is_closed(client):
            return Received(client, streams, request)
    except (OSError, ValueError):
        # The client becomes the interpreter.
        pass
    if client is not None:
        client.close()
    _close(streams)
    return None


def _close(streams: list[int]) -> None:
    for stream in streams:
        with suppress(OSError):
            os.close(stream)


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
