"""Check whether a port is free, before anything is started or written."""

from __future__ import annotations

import errno
import socket


def find_port_problem(host: str, port: int) -> str | None:
    """Return the reason why a port cannot be used; None if it is free.

    Parameters
    ----------
    host : str
        Address or name of this machine.
    port : int
        The port; 0, a free port, is not checked beyond its host.
    """
    try:
        places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, _, _, _, address in places[:1]:
            socket.create_server(address[:2], family=family).close()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return f"port {port} on {host} is in use"
        return f"port {port} on {host} cannot be used: {error.strerror or error}"
    return None
