"""The commands ``coincide backup`` and ``coincide restore``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cli.client.lines import counted
from cli.errors import UsageError
from cli.settings import read_settings
from correlation.printable import printable
from correlation.resources.times import describe_moment

_Bootstrap = Annotated[
    str | None,
    typer.Option(help="Addresses of the Kafka brokers; default: COINCIDE_BOOTSTRAP."),
]


def backup(
    file: Annotated[Path, typer.Argument(help="File to write; an existing one is replaced.")],
    *,
    bootstrap: _Bootstrap = None,
) -> None:
    """Write the registrations and the state of the job to a file; both may be in operation."""
    # Imported here: Kafka's client is slow to import, and --help does not need it.
    from cli.client.backup import CONFIG, STATE, read_backup, write_file  # noqa: PLC0415

    made = read_backup(read_settings(bootstrap=bootstrap))
    if not made.count(CONFIG) and file.exists():
        raise UsageError(
            f"{file} exists, and the installation has no registrations; use the name of a new file"
        )
    write_file(made, file)
    registrations = counted(made.count(CONFIG), "registration")
    records = counted(made.count(STATE), "record")
    _say(f"wrote {registrations} and {records} of the state to {file}")


def restore(
    file: Annotated[Path, typer.Argument(help="File that `coincide backup` has written.")],
    *,
    only: Annotated[
        str | None,
        typer.Option(help="Restore one topic only: config (the registrations) or state."),
    ] = None,
    bootstrap: _Bootstrap = None,
) -> None:
    """Write the records of a backup to the empty topics of an installation.

    Start the job afterwards, without its former checkpoint.
    """
    # Imported here: as above.
    from cli.client.backup import PARTS, read_file  # noqa: PLC0415
    from cli.client.backup import restore as write  # noqa: PLC0415

    if only is not None and only not in PARTS:
        raise typer.BadParameter("use config or state", param_hint="--only")
    settings = read_settings(bootstrap=bootstrap)
    found = read_file(file)
    parts = PARTS if only is None else (only,)
    write(settings, found, parts)
    records = counted(sum(it.part in parts for it in found.records), "record")
    _say(f"restored {records} of {describe_moment(found.made_at)}")


def _say(sentence: str) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True).print(printable(sentence), markup=False)
