"""Connections of HTTP clients: TLS, and limits for slow clients."""

from __future__ import annotations

import ssl
from functools import partial
from typing import TYPE_CHECKING, Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

    from service.settings import Settings


class ImpatientProtocol(H11Protocol):
    """HTTP/1.1, where the header of a request must arrive within a time.

    uvicorn limits the time between two requests only: a client that sends a byte a minute would
    keep its connection for ever.

    Parameters
    ----------
    *arguments, **options
        As for uvicorn's protocol.
    header_seconds : float
        Max time until the header of a request is complete.
    """

    def __init__(self, *arguments: Any, header_seconds: float, **options: Any) -> None:  # noqa: ANN401 - those of uvicorn
        super().__init__(*arguments, **options)
        self._header_seconds = header_seconds
        self._waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take bytes of a request, and wait for the rest of its header."""
        super().data_received(data)
        received, sent = self.conn.their_state, self.conn.our_state
        # Also for the rest of a body that nobody reads any more.
        if received is h11.IDLE or (received is h11.SEND_BODY and sent is h11.DONE):
            self._wait()
        else:
            self._end_wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the wait."""
        self._end_wait()
        super().connection_lost(exc)

    def _wait(self) -> None:
        # A client that sends a byte now and then does not extend the time.
        if self._waiting is None:
            self._waiting = self.loop.call_later(self._header_seconds, self.transport.close)

    def _end_wait(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


def connection_options(settings: Settings) -> dict[str, Any]:
    """Return the options of uvicorn for the connections.

    Parameters
    ----------
    settings : Settings
        Settings of the service.
    """
    options: dict[str, Any] = {
        "http": partial(ImpatientProtocol, header_seconds=settings.request_timeout_seconds),
        # uvicorn refuses requests when this number of connections is open.
        "limit_concurrency": settings.max_connections + 1,
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
