"""Errors of the command line; each has a message of one sentence and an exit code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar


class CliError(Exception):
    """Base of all errors; the command line shows them as one sentence, without a traceback."""

    exit_code: ClassVar[int] = 1


class UsageError(CliError):
    """An argument, an option or an input file is not valid."""

    exit_code = 2


class MissingJavaError(CliError):
    """No Java runtime was found, or the runtime is too old."""

    exit_code = 3


class JarsError(CliError):
    """The Java archives are missing and could not be fetched."""

    exit_code = 4


class BrokerError(CliError):
    """The embedded broker did not start, or an external broker does not answer."""

    exit_code = 5


class ServiceError(CliError):
    """The service does not answer, or it rejected a request."""

    exit_code = 6


class RefusedError(ServiceError):
    """The service answers, but rejects the request.

    Parameters
    ----------
    message
        Message of the error.
    status
        HTTP status of the response.
    problems
        Problems in the response, one for each field.
    """

    def __init__(
        self, message: str, status: int, problems: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        super().__init__(message)
        self.status = status
        self.problems = [dict(it) for it in problems]


class DifferenceError(CliError):
    """The files could not be compared with the service, so `diff` has no result."""

    exit_code = 2


class ProcessError(CliError):
    """A process of the local stack or of a replay has ended, or was not ready in time."""

    exit_code = 7


class RescaleError(CliError):
    """The job does not run with the wanted number of slots in time."""

    exit_code = 1


class VerificationError(CliError):
    """The demo differs from the reference, or a strict replay has rejected, late or lost events."""

    exit_code = 1
