"""Access control before the routes: no Kafka is asked."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx
import orjson
import pytest

from service.access.authentication import FAILURES_AT_ONCE
from service.access.keys import Key, new_key, write_keys
from service.api.callers import OPEN_PATHS, ROLES
from service.app import create_app
from service.log import LogRecord
from service.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from fastapi import FastAPI

NOW_US = 1_767_225_600_000_000
ROLE_OF = {"viewer": 1, "editor": 2, "admin": 3}
# Routes that answer without Kafka.
READABLE = ("/v1/schema", "/v1/streams", "/v1/config", "/v1/job", "/v1/asyncapi.json")


class Protected(NamedTuple):
    """An application with access control, and the texts of its keys by role."""

    app: FastAPI
    keys: Mapping[str, str]
    path: Path
    entries: list[Key]


def protected(folder: Path, **changes: object) -> Protected:
    made = {role: new_key(f"the-{role}", role, (), NOW_US) for role in ROLE_OF}
    path = folder / "keys.json"
    entries = [key for key, _ in made.values()]
    write_keys(path, entries)
    values = {"bootstrap": "127.0.0.1:1", "keys_file": path, "requests_per_second": 0, **changes}
    # No time passes: the limits of requests do not depend on the speed of the machine.
    app = create_app(Settings.model_validate(values), lambda: NOW_US, lambda: 0.0)
    return Protected(app, {role: text for role, (_, text) in made.items()}, path, entries)


@pytest.fixture
def service(tmp_path: Path) -> Protected:
    """Return an application of one test."""
    return protected(tmp_path)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Protected:
    """Return an application that tests share which change nothing."""
    return protected(tmp_path_factory.mktemp("shared"))


def ask(
    app: FastAPI,
    method: str,
    target: str,
    headers: Mapping[str, str] | list[tuple[str, str]] | None = None,
    client: tuple[str, int] = ("127.0.0.1", 1),
    **more: Any,  # noqa: ANN401 - arguments of httpx
) -> httpx.Response:
    async def asked() -> httpx.Response:
        # An error of the application is an answer of 500, as for a client.
        transport = httpx.ASGITransport(app, raise_app_exceptions=False, client=client)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://localhost:8080"
        ) as found:
            return await found.request(method, target, headers=headers, **more)

    return asyncio.run(asked())


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def operations(app: FastAPI) -> Iterator[tuple[str, str]]:
    for path, methods in app.openapi()["paths"].items():
        for method in methods:
            yield method.upper(), path


def code(answer: httpx.Response) -> tuple[int, int]:
    return answer.status_code, answer.json()["error_code"]


def test_every_route_has_a_role(shared: Protected) -> None:
    assert set(operations(shared.app)) == set(ROLES)


def test_routes_outside_the_description_only_serve_files(shared: Protected) -> None:
    found = []
    for route in shared.app.routes:
        candidates: Any = getattr(route, "effective_candidates", lambda route=route: [route])
        found += candidates()
    assert len(found) > len(ROLES)
    hidden = {it.path: it.methods for it in found if not it.include_in_schema}
    assert hidden.keys() == {"/openapi.json", "/", "/console/{path:path}"}
    assert {method for methods in hidden.values() for method in methods} == {"GET", "HEAD"}


def test_an_error_of_the_service_has_the_headers_of_every_answer(service: Protected) -> None:
    # Not a registry: the route fails.
    service.app.state.plane.registry = None
    answer = ask(service.app, "GET", "/v1/streams", bearer(service.keys["viewer"]))
    assert code(answer) == (500, 50001)
    expected = service.app.state.headers
    assert {"Content-Security-Policy", "Cache-Control"} < expected.keys()
    assert {name: answer.headers.get(name) for name in expected} == expected
    assert "Traceback" not in answer.text


def test_routes_that_write_need_an_editor() -> None:
    readers = {place for place, role in ROLES.items() if role == ROLE_OF["viewer"]}
    assert {place for place in readers if place[0] != "GET"} == {
        ("POST", "/v1/conditions:validate"),
        ("POST", "/v1/conditions/{name}/explain"),
        # Only as a dry run.
        ("PUT", "/v1/config"),
    }
    assert {method for method, _ in ROLES.keys() - readers} == {"PUT", "DELETE", "POST"}


@pytest.mark.parametrize(
    "path",
    [
        *sorted({path.replace("{name}", "x") for _, path in ROLES} - OPEN_PATHS),
        *("/openapi.json", "/console", "/nothing", "/docs", "/livez/", "/LIVEZ", "/livez%2f"),
        # A path that begins with two slashes; alone, it would name a host.
        "http://localhost:8080//livez",
        *("/livez/../v1/streams", "/readyz;x", "/livez%00", "/%6civez/x"),
    ],
)
def test_without_credentials_there_is_only_401(shared: Protected, path: str) -> None:
    for method in ("GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH"):
        answer = ask(shared.app, method, path)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == 'Bearer realm="coincide"'
        if method != "HEAD":
            assert code(answer) == (401, 40101)


def test_health_is_open_but_not_for_writes(shared: Protected) -> None:
    assert ask(shared.app, "GET", "/livez").json() == {"live": True}
    assert ask(shared.app, "GET", "/livez", {"Host": "10.0.0.7:8080"}).is_success
    assert ask(shared.app, "POST", "/livez").status_code == 401


def test_files_of_the_console_are_open_but_nothing_beside_them(shared: Protected) -> None:
    for path in ("/", "/console/app.js"):
        assert ask(shared.app, "GET", path).is_success
        assert ask(shared.app, "POST", path).status_code == 401
        assert code(ask(shared.app, "GET", path, {"Host": "evil.example.com"})) == (421, 42101)
    for path in ("/console/%2e%2e/v1/streams", "/console//v1/streams"):
        assert code(ask(shared.app, "GET", path)) == (404, 40400)


def test_metrics_are_open_only_if_the_setting_says_so(tmp_path: Path, service: Protected) -> None:
    assert ask(service.app, "GET", "/metrics").status_code == 401
    assert ask(service.app, "GET", "/metrics", bearer(service.keys["viewer"])).is_success
    opened = protected(tmp_path, open_metrics=True)
    assert ask(opened.app, "GET", "/metrics").is_success
    assert ask(opened.app, "GET", "/v1/job").status_code == 401


@pytest.mark.parametrize("role", ROLE_OF)
@pytest.mark.parametrize("path", READABLE)
def test_every_role_reads(shared: Protected, role: str, path: str) -> None:
    key = shared.keys[role]
    assert ask(shared.app, "GET", path, bearer(key)).is_success
    assert ask(shared.app, "GET", path, {"X-API-Key": key}).is_success


@pytest.mark.parametrize(
    ("method", "path", "role"),
    [(*it, role.label) for it, role in ROLES.items() if role > ROLE_OF["viewer"]],
)
def test_viewer_does_not_write_whatever_the_request_contains(
    shared: Protected, method: str, path: str, role: str
) -> None:
    target = path.replace("{name}", "x")
    for body in (b"", b"{", b'{"resources": []}', b"x" * 2_000_000):
        headers = {**bearer(shared.keys["viewer"]), "Content-Type": "application/json"}
        answer = ask(shared.app, method, target, headers, content=body)
        # The body is not parsed before the role is checked.
        assert code(answer) == (403, 40301)
        assert answer.json()["detail"] == (
            f"the role {role} is needed; the-viewer has the role viewer"
        )


def wrong_credentials(key: str) -> list[list[tuple[str, str]]]:
    return [
        [("Authorization", f"Bearer {key}x")],
        [("Authorization", f"Bearer {key[:-1]}")],
        [("Authorization", f"Bearer {key.upper()}")],
        [("Authorization", "Bearer coincide_")],
        [("Authorization", "Bearer eyJhbGciOiJub25lIn0.e30.")],
        [("Authorization", f"Bearer {key}, Bearer {key}")],
        [("X-API-Key", f"{key}'--")],
        [("X-API-Key", "x" * 60_000)],
    ]


def test_wrong_credentials_are_refused_and_guessing_is_limited(
    service: Protected, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    key = service.keys["admin"]
    guesses = wrong_credentials(key)
    for place, headers in enumerate(guesses):
        answer = ask(service.app, "GET", "/v1/streams", headers, client=(f"192.0.2.{place}", 1))
        assert code(answer) == (401, 40101)
        assert "invalid_token" in answer.headers["www-authenticate"]
    logged = [it.getMessage() for it in caplog.records if it.name.startswith("service")]
    assert logged == [
        f"credentials from 192.0.2.{place} are not valid" for place in range(len(guesses))
    ]
    assert key not in caplog.text
    assert "coincide_" not in caplog.text
    statuses = [
        ask(service.app, "GET", "/v1/streams", bearer(f"{key}{n}")).status_code
        for n in range(FAILURES_AT_ONCE + 5)
    ]
    assert statuses == [401] * FAILURES_AT_ONCE + [429] * 5
    # Callers with a valid key are not locked out, also behind the same address.
    assert ask(service.app, "GET", "/v1/streams", bearer(key)).is_success


@pytest.mark.parametrize(
    "headers",
    [
        [("Authorization", "Basic dTpw")],
        [("Authorization", "Bearer")],
        [("Authorization", "")],
        [("X-API-Key", "")],
        "both",
        "twice",
    ],
)
def test_ambiguous_credentials_are_no_credentials(
    shared: Protected, headers: list[tuple[str, str]] | str
) -> None:
    key = shared.keys["admin"]
    if headers == "both":
        headers = [("Authorization", f"Bearer {key}"), ("X-API-Key", key)]
    elif headers == "twice":
        headers = [("X-API-Key", key), ("X-API-Key", key)]
    assert isinstance(headers, list)
    answer = ask(shared.app, "GET", "/v1/streams", headers)
    assert code(answer) == (401, 40101)


def test_revoked_key_is_refused_at_once(service: Protected) -> None:
    headers = bearer(service.keys["viewer"])
    assert ask(service.app, "GET", "/v1/streams", headers).is_success
    write_keys(service.path, [it for it in service.entries if it.role != "viewer"])
    assert ask(service.app, "GET", "/v1/streams", headers).status_code == 401
    assert ask(service.app, "GET", "/v1/streams", bearer(service.keys["admin"])).is_success


def test_requests_of_a_caller_are_limited(tmp_path: Path) -> None:
    service = protected(tmp_path, requests_per_second=0.001)
    first, second = (bearer(service.keys[role]) for role in ("viewer", "editor"))
    assert ask(service.app, "GET", "/v1/schema", first).is_success
    answer = ask(service.app, "GET", "/v1/schema", first)
    assert code(answer) == (429, 42901)
    assert int(answer.headers["retry-after"]) == 1000
    assert ask(service.app, "GET", "/v1/schema", second).is_success
    # Those without credentials, by address.
    statuses = [ask(service.app, "GET", "/v1/schema").status_code for _ in range(2)]
    assert statuses == [401, 429]
    assert ask(service.app, "GET", "/livez").is_success


OPEN = create_app(Settings(bootstrap="127.0.0.1:1"))


@pytest.mark.parametrize(
    "host", ["evil.example.com", "localhost.evil.example.com", "192.0.2.1", "localhost@evil", ""]
)
def test_foreign_host_is_refused(host: str) -> None:
    answer = ask(OPEN, "GET", "/v1/streams", {"Host": host})
    assert code(answer) == (421, 42101)


def test_two_hosts_are_refused() -> None:
    headers = [("Host", "localhost"), ("Host", "localhost")]
    assert code(ask(OPEN, "GET", "/v1/streams", headers)) == (421, 42101)


@pytest.mark.parametrize("origin", ["https://evil.example.com", "null", "http://localhost:9"])
def test_pages_of_other_sites_do_not_write(origin: str) -> None:
    answer = ask(OPEN, "POST", "/v1/streams/x/reset-watermark", {"Origin": origin})
    assert code(answer) == (403, 40302)
    # They may send a GET, whose answer they cannot read.
    answer = ask(OPEN, "GET", "/v1/streams", {"Origin": origin})
    assert answer.is_success
    assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_own_pages_write() -> None:
    origin = {"Origin": "http://localhost:8080"}
    answer = ask(OPEN, "POST", "/v1/streams/x/reset-watermark", origin)
    assert code(answer) == (404, 40401)


@pytest.mark.parametrize("target", ["/livez", "/v1/streams", "/nothing", "/v1/streams/X"])
def test_every_answer_has_the_headers_of_browsers(shared: Protected, target: str) -> None:
    for app, headers in (
        (OPEN, {}),
        (shared.app, {}),
        (shared.app, bearer(shared.keys["admin"])),
    ):
        found = ask(app, "GET", target, headers).headers
        assert found["x-content-type-options"] == "nosniff"
        assert found["referrer-policy"] == "no-referrer"
        assert found["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert "strict-transport-security" not in found
        assert ("cache-control" in found) == (app is shared.app)


def test_openapi_describes_access(shared: Protected) -> None:
    document = ask(shared.app, "GET", "/openapi.json", bearer(shared.keys["viewer"])).json()
    assert set(document["components"]["securitySchemes"]) == {"bearer", "key"}
    for path, methods in document["paths"].items():
        for operation in methods.values():
            is_open = path in OPEN_PATHS
            assert ("security" in operation) != is_open
            assert ({"401", "403", "429"} <= operation["responses"].keys()) != is_open
    assert "securitySchemes" not in OPEN.openapi()["components"]


def test_exception_of_the_job_is_for_admins(service: Protected) -> None:
    secret = "Traceback: /var/lib/coincide/checkpoint"  # noqa: S105 - not a password
    record = {"v": 1, "at": NOW_US, "state": "failed", "exception": secret}
    service.app.state.plane.metrics.apply(LogRecord(0, b"job", orjson.dumps(record), 0))
    for role, is_shown in (("viewer", False), ("editor", False), ("admin", True)):
        found = ask(service.app, "GET", "/v1/job", bearer(service.keys[role]))
        assert found.is_success
        assert (found.json()["exception"] == secret) is is_shown
        assert (secret in found.text) is is_shown
