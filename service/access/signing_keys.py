"""Public keys of an issuer of tokens (RFC 7517), fetched over HTTP and kept.

The keys are fetched when the first token arrives, every hour, and when a token names an unknown
key, but not more often than twice a minute: forged tokens must not make the service call the issuer
for each request. Tokens of known keys never wait for the issuer.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

import httpx
import jwt
import orjson

from service.errors import IssuerError
from service.hosts import is_private_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.settings import Settings

_LOGGER = logging.getLogger(__name__)
_LIFETIME_SECONDS = 3600.0
MIN_INTERVAL_SECONDS = 30.0
_TIMEOUT_SECONDS = 5.0
# Far above the size of any set of keys.
_MAX_BYTES = 1024 * 1024
_DISCOVERY = "/.well-known/openid-configuration"


class UnknownKeyError(Exception):
    """A key of a token is not known; the issuer may have it."""


class SigningKeys:
    """The keys of the issuer; any thread may ask.

    Parameters
    ----------
    settings : Settings
        Issuer, and optionally the URL of its keys.
    seconds : callable
        Returns a monotonic time in seconds.
    """

    def __init__(self, settings: Settings, seconds: Callable[[], float]) -> None:
        self._issuer = settings.oidc_issuer or ""
        self._url = settings.oidc_jwks_url
        self._seconds = seconds
        self._lock = threading.Lock()
        self._keys: tuple[jwt.PyJWK, ...] = ()
        self._fetched: float | None = None
        self._tried: float | None = None

    def known(self, key_id: str | None) -> jwt.PyJWK:
        """Return a key without waiting; keys that are too old are fetched in another thread.

        Parameters
        ----------
        key_id : str or None
            As of `find`.

        Raises
        ------
        UnknownKeyError
            When the key is not known; the issuer may have it.
        """
        found = self._known(key_id)
        if found is None:
            raise UnknownKeyError
        # They stay valid until the issuer has answered.
        is_old = self._is_due(self._fetched, _LIFETIME_SECONDS)
        if is_old and self._may_ask() and self._lock.acquire(blocking=False):
            threading.Thread(target=self._ask_and_release, name="keys", daemon=True).start()
        return found

    def find(self, key_id: str | None) -> jwt.PyJWK | None:
        """Return the key with an id, even if the issuer must be asked; None: it has no such key.

        Parameters
        ----------
        key_id : str or None
            Id of the key; a token without an id is checked with the only key of the issuer.

        Raises
        ------
        IssuerError
            When no key has been fetched yet and the issuer does not answer.
        """
        with self._lock:
            # Another thread may have fetched the keys while this one waited.
            if self._known(key_id) is None:
                self._ask()
        if self._fetched is None:
            raise IssuerError("the issuer of tokens does not answer; the log has the reason")
        return self._known(key_id)

    def _may_ask(self) -> bool:
        return self._is_due(self._tried, MIN_INTERVAL_SECONDS)

    def _ask(self) -> None:
        """Fetch the keys if the issuer may be asked again; the caller holds the lock."""
        if self._may_ask():
            self._tried = self._seconds()
            self._refresh()

    def _ask_and_release(self) -> None:
        """Fetch the keys in a thread of its own, for which the lock was acquired."""
        try:
            self._ask()
        finally:
            self._lock.release()

    def _known(self, key_id: str | None) -> jwt.PyJWK | None:
        keys = self._keys
        if key_id is None:
            return keys[0] if len(keys) == 1 else None
        return next((it for it in keys if it.key_id == key_id), None)

    def _is_due(self, then: float | None, after_seconds: float) -> bool:
        return then is None or self._seconds() - then >= after_seconds

    def _refresh(self) -> None:
        """Fetch the keys; if that fails, the present ones remain in force."""
        try:
            found = jwt.PyJWKSet.from_dict(_fetch(self._url or self._discover()))
        except (httpx.HTTPError, httpx.InvalidURL, jwt.PyJWTError, ValueError) as error:
            _LOGGER.error("the keys of %s could not be fetched: %s", self._issuer, error)  # noqa: TRY400 - the sentence has the cause
            return
        self._keys = tuple(it for it in found.keys if it.public_key_use in {None, "sig"})
        self._fetched = self._seconds()
        _LOGGER.info("the keys of %s were fetched: %d keys", self._issuer, len(self._keys))

    def _discover(self) -> str:
        """Return the URL of the keys that the issuer publishes (OpenID Connect Discovery)."""
        found = _fetch(self._issuer.rstrip("/") + _DISCOVERY)
        url = found.get("jwks_uri")
        if found.get("issuer") != self._issuer:
            raise ValueError(f"its discovery document is of the issuer {found.get('issuer')!r}")
        if not isinstance(url, str) or not is_private_url(url):
            raise ValueError("jwks_uri must be a URL of https://")
        return url


def _fetch(url: str) -> dict[str, Any]:
    """Return the JSON object at a URL; redirects are not followed."""
    content = bytearray()
    with httpx.stream("GET", url, timeout=_TIMEOUT_SECONDS) as answer:
        if answer.status_code != httpx.codes.OK:
            raise ValueError(f"{url} answered with status {answer.status_code}")
        for part in answer.iter_bytes():
            content += part
            if len(content) > _MAX_BYTES:
                raise ValueError(f"{url} answered with more than {_MAX_BYTES} bytes")
    found = orjson.loads(content)
    if not isinstance(found, dict):
        raise ValueError(f"{url} did not answer with a JSON object")  # noqa: TRY004 - as for other wrong content
    return found
