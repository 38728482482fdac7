"""What can go wrong at the command line; each error is one clear sentence and an exit code."""

from __future__ import annotations

from typing import ClassVar

from pydantic import ValidationError

from kafka_client.settings import describe


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


def describe_error(error: Exception) -> tuple[list[str], int]:
    """Return what is said of an error that ends a command, and the exit code.

    Parameters
    ----------
    error
        A `CliError`; what wrong settings raise; or an `OSError`.
    """
    if isinstance(error, ValidationError):
        # They import this module, and take a while.
        from cli.variables import all_settings  # noqa: PLC0415

        return describe(error, *all_settings()), UsageError.exit_code
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename is not None else ""
        return [f"{where}{error.strerror or error}"], CliError.exit_code
    return [str(error)], error.exit_code if isinstance(error, CliError) else CliError.exit_code
