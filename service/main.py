"""Process entry point of the service."""

from __future__ import annotations

import logging
import sys
from math import ceil
from typing import TYPE_CHECKING

import uvicorn
from pydantic import ValidationError

from correlation.errors import CorrelationError
from kafka_client.allocator import use_one_arena
from kafka_client.connection import explain_silence
from kafka_client.secrets import HidingFormatter
from kafka_client.settings import describe
from service.access.startup import access_problems
from service.app import create_app
from service.connections import connection_options, count_before_tls
from service.errors import BrokerError, ServiceError
from service.ports import find_port_problem
from service.settings import Settings

if TYPE_CHECKING:
    from socket import socket

    from fastapi import FastAPI

    from service.plane import ControlPlane

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_LOGGER = logging.getLogger(__name__)
FAILED = 1
WRONG_SETTING = 2
_OTHER_PORT = "set another port with COINCIDE_PORT, or another address with COINCIDE_HOST"


class Server(uvicorn.Server):
    """Server that ends the live feeds when it stops, instead of waiting for their clients.

    Parameters
    ----------
    config : uvicorn.Config
        Configuration of uvicorn.
    plane : ControlPlane
        Control plane of its application.
    """

    def __init__(self, config: uvicorn.Config, plane: ControlPlane) -> None:
        super().__init__(config)
        self._plane = plane

    async def startup(self, sockets: list[socket] | None = None) -> None:
        """Begin to accept connections."""
        count_before_tls(self.config)
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Stop accepting connections, end the streams, and wait for other requests."""
        self._plane.alarms.readers.close()
        await super().shutdown(sockets)


def server_config(settings: Settings, app: FastAPI) -> uvicorn.Config:
    """Return uvicorn's configuration of the service.

    Parameters
    ----------
    settings : Settings
        Settings of the service.
    app : FastAPI
        Its application.
    """
    return uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        # Writes are answered within these times; a client that reads nothing is cut off then.
        timeout_graceful_shutdown=ceil(
            settings.write_timeout_seconds + settings.broker_timeout_seconds
        ),
        **connection_options(settings),
    )


def serve(settings: Settings) -> int:
    """Run the service until a signal stops it.

    Parameters
    ----------
    settings : Settings
        Settings of the service.

    Returns
    -------
    int
        Exit code: 0 after an orderly stop; 1 when the broker cannot be reached at the start, the
        port is taken, or a newer version of the software wrote a record of the config topic; 2
        when settings of access control are missing or not valid.
    """
    use_one_arena()
    logging.basicConfig(level=settings.log_level.upper())
    for handler in logging.getLogger().handlers:
        handler.setFormatter(HidingFormatter(_FORMAT, settings.secrets))
    problems = access_problems(settings)
    if problems:
        for sentence in problems:
            _say(sentence)
        return WRONG_SETTING
    taken = find_port_problem(settings.host, settings.port)
    if taken:
        _say(f"{taken}; {_OTHER_PORT}")
        return FAILED
    app = create_app(settings)
    plane: ControlPlane = app.state.plane
    try:
        plane.start()
    except (ServiceError, CorrelationError) as error:
        silent = isinstance(error, BrokerError)
        cause = explain_silence(settings.client_properties("coincide-service")) if silent else None
        _say(f"the service could not start: {error}{f': {cause}' if cause else ''}")
        return FAILED
    if settings.open_to_everyone:
        _LOGGER.warning("access control is off: everyone who reaches the service may change it")
    server = Server(server_config(settings, app), plane)
    plane.on_failure = lambda: setattr(server, "should_exit", True)
    try:
        server.run()
    except SystemExit:
        # uvicorn exits this way, after logging it, if the port was taken since it was checked.
        _say(f"the service cannot listen on {settings.host}, port {settings.port}; {_OTHER_PORT}")
        return FAILED
    finally:
        plane.stop()
    if plane.failure is not None:
        _say(f"the service stopped: {plane.failure}")
        return FAILED
    return 0


def main() -> None:
    """Run the service with the settings of the environment; exit code 2 when one is not valid."""
    try:
        settings = Settings()
    except ValidationError as error:
        for sentence in describe(error, Settings):
            _say(sentence)
        sys.exit(WRONG_SETTING)
    sys.exit(serve(settings))


def _say(sentence: str) -> None:
    sys.stderr.write(f"coincide: {sentence}\n")


if __name__ == "__main__":
    main()
