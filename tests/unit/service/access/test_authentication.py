"""Callers while the issuer of tokens hangs, and limits without access control."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import jwt
import pytest
from starlette.datastructures import Headers

from service.access.authentication import _THREADS, Authenticator
from service.access.callers import EVERYONE, Caller, Role
from service.access.keys import new_key, write_keys
from service.access.rates import _CALLERS
from service.access.signing_keys import MIN_INTERVAL_SECONDS
from service.errors import TooManyRequestsError, UnauthenticatedError
from service.settings import Settings
from tests.support.issuer import AUDIENCE, Issuer, new_signing_key, running_issuer
from tests.support.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOME, AWAY = "192.0.2.1", "192.0.2.2"


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with running_issuer() as found:
        yield found


def bearer(token: str) -> Headers:
    return Headers({"Authorization": f"Bearer {token}"})


def test_tokens_of_known_keys_do_not_wait_for_an_issuer_that_hangs(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    settings = Settings.model_validate({"oidc_issuer": issuer.url, "oidc_audience": AUDIENCE})
    authenticator = Authenticator(settings, lambda: 0, clock)
    monkeypatch.setattr("service.access.signing_keys._TIMEOUT_SECONDS", PATIENCE_SECONDS)
    asked, goes_on, answer = threading.Event(), threading.Event(), issuer.answer

    def hang(path: str) -> tuple[int, bytes]:
        asked.set()
        goes_on.wait(PATIENCE_SECONDS)
        return answer(path)

    stranger = new_signing_key()
    forged = [
        jwt.encode(issuer.claims(), stranger, algorithm="RS256", headers={"kid": f"x{it}"})
        for it in range(2 * _THREADS)
    ]

    async def run() -> None:
        assert (await authenticator.authenticate(bearer(issuer.token()), HOME)).name == "ada"
        monkeypatch.setattr(issuer, "answer", hang)
        clock.seconds += MIN_INTERVAL_SECONDS
        waiting = [
            asyncio.create_task(authenticator.authenticate(bearer(it), AWAY)) for it in forged
        ]
        await asyncio.to_thread(asked.wait, PATIENCE_SECONDS)
        # All threads wait for the issuer.
        for _ in range(3):
            assert (await authenticator.authenticate(bearer(issuer.token()), HOME)).name == "ada"
        assert not any(it.done() for it in waiting)
        goes_on.set()
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert {type(it) for it in ended} == {UnauthenticatedError, TooManyRequestsError}

    try:
        asyncio.run(run())
    finally:
        goes_on.set()


@pytest.mark.parametrize(
    ("host", "is_limited"),
    [("127.0.0.1", False), ("localhost", False), ("::1", False), ("192.0.2.9", True), ("::", True)],
)
def test_requests_of_an_address_are_limited_without_access_control(
    host: str, *, is_limited: bool
) -> None:
    clock = Clock()
    settings = Settings(host=host, open_to_everyone=True, requests_per_second=5)
    authenticator = Authenticator(settings, lambda: 0, clock)

    def refused(address: str) -> int:
        async def ask() -> int:
            found = 0
            for _ in range(12):
                try:
                    caller = await authenticator.authenticate(Headers({}), address)
                    assert (caller.role, caller.address) == (EVERYONE.role, address)
                except TooManyRequestsError:
                    found += 1
            return found

        return asyncio.run(ask())

    # Twice the requests of a second at once.
    assert refused(HOME) == (2 if is_limited else 0)
    assert refused(AWAY) == (2 if is_limited else 0)
    clock.seconds += 1
    assert refused(HOME) == (7 if is_limited else 0)


def test_flood_of_addresses_does_not_renew_the_limit_of_a_caller(tmp_path: Path) -> None:
    key, text = new_key("vera", "viewer", (), 0)
    path = tmp_path / "keys.json"
    write_keys(path, [key])
    settings = Settings(keys_file=path, requests_per_second=1)
    authenticator = Authenticator(settings, lambda: 0, Clock())

    async def ask() -> list[bool]:
        allowed = []
        for _ in range(2):
            for _ in range(3):
                try:
                    await authenticator.authenticate(bearer(text), HOME)
                    allowed.append(True)
                except TooManyRequestsError:
                    allowed.append(False)
            for number in range(_CALLERS + 1):
                address = f"198.51.{number >> 8}.{number & 255}"
                with pytest.raises(UnauthenticatedError):
                    await authenticator.authenticate(Headers({}), address)
        return allowed

    assert asyncio.run(ask()) == [True, True, False, False, False, False]


@pytest.mark.parametrize(
    ("host", "address", "owner"),
    [
        ("127.0.0.1", "127.0.0.1", None),
        ("192.0.2.9", AWAY, f"address {AWAY}"),
        ("::", "2001:db8::1", "address 20010db800000000/64"),
    ],
)
def test_streams_of_an_open_service_are_counted_by_address(
    host: str, address: str, owner: str | None
) -> None:
    authenticator = Authenticator(Settings(host=host, open_to_everyone=True), lambda: 0, Clock())
    caller = asyncio.run(authenticator.authenticate(Headers({}), address))
    assert authenticator.owner_of(caller) == owner
    vera = Caller("vera", Role.VIEWER, method="key", address=address)
    assert authenticator.owner_of(vera) == "key vera"
