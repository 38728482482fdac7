"""Connections of HTTP clients: TLS, and limits for slow clients."""

from __future__ import annotations

import logging
import ssl
from functools import partial
from typing import TYPE_CHECKING, Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

    import uvicorn

    from service.settings import Settings

_LOGGER = logging.getLogger(__name__)
_REFUSAL = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class ImpatientProtocol(H11Protocol):
    """HTTP/1.1 with limits for slow clients and for the number of connections.

    uvicorn limits the time between two requests only: a client that sends or reads a byte a minute
    would keep its connection for ever. Its limit of connections refuses requests on all of them,
    including those that are within the limit.

    One address has at most half of the connections, so that it cannot keep all others out.

    A connection counts from the time when it is accepted. asyncio would call `connection_made`
    after the handshake of TLS, so that clients that send nothing would not be counted.

    Parameters
    ----------
    *arguments, **options
        As for uvicorn's protocol.
    max_seconds : float
        Max time of the handshake of TLS, until the header of a request is complete, and in which a
        client reads nothing.
    max_connections : int
        Max number of connections; further ones are refused.
    tls : ssl.SSLContext or None
        Certificate and key of TLS, which begins after the connection is counted; None: no TLS.
    """

    def __init__(
        self,
        *arguments: Any,  # noqa: ANN401 - those of uvicorn
        max_seconds: float,
        max_connections: int,
        tls: ssl.SSLContext | None = None,
        **options: Any,  # noqa: ANN401 - those of uvicorn
    ) -> None:
        super().__init__(*arguments, **options)
        self._tls = tls
        self._handshake: asyncio.Task[None] | None = None
        # Bytes of the client that arrive together with the end of its handshake.
        self._early: bytearray | None = None
        self._max_seconds = max_seconds
        self._max_connections = max_connections
        self._waiting: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Begin to wait for the first request or for TLS, or refuse the connection."""
        super().connection_made(transport)
        if self._is_surplus():
            # It does not count while it closes: many at once would keep other addresses out.
            self.connections.discard(self)
            # A client of TLS could not read the answer.
            if self._tls is None:
                transport.write(_REFUSAL)
            transport.close()
        elif self._tls is None:
            self._wait()
        else:
            self._early = bytearray()
            # The first bytes must not arrive before TLS reads them.
            transport.pause_reading()
            self._handshake = self.loop.create_task(self._begin_tls(transport, self._tls))

    async def _begin_tls(self, transport: asyncio.Transport, tls: ssl.SSLContext) -> None:
        secured = None
        try:
            secured = await self.loop.start_tls(
                transport,
                self,
                tls,
                server_side=True,
                ssl_handshake_timeout=self._max_seconds,
                ssl_shutdown_timeout=self._max_seconds,
            )
        except OSError as error:
            # Also errors of TLS and timeouts. asyncio has closed the connection.
            _LOGGER.debug("no TLS with %s: %s", self.address, error)
        early, self._early = self._early, None
        if secured is None:
            # asyncio does not call `connection_lost` after a timeout.
            self.connections.discard(self)
            return
        super().connection_made(secured)
        self._wait()
        if early:
            self.data_received(bytes(early))

    def data_received(self, data: bytes) -> None:
        """Take bytes of a request, and wait for the rest of its header."""
        if self._early is not None:
            self._early += data
            return
        super().data_received(data)
        received, sent = self.conn.their_state, self.conn.our_state
        # Also for the rest of a body that is not read any more.
        if received is h11.IDLE or (received is h11.SEND_BODY and sent is h11.DONE):
            self._wait()
        else:
            self._end_wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the waits."""
        self._end_wait()
        self._end_unread()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Begin to wait for the client to read what it was sent."""
        super().pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(self._max_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """End the wait: the client reads."""
        self._end_unread()
        super().resume_writing()

    @property
    def address(self) -> str | None:
        """Address of the client."""
        return None if self.client is None else self.client[0]

    def _is_surplus(self) -> bool:
        mine = [it for it in self.connections if isinstance(it, ImpatientProtocol)]
        same = sum(it.address == self.address for it in mine)
        return len(self.connections) > self._max_connections or 2 * same > self._max_connections + 1

    def _wait(self) -> None:
        # A client that sends a byte now and then does not extend the time.
        if self._waiting is None:
            self._waiting = self.loop.call_later(self._max_seconds, self.transport.close)

    def _end_wait(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _end_unread(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None


def count_before_tls(config: uvicorn.Config) -> None:
    """Let the protocol begin TLS, instead of asyncio, which would do so before it counts.

    Parameters
    ----------
    config : uvicorn.Config
        Loaded configuration with the options of `connection_options`.
    """
    if config.ssl is not None:
        config.http_protocol_class = partial(config.http_protocol_class, tls=config.ssl)  # type: ignore[assignment, call-arg]  # any callable that makes protocols
        config.ssl = None


def connection_options(settings: Settings) -> dict[str, Any]:
    """Return the options of uvicorn for the connections.

    Parameters
    ----------
    settings : Settings
        Settings of the service.
    """
    options: dict[str, Any] = {
        "http": partial(
            ImpatientProtocol,
            max_seconds=settings.request_timeout_seconds,
            max_connections=settings.max_connections,
        ),
        "ws": "none",
        # A header that any client may send must not replace the address of its connection.
        "proxy_headers": False,
    }
    if settings.tls_certificate is not None:
        options |= {"ssl_certfile": settings.tls_certificate, "ssl_keyfile": settings.tls_key}
    if settings.tls_client_ca is not None:
        options |= {
            "ssl_ca_certs": str(settings.tls_client_ca),
            "ssl_cert_reqs": ssl.CERT_REQUIRED,
        }
    return options
