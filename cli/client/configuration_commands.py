"""Commands for configurations in files: ``apply``, ``diff``, ``export`` and ``schema``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console

from cli.client.lines import write_json_line
from cli.error_messages import describe_error
from cli.errors import CliError, DifferenceError, UsageError
from cli.settings import read_settings

# The service creates missing topics one after the other before it writes.
_TIMEOUT_SECONDS = 300
Files = Annotated[
    list[Path],
    typer.Option("--file", "-f", help="YAML or JSON file; - is standard input. Repeatable."),
]
Url = Annotated[str | None, typer.Option(help="URL of the service; default: COINCIDE_URL.")]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON.")]


def apply(
    *,
    file: Files,
    url: Url = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Delete all resources that the files do not contain.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the documents, write nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Register the templates, streams and conditions in files, all or none.

    Unchanged resources are not written.
    """
    # Imported here: slow to import, and --help does not need it.
    from cli.client.configuration import (  # noqa: PLC0415
        changes_of,
        put_configuration,
        show_change,
    )
    from cli.client.resources import read_resources  # noqa: PLC0415
    from cli.client.rest import ServiceClient  # noqa: PLC0415

    resources = read_resources(file)
    console = Console(highlight=False, soft_wrap=True)
    with ServiceClient.of(read_settings(url=url), _TIMEOUT_SECONDS) as service:
        difference = put_configuration(service, resources, prune=prune, dry_run=dry_run)
    for applied in changes_of(difference, resources):
        if as_json:
            write_json_line(applied._asdict())
        else:
            show_change(applied, console)
    if dry_run and not as_json:
        console.print("[dim]dry run: nothing was written[/]")


def diff(
    *,
    file: Files,
    url: Url = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Compare as for a deletion of all other resources.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show what `apply` would change; exit code 0: nothing, 1: a difference, 2: an error."""
    # Imported here: slow to import, and --help does not need it.
    from cli.client.configuration import (  # noqa: PLC0415
        is_different,
        put_configuration,
        show_difference,
    )
    from cli.client.resources import read_resources  # noqa: PLC0415
    from cli.client.rest import ServiceClient  # noqa: PLC0415

    try:
        resources = read_resources(file)
        with ServiceClient.of(read_settings(url=url), _TIMEOUT_SECONDS) as service:
            difference = put_configuration(service, resources, prune=prune, dry_run=True)
    except (CliError, OSError) as error:
        raise DifferenceError("\n".join(describe_error(error)[0])) from error
    if as_json:
        write_json_line(difference)
    else:
        show_difference(difference, resources, Console(highlight=False, soft_wrap=True))
    if is_different(difference):
        raise typer.Exit(1)


def export(
    *,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write; default: standard output."),
    ] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Write all templates, streams and conditions of the service as a file for `apply`.

    The order is fixed, so that versions of the file can be compared.
    """
    # Imported here: slow to import, and --help does not need it.
    from cli.client.rest import ServiceClient  # noqa: PLC0415

    with ServiceClient.of(read_settings(url=url)) as service:
        if as_json:
            found = service.get("/v1/config")
            content = orjson.dumps(found, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        else:
            content = service.text("/v1/config", accept="application/yaml").encode()
    _write(output, content)


def schema() -> None:
    """Write the JSON Schema of the documents in files, for editors and CI."""
    # Imported here: slow to import, and --help does not need it.
    from service.documents.schema import file_schema  # noqa: PLC0415

    options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    _write(None, orjson.dumps(file_schema(), option=options))


def _write(file: Path | None, content: bytes) -> None:
    if file is None or str(file) == "-":
        sys.stdout.buffer.write(content)
        return
    try:
        file.write_bytes(content)
    except OSError as error:
        raise UsageError(f"--output: {file} cannot be written: {error.strerror}") from error
