"""Middleware before all routes: host, origin, caller, limits, and headers of every response."""

from collections.abc import Mapping

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.access.authentication import Authenticator
from service.access.callers import STRANGER, Caller
from service.api.callers import METRICS, OPEN_PATHS, READYZ
from service.api.console import is_of_console
from service.api.problems import answer_error
from service.errors import ForeignHostError, ForeignOriginError, ServiceError
from service.hosts import is_allowed
from service.settings import Settings

_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_HEADERS: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # Answers are data. A page that has scripts or styles sets its own policy.
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
# Two years, as browsers advise.
_HTTPS_ONLY = "max-age=63072000"


class Guard:
    """ASGI middleware that refuses requests before their routes are looked up.

    Every path except those of health checks and the console needs a caller, also paths that do not
    exist.

    Parameters
    ----------
    app : callable
        The application.
    settings : Settings
        Settings of the service.
    authenticator : Authenticator
        Identifies the caller.
    headers : mapping of name to value
        Headers of every response that does not set them itself.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        authenticator: Authenticator,
        headers: Mapping[str, str],
    ) -> None:
        self._app = app
        self._authenticator = authenticator
        self._hosts = frozenset({*settings.allowed_hosts, settings.host.strip("[]").lower()})
        self._open = OPEN_PATHS | ({METRICS} if settings.open_metrics else set())
        self._headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer it with a problem."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            scope.setdefault("state", {})["caller"] = await self._caller(scope)
        except ServiceError as error:
            await answer_error(error)(scope, receive, send_guarded)
            return
        await self._app(scope, receive, send_guarded)

    async def _caller(self, scope: Scope) -> Caller:
        """Check a request and return its caller; errors as in `Authenticator.authenticate`."""
        is_reading = scope["method"] in _READING
        headers = Headers(scope=scope)
        if is_reading and scope["path"] == READYZ:
            try:
                return await self._checked(headers, scope)
            except ServiceError:
                return STRANGER
        if is_reading and scope["path"] in self._open:
            # Orchestrators use addresses of containers as host.
            return STRANGER
        if is_reading and is_of_console(scope["path"]):
            _check_host(headers, self._hosts)
            return STRANGER
        if not is_reading:
            _check_host(headers, self._hosts)
            _check_origin(headers)
        return await self._checked(headers, scope)

    async def _checked(self, headers: Headers, scope: Scope) -> Caller:
        """Check host and credentials of a request and return its caller."""
        _check_host(headers, self._hosts)
        address = (scope.get("client") or ("unknown",))[0]
        return await self._authenticator.authenticate(headers, address)


def response_headers(settings: Settings) -> dict[str, str]:
    """Return the headers of every response."""
    found = dict(_HEADERS)
    if settings.is_protected:
        found["Cache-Control"] = "no-store"
    if settings.tls_certificate is not None:
        found["Strict-Transport-Security"] = _HTTPS_ONLY
    return found


def _check_host(headers: Headers, allowed: frozenset[str]) -> None:
    """Refuse foreign names: a page whose name leads to this machine could read answers."""
    hosts = headers.getlist("host")
    if len(hosts) != 1 or not is_allowed(hosts[0], allowed):
        raise ForeignHostError(
            "Host: must be the name of this service; use that of COINCIDE_HOST, or add the name "
            "to COINCIDE_ALLOWED_HOSTS"
        )


def _check_origin(headers: Headers) -> None:
    """Refuse writes of pages of other sites; other clients send no Origin."""
    for origin in headers.getlist("origin"):
        if origin.partition("://")[2] != headers["host"]:
            raise ForeignOriginError(
                "Origin: pages of other sites must not write; send the request from a client"
            )
