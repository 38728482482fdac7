"""What can go wrong at the command line; each error is one clear sentence and an exit code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from pydantic import ValidationError
from pydantic_settings import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator

# pydantic-settings names the field in its message only.
_FIELD = re.compile(r'field "(\w+)"')


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
        # A value that may be of several types is told once for each of them.
        return list(dict.fromkeys(_wrong_values(error))), UsageError.exit_code
    if isinstance(error, SettingsError):
        field = _FIELD.search(str(error))
        name = f"COINCIDE_{field[1].upper()}" if field else str(error)
        return [f'{name} is not a JSON object, like {{"name": "value"}}'], UsageError.exit_code
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename is not None else ""
        return [f"{where}{error.strerror or error}"], CliError.exit_code
    return [str(error)], error.exit_code if isinstance(error, CliError) else CliError.exit_code


def _wrong_values(error: ValidationError) -> Iterator[str]:
    """Give a sentence for each value that a setting does not take."""
    for found in error.errors():
        field, *inside = (str(part) for part in found["loc"])
        member = f" {inside[0]}" if inside else ""
        yield f"COINCIDE_{field.upper()}{member}: {found['msg']}"
