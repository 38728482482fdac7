"""A proxy that can hide the broker from its clients.

The only broker of a cluster that was paused for longer than its session reports no brokers until
the controller has accepted it again. The proxy removes brokers and controller from the responses;
the leaders of partitions remain.
"""

from __future__ import annotations

import asyncio
import struct
from contextlib import suppress
from typing import TYPE_CHECKING

from tests.support.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

_METADATA = 3
# First version of the request whose response has compact arrays.
_COMPACT = 9
_NO_CONTROLLER = -1


class HidingProxy(Proxy):
    """Passes connections on to a broker, and can hide it in the responses of metadata.

    Attributes
    ----------
    hides
        Whether responses of metadata contain no broker.
    hidden
        Number of responses in which the broker was hidden.
    """

    hides = False
    hidden = 0

    def _directions(
        self,
        reader: asyncio.StreamReader,
        back: asyncio.StreamWriter,
        there: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> list[Coroutine[None, None, None]]:
        asked: dict[int, int] = {}
        return [self._note(reader, back, asked), self._hide(there, writer, asked)]

    async def _note(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: dict[int, int]
    ) -> None:
        """Pass requests on; note the correlation id and the version of those for metadata."""
        async for request in _messages(reader):
            key, version, correlation_id = struct.unpack_from(">hhi", request)
            if key == _METADATA:
                asked[correlation_id] = version
            await _send(writer, request)

    async def _hide(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: dict[int, int]
    ) -> None:
        """Pass responses on."""
        async for response in _messages(reader):
            version = asked.pop(struct.unpack_from(">i", response)[0], None)
            if self.hides and version is not None:
                assert version >= _COMPACT
                await _send(writer, without_brokers(response))
                self.hidden += 1
            else:
                await _send(writer, response)


def without_brokers(response: bytes) -> bytes:
    """Return a response of metadata, of version 9 or newer, without its brokers and controller."""
    _, brokers = _number(response, 4)
    # The time for which the client was slowed down.
    brokers += 4
    count, place = _number(response, brokers)
    for _ in range(count - 1):
        # Id, host, port, rack and tags.
        place = _after_string(response, place + 4)
        place = _after_string(response, place + 4)
        _, place = _number(response, place)
    controller = _after_string(response, place)
    no_controller = struct.pack(">i", _NO_CONTROLLER)
    parts = (response[:brokers], b"\x01", response[place:controller], no_controller)
    return b"".join(parts) + response[controller + 4 :]


def _number(data: bytes, place: int) -> tuple[int, int]:
    """Return a number of variable length, and the place behind it."""
    found = shift = 0
    while True:
        byte = data[place]
        found |= (byte & 0x7F) << shift
        shift, place = shift + 7, place + 1
        if byte < 0x80:
            return found, place


def _after_string(data: bytes, place: int) -> int:
    """Return the place behind a compact string, which may be null."""
    length, place = _number(data, place)
    return place + max(0, length - 1)


async def _messages(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """Yield the requests or responses of a connection until it ends."""
    with suppress(OSError, asyncio.IncompleteReadError):
        while True:
            size = struct.unpack(">i", await reader.readexactly(4))[0]
            yield await reader.readexactly(size)


async def _send(writer: asyncio.StreamWriter, message: bytes) -> None:
    with suppress(OSError):
        writer.write(struct.pack(">i", len(message)) + message)
        await writer.drain()
