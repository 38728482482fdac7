"""The proxy between the job and the broker."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from cli.stack.broker import HOST
from tests.support.patience import PATIENCE_SECONDS, wait_until
from tests.support.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def echo() -> Iterator[int]:
    """Run a server that sends back what it receives; yield its port."""
    with socket.create_server((HOST, 0)) as server:

        def answer(connection: socket.socket) -> None:
            with connection:
                while data := connection.recv(1024):
                    connection.sendall(data)

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(connection,), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield int(server.getsockname()[1])
        server.shutdown(socket.SHUT_RDWR)
    thread.join()


def connect(port: int) -> socket.socket:
    return socket.create_connection((HOST, port), PATIENCE_SECONDS)


def ask(client: socket.socket, data: bytes = b"ping") -> bytes:
    """Send bytes and return the answer, or b"" if the connection is closed."""
    try:
        client.sendall(data)
        found = b""
        while len(found) < len(data) and (piece := client.recv(1024)):
            found += piece
    except ConnectionError:
        return b""
    return found


def test_connections_are_passed_on() -> None:
    with echo() as port, Proxy(port) as proxy, connect(proxy.port) as client:
        assert ask(client) == b"ping"
        assert ask(client, bytes(100_000)) == bytes(100_000)


def test_cut_resets_connections_and_refuses_others_until_restored() -> None:
    with echo() as port, Proxy(port) as proxy, connect(proxy.port) as client:
        assert ask(client) == b"ping"
        proxy.cut()
        wait_until(lambda: ask(client) == b"")
        with connect(proxy.port) as other:
            assert ask(other) == b""
        proxy.restore()
        with connect(proxy.port) as other:
            assert ask(other) == b"ping"


@pytest.mark.parametrize("is_throttled", [False, True])
def test_answer_takes_at_least_the_delay(is_throttled: bool) -> None:  # noqa: FBT001 - pytest passes it
    with echo() as port, Proxy(port) as proxy, connect(proxy.port) as client:
        if is_throttled:
            proxy.throttle(1_000)
        else:
            proxy.delay(0.05)
        begin = time.monotonic()
        assert ask(client, bytes(50)) == bytes(50)
        # Both ways are delayed.
        assert time.monotonic() - begin >= 0.1


def test_target_that_is_down_resets_the_connection() -> None:
    with echo() as port:
        pass
    with Proxy(port) as proxy, connect(proxy.port) as client:
        assert ask(client) == b""
