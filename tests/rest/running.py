"""Run the service inside a test, on a real Kafka, with an HTTP client."""

from __future__ import annotations

import socket
import threading
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import httpx

from service.app import create_app
from service.main import Server, server_config
from service.settings import Settings
from tests.support.patience import PATIENCE_SECONDS, SERVICE_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Service(NamedTuple):
    """A running service."""

    settings: Settings
    client: httpx.Client


@contextmanager
def running(
    settings: Settings, port: int = 0, now_us: Callable[[], int] | None = None
) -> Iterator[Service]:
    """Run the service in a thread until the block ends.

    Parameters
    ----------
    settings
        Settings of the service.
    port
        Port on which it listens; 0: a free one.
    now_us
        Clock of the service, as of `create_app`.
    """
    listening = socket.create_server(("127.0.0.1", port))
    app = create_app(settings, now_us)
    server = Server(server_config(settings, app), app.state.plane)
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    scheme = "http" if settings.tls_certificate is None else "https"
    url = f"{scheme}://127.0.0.1:{listening.getsockname()[1]}"
    try:
        with httpx.Client(base_url=url, timeout=PATIENCE_SECONDS) as client:
            wait_until(lambda: server.started or not thread.is_alive())
            assert server.started, "the service did not start"
            yield Service(settings, client)
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def fresh_settings(bootstrap: str, **changes: object) -> Settings:
    """Return settings with a prefix that no other test uses."""
    values = {
        "bootstrap": bootstrap,
        "prefix": f"t{uuid.uuid4().hex[:10]}",
        "broker_timeout_seconds": SERVICE_SECONDS,
        "write_timeout_seconds": SERVICE_SECONDS,
        "explain_seconds": SERVICE_SECONDS,
        **changes,
    }
    return Settings.model_validate(values)
