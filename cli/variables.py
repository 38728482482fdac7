"""Warnings about unknown, probably misspelled, environment variables."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from cli.settings import Settings
from kafka_client.secret_files import secret_variables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic_settings import BaseSettings

_PREFIX = "COINCIDE_"
# Read elsewhere: by the tests, and by the job's workers, for which the job sets their role.
_OTHERS = frozenset({"COINCIDE_TEST_BOOTSTRAP", "COINCIDE_WORKER_ROLE"})


def warn_of_unknown(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each unknown variable with Coincide's prefix.

    Parameters
    ----------
    environment
        Environment variables of this process.
    """
    given = [name for name in sorted(environment) if name.upper().startswith(_PREFIX)]
    if not {name.upper() for name in given} - _names(Settings):
        return
    known = known_variables()
    for name in given:
        if name.upper() not in known:
            near = difflib.get_close_matches(name.upper(), sorted(known), n=1)
            meant = f"; did you mean {near[0]}?" if near else "; see docs/configuration.md"
            yield f"{name}: is not a variable of Coincide and has no effect{meant}"


def known_variables() -> frozenset[str]:
    """Return the names of all variables that Coincide reads."""
    return _OTHERS.union(*map(_names, all_settings()))


def all_settings() -> tuple[type[BaseSettings], ...]:
    """Return the settings classes of command line, service and job."""
    # Imported only for a warning or an error, because the imports are slow.
    from service.settings import Settings as ServiceSettings  # noqa: PLC0415
    from spark_jobs.settings import Settings as JobSettings  # noqa: PLC0415

    return Settings, ServiceSettings, JobSettings


def _names(
    settings: type[BaseSettings],
) -> frozenset[str]:
    named = frozenset(f"{_PREFIX}{field.upper()}" for field in settings.model_fields)
    return named | secret_variables(settings)
