"""What can go wrong at the command line; each error is one clear sentence and an exit code."""

from __future__ import annotations

from typing import ClassVar


class CliError(Exception):
    """Base of all errors that the command line shows as one sentence, without a traceback."""

    exit_code: ClassVar[int] = 1


class UsageError(CliError):
    """An argument, an option or an input file is not what the command takes."""

    exit_code = 2


class MissingJavaError(CliError):
    """No Java runtime was found, or only one that is too old."""

    exit_code = 3


class JarsError(CliError):
    """The Java archives are not there and could not be fetched."""

    exit_code = 4


class BrokerError(CliError):
    """The embedded broker did not start, or a given one does not answer."""

    exit_code = 5


class ServiceError(CliError):
    """The service does not answer, or it refused a document."""

    exit_code = 6


class RefusedError(ServiceError):
    """The service answers, and refuses the request.

    Parameters
    ----------
    message
        What it says.
    status
        HTTP status of its answer.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class ProcessError(CliError):
    """A process of the local stack or of a replay ended, or was not ready in time."""

    exit_code = 7


class VerificationError(CliError):
    """The demonstration differs from the plain reference; or a strict replay lacks events."""

    exit_code = 1
