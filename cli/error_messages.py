"""Messages of errors that end a command."""

from __future__ import annotations

from pydantic import ValidationError

from cli.errors import CliError, UsageError
from cli.variables import all_settings
from kafka_client.settings import describe


def describe_error(error: Exception) -> tuple[list[str], int]:
    """Return the sentences for an error that ends a command, and the exit code.

    Parameters
    ----------
    error
        A `CliError`, the `ValidationError` of settings, or an `OSError`.
    """
    if isinstance(error, ValidationError):
        return describe(error, *all_settings()), UsageError.exit_code
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename is not None else ""
        return [f"{where}{error.strerror or error}"], CliError.exit_code
    return [str(error)], error.exit_code if isinstance(error, CliError) else CliError.exit_code
