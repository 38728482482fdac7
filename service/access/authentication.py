"""Identification of the caller of a request, and the limits of its requests."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from anyio import CapacityLimiter, to_thread

from service.access.callers import EVERYONE
from service.access.key_file import KeyFile
from service.access.keys import is_key
from service.access.rates import RateLimit, network_of
from service.access.signing_keys import UnknownKeyError
from service.access.tokens import TokenVerifier
from service.errors import TooManyRequestsError, UnauthenticatedError
from service.hosts import is_loopback

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.datastructures import Headers

    from service.access.callers import Caller
    from service.settings import Settings

_LOGGER = logging.getLogger(__name__)
_REALM = 'Bearer realm="coincide"'
_INVALID = f'{_REALM}, error="invalid_token"'
_HOW = "send an API key or a token: Authorization: Bearer …, or X-API-Key: …"
# Max number of wrong credentials of an address at once; afterwards one a second.
FAILURES_AT_ONCE = 10
_FAILURES_PER_SECOND = 1.0
# A caller may send the requests of this time at once.
_BURST_SECONDS = 2.0
# Threads that wait for the issuer's keys: one fetches them. Tokens of known keys need no thread.
_THREADS = 8


class Authenticator:
    """Identifies callers.

    Parameters
    ----------
    settings : Settings
        Settings of access control and limits.
    now_us : callable
        Returns the time in µs since 1970.
    seconds : callable
        Returns a monotonic time in seconds.

    Raises
    ------
    AccessSettingsError
        When the file of keys cannot be used.
    """

    def __init__(
        self, settings: Settings, now_us: Callable[[], int], seconds: Callable[[], float]
    ) -> None:
        self._now_us = now_us
        self._is_on = settings.is_protected
        self._is_local = is_loopback(settings.host)
        self._key_file = None if settings.keys_file is None else KeyFile(settings.keys_file)
        self._tokens = None if settings.oidc_issuer is None else TokenVerifier(settings, seconds)
        self._threads = CapacityLimiter(_THREADS)
        rate = settings.requests_per_second
        # Separate memories: many addresses cannot displace callers and so renew their limits.
        self._requests = RateLimit(rate, rate * _BURST_SECONDS, seconds)
        self._strangers = RateLimit(rate, rate * _BURST_SECONDS, seconds)
        self._failures = RateLimit(_FAILURES_PER_SECOND, FAILURES_AT_ONCE, seconds)

    @property
    def problem(self) -> str | None:
        """A sentence on the file of keys if it has become unusable; None: it is valid."""
        if self._key_file is None:
            return None
        self._key_file.refresh()
        return self._key_file.problem

    async def authenticate(self, headers: Headers, address: str) -> Caller:
        """Return the caller of a request.

        Parameters
        ----------
        headers : Headers
            Headers of the request.
        address : str
            Address of the client.

        Raises
        ------
        UnauthenticatedError
            When credentials are missing or not valid.
        TooManyRequestsError
            When the caller sends requests too fast, or the address sent wrong credentials.
        IssuerError
            When the keys of the issuer of tokens could never be fetched.
        """
        network = network_of(address)
        if not self._is_on:
            if not self._is_local:
                _raise_if(self._strangers.take(network))
            return replace(EVERYONE, address=address)
        credentials = read_credentials(headers)
        if credentials is None:
            _raise_if(self._strangers.take(network))
            raise UnauthenticatedError(f"credentials are missing; {_HOW}", _REALM)
        caller = await self._find(credentials)
        if caller is None:
            _raise_if(self._failures.take(network))
            _LOGGER.warning("credentials from %s are not valid", address)
            raise UnauthenticatedError(f"the credentials are not valid; {_HOW}", _INVALID)
        _raise_if(self._requests.take(f"{caller.method} {caller.name}"))
        return replace(caller, address=address)

    def owner_of(self, caller: Caller) -> str | None:
        """Return the name under which a caller's streams are counted; None: without a limit.

        An open service counts the streams of an address, unless only this machine reaches it.
        """
        if caller.method != "none":
            return f"{caller.method} {caller.name}"
        return None if self._is_local else f"address {network_of(caller.address or '')}"

    def is_valid(self, caller: Caller) -> bool:
        """Return whether the credentials of a caller have neither expired nor been revoked."""
        if caller.expires_at_us is not None and caller.expires_at_us <= self._now_us():
            return False
        return self._key_file is None or caller.key_id is None or self._key_file.has(caller.key_id)

    async def _find(self, credentials: str) -> Caller | None:
        if is_key(credentials):
            found = self._key_file
            return None if found is None else found.find(credentials, self._now_us())
        if self._tokens is None:
            return None
        try:
            # In no thread: tokens of unknown keys, which need no secret, may occupy all of them.
            return self._tokens.verify(credentials, wait=False)
        except UnknownKeyError:
            return await to_thread.run_sync(self._tokens.verify, credentials, limiter=self._threads)


def read_credentials(headers: Headers) -> str | None:
    """Return the credentials of a request; None: it has none, or several."""
    found = [it.strip() for it in headers.getlist("x-api-key")]
    for value in headers.getlist("authorization"):
        scheme, _, credentials = value.strip().partition(" ")
        found.append(credentials.strip() if scheme.lower() == "bearer" else "")
    return found[0] if len(found) == 1 and found[0] else None


def _raise_if(seconds: int) -> None:
    if seconds:
        raise TooManyRequestsError(f"too many requests; wait {seconds} s", seconds)
