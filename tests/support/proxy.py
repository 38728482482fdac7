"""A TCP proxy on loopback whose connections can be cut, delayed and throttled."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from cli.stack.broker import HOST, free_port

if TYPE_CHECKING:
    from collections.abc import Coroutine

_CHUNK_BYTES = 64 * 1024
# A throttled connection passes small pieces on, so that no request waits for minutes.
_PIECE_BYTES = 4 * 1024


def listeners_of(proxy: Proxy, port: int) -> dict[str, str]:
    """Return properties of an embedded broker with two listeners.

    Clients that connect to `port` use it for all requests. Clients that connect to the proxy use
    the proxy for all requests.
    """
    controller = free_port()
    plain, proxied = f"PLAINTEXT://{HOST}:{port}", f"PROXIED://{HOST}"
    return {
        "listeners": f"{plain},{proxied}:{proxy.target},CONTROLLER://{HOST}:{controller}",
        "advertised.listeners": f"{plain},{proxied}:{proxy.port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,"
        "CONTROLLER:PLAINTEXT",
        "controller.quorum.voters": f"1@{HOST}:{controller}",
    }


class Proxy:
    """Passes connections on to a port of this machine, in a thread of its own.

    Parameters
    ----------
    target
        Port to which connections are passed on.

    Attributes
    ----------
    port
        Port of the proxy.
    target
        As given.
    """

    def __init__(self, target: int) -> None:
        self.port = free_port()
        self.target = target
        self._is_cut = False
        self._delay_seconds = 0.0
        self._bytes_per_second: float | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._is_open = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        self._is_open.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def cut(self) -> None:
        """Reset all connections, and refuse others until `restore`."""
        self._loop.call_soon_threadsafe(self._abort)

    def reset(self) -> None:
        """Reset all connections; others are passed on."""
        self._loop.call_soon_threadsafe(self._abort_connections)

    def delay(self, seconds: float) -> None:
        """Hold every piece of data back for a time, until `restore`."""
        self._delay_seconds = seconds

    def throttle(self, bytes_per_second: float) -> None:
        """Limit the speed of each connection and direction, until `restore`."""
        self._bytes_per_second = bytes_per_second

    def restore(self) -> None:
        """Pass everything on at once again."""
        self._is_cut, self._delay_seconds, self._bytes_per_second = False, 0.0, None

    def _abort(self) -> None:
        self._is_cut = True
        self._abort_connections()

    def _abort_connections(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    def _run(self) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        server = loop.run_until_complete(asyncio.start_server(self._serve, HOST, self.port))
        self._is_open.set()
        loop.run_forever()
        server.close()
        self._abort()
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect a client with the target, until one of them closes the connection."""
        try:
            if self._is_cut:
                writer.transport.abort()
                return
            there, back = await asyncio.open_connection(HOST, self.target)
        except OSError:
            # The target is down: the client sees a connection that is reset.
            writer.transport.abort()
            return
        ends = {writer, back}
        self._writers |= ends
        try:
            passing = self._directions(reader, back, there, writer)
            tasks = [asyncio.ensure_future(it) for it in passing]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            self._writers -= ends
            for end in ends:
                end.transport.abort()

    def _directions(
        self,
        reader: asyncio.StreamReader,
        back: asyncio.StreamWriter,
        there: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> list[Coroutine[None, None, None]]:
        """Return the coroutines that pass data on, one for each direction."""
        return [self._pass_on(reader, back), self._pass_on(there, writer)]

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(_CHUNK_BYTES):
                if self._delay_seconds:
                    await asyncio.sleep(self._delay_seconds)
                for begin in range(0, len(data), _PIECE_BYTES):
                    piece = data[begin : begin + _PIECE_BYTES]
                    if self._bytes_per_second is not None:
                        await asyncio.sleep(len(piece) / self._bytes_per_second)
                    writer.write(piece)
                await writer.drain()
