"""A foreign client that connects to every port on which a process listens, and sends bytes.

This happens on a busy machine: a client keeps connecting to a server that has ended, and the kernel
assigns the server's port to another process.
"""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.command import process_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

_LISTENING = "0A"
# First bytes of a Kafka client: the length of its request, then the request.
_BYTES = b"\0\0\0\x10" + bytes(range(16))


@contextmanager
def knocking(pid: int) -> Iterator[set[int]]:
    """Connect to the ports of a process and its children until the context ends.

    Yields the set of ports found so far, which grows while the context is active.
    """
    knocked: set[int] = set()
    over = threading.Event()

    def knock() -> None:
        while not over.wait(0.001):
            for port in listening_ports(pid) - knocked:
                knocked.add(port)
                with (
                    suppress(OSError),
                    socket.create_connection(("127.0.0.1", port), timeout=1) as connection,
                ):
                    connection.sendall(_BYTES)

    thread = threading.Thread(target=knock)
    thread.start()
    try:
        yield knocked
    finally:
        over.set()
        thread.join()


def listening_ports(pid: int) -> set[int]:
    """Return the TCP ports on which a process and its children listen."""
    inodes = set()
    for process in process_tree(pid):
        # A process or a file may disappear in the meantime.
        with suppress(OSError):
            for descriptor in Path(f"/proc/{process}/fd").iterdir():
                with suppress(OSError):
                    inodes.add(str(descriptor.readlink()))
    ports = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            if state == _LISTENING and f"socket:[{rest[5]}]" in inodes:
                ports.add(int(local.rpartition(":")[2], 16))
    return ports
