"""Plain connections of asyncio to a service: what a client without an HTTP library sends and sees.

Addresses 127.0.0.2 and above are other clients than 127.0.0.1, also on one machine.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.command import process_tree
from tests.support.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterable

HOST = "127.0.0.1"
STRANGER = "127.0.0.2"
# Outcome of a connection that ends without a complete status line.
DROPPED = "dropped"


@dataclass
class RawClient:
    """Connections to a service, which stay open until `close`.

    Parameters
    ----------
    port : int
        Port of the service on this machine.
    source : str
        Address of the client.
    """

    port: int
    source: str = STRANGER
    _writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def open(
        self, sent: bytes, limit: int = 2**16
    ) -> tuple[str, asyncio.StreamReader | None]:
        """Send bytes; return the status of the answer or `DROPPED`, and the rest of the answer."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                reader, writer = await asyncio.open_connection(
                    HOST, self.port, local_addr=(self.source, 0), limit=limit
                )
                self._writers.append(writer)
                writer.write(sent)
                await writer.drain()
                line = await reader.readline()
        except ConnectionError:
            return DROPPED, None
        if not line.startswith(b"HTTP/1.1 "):
            return DROPPED, None
        return line[9:12].decode(), reader

    def close(self) -> None:
        """Cut all connections."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()


def request(method: str, path: str, headers: Iterable[str] = (), body: bytes = b"") -> bytes:
    """Return the bytes of a request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", *headers]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def memory_of(pid: int) -> int:
    """Return the resident memory of a process and its descendants, in bytes."""
    found = 0
    for it in process_tree(pid):
        for line in Path(f"/proc/{it}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                found += int(line.split()[1]) * 1024
    return found
