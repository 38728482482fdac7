"""The FastAPI application: `create_app(settings)`; it is idle until its lifespan begins."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import Depends, FastAPI
from fastapi.concurrency import run_in_threadpool

from service.access.authentication import Authenticator
from service.api import (
    alarms,
    asyncapi,
    conditions,
    configuration,
    console,
    explain,
    health,
    job_slots,
    present_list,
    stream_status,
    streams,
    templates,
    validation,
)
from service.api.body import new_limiter
from service.api.guard import Guard, response_headers
from service.api.openapi import describe_access
from service.api.problems import MEDIA_TYPE, install
from service.api.query import check_query
from service.exposition import make_registry
from service.plane import ControlPlane

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from prometheus_client import Histogram
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from service.settings import Settings

_FIRST_ERROR = 400
_DESCRIPTION = """Streams of events with uncertain times, and conditions on these times.

Durations are numbers with the unit in the field name (`window_us`, `window_ms`, `window_s`) or
strings (`window`: "250ms"). Errors are problem details (RFC 9457) with a numeric `error_code`."""


class CoincideApp(FastAPI):
    """FastAPI application whose OpenAPI schema describes errors as problems."""

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI schema."""
        if self.openapi_schema is None:
            schema = super().openapi()
            if self.state.plane.settings.is_protected:
                describe_access(schema, self.state.plane.settings)
            for path in schema["paths"].values():
                for operation in path.values():
                    _describe_problems(operation["responses"])
        return super().openapi()


def create_app(
    settings: Settings,
    now_us: Callable[[], int] | None = None,
    seconds: Callable[[], float] = time.monotonic,
) -> FastAPI:
    """Build the application.

    Parameters
    ----------
    settings : Settings
        Settings of the service.
    now_us : callable, optional
        Returns the time in µs since 1970; the system clock by default.
    seconds : callable
        Returns a monotonic time in seconds, for limits of requests.

    Raises
    ------
    AccessSettingsError
        When the file of keys cannot be used.
    """
    plane = ControlPlane(settings, now_us or _system_now_us)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await run_in_threadpool(plane.start)
        try:
            yield
        finally:
            await run_in_threadpool(plane.stop)

    app = CoincideApp(
        title="Coincide",
        version="1",
        description=_DESCRIPTION,
        lifespan=lifespan,
        dependencies=[Depends(check_query)],
        redirect_slashes=False,
        # The docs pages load scripts from other hosts; the schema itself is at /openapi.json.
        docs_url=None,
        redoc_url=None,
    )
    registry, requests = make_registry(plane)
    authenticator = Authenticator(settings, plane.now_us, seconds)
    app.state.plane = plane
    app.state.authenticator = authenticator
    app.state.metrics_registry = registry
    app.state.parsing = new_limiter()
    app.state.headers = response_headers(settings)
    app.state.alarm_threads = alarms.Threads()
    app.state.monitoring = health.Monitoring(plane, authenticator)
    install(app)
    for module in (
        *(streams, stream_status, templates),
        *(validation, conditions, explain, present_list, alarms, configuration, asyncapi, health),
        *(job_slots, console),
    ):
        app.include_router(module.router)
    # The last one is the outermost: it observes refused requests too.
    app.add_middleware(
        Guard, settings=settings, authenticator=authenticator, headers=app.state.headers
    )
    app.add_middleware(_Timed, histogram=requests)
    return app


class _Timed:
    """Middleware that observes the time until the response to each request begins.

    The rest of the response is not observed: a live feed lasts for hours.
    """

    def __init__(self, app: ASGIApp, histogram: Histogram) -> None:
        self._app = app
        self._histogram = histogram

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, is_observed = time.perf_counter(), False

        def observe() -> None:
            nonlocal is_observed
            if not is_observed:
                self._histogram.observe(time.perf_counter() - began)
                is_observed = True

        async def send_timed(message: Message) -> None:
            observe()
            await send(message)

        try:
            await self._app(scope, receive, send_timed)
        finally:
            # Without a response: the client has gone, or the service failed.
            observe()


def _describe_problems(responses: dict[str, Any]) -> None:
    """Move the schemas of errors to the media type of problems."""
    for status, response in responses.items():
        content = response.get("content", {})
        if status.isdecimal() and int(status) >= _FIRST_ERROR and "application/json" in content:
            content[MEDIA_TYPE] = content.pop("application/json")


def _system_now_us() -> int:
    return time.time_ns() // 1000
