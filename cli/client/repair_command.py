"""The command ``coincide repair-config``."""

from __future__ import annotations

from typing import Annotated

import orjson
import typer
from rich.console import Console

from cli.client.lines import counted
from cli.settings import read_settings
from correlation.printable import printable


def repair_config(
    *,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Remove the records without confirmation.")
    ] = False,
    newer: Annotated[
        bool,
        typer.Option("--newer", help="Also remove records of a newer version of Coincide."),
    ] = False,
    bootstrap: Annotated[
        str | None,
        typer.Option(help="Addresses of the Kafka brokers; default: COINCIDE_BOOTSTRAP."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> None:
    """List the unreadable records of the config topic, and remove them after confirmation.

    Exit code 1 if unreadable records remain.
    """
    # Imported here: Kafka's client is slow to import, and --help does not need it.
    from cli.client.repair import find_unreadable, remove  # noqa: PLC0415

    settings = read_settings(bootstrap=bootstrap)
    console = Console(highlight=False, soft_wrap=True)
    found = find_unreadable(settings)
    for it in found:
        if as_json:
            typer.echo(orjson.dumps(it.to_document()))
        else:
            record = it.record
            sentence = f"offset {record.offset}, {record.shown_key}: {record.problem}"
            console.print(printable(sentence), markup=False)
    wanted = [it for it in found if newer or not it.is_newer]
    if len(wanted) < len(found):
        Console(stderr=True, highlight=False, soft_wrap=True).print(
            f"kept {counted(len(found) - len(wanted), 'record')} of a newer version: upgrade, or "
            "add --newer"
        )
    if wanted and not yes:
        # A script must pass --yes; only an interactive user is asked.
        yes = not as_json and typer.confirm(f"Remove {counted(len(wanted), 'record')} permanently?")
    removed = remove(settings, wanted) if yes and wanted else []
    if not as_json:
        console.print(
            f"removed {len(removed)} of {counted(len(found), 'unreadable record')}"
            if found
            else f"{settings.topics.config} has no unreadable records"
        )
    if len(removed) < len(found):
        raise typer.Exit(1)
