"""Show how a condition is evaluated (``plan``)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer
from rich.console import Console

from cli.client.lines import write_json_line
from cli.errors import UsageError
from cli.settings import read_settings


def plan(
    condition: Annotated[str, typer.Argument(help="Name of the condition.")],
    *,
    svg: Annotated[
        Path | None,
        typer.Option(
            help="Write the plan as a picture to this file; - is standard output. For event "
            "queries: the constraint graph."
        ),
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="URL of the service; default: COINCIDE_URL.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> None:
    """Show how a condition is evaluated, and how long it keeps events."""
    # Imported here: slow to import, and --help does not need it.
    from cli.client.near_names import suggesting  # noqa: PLC0415
    from cli.client.plan import show_plan  # noqa: PLC0415
    from cli.client.rest import ServiceClient  # noqa: PLC0415

    if svg is not None and as_json:
        raise typer.BadParameter("--svg cannot be combined with --json")
    path = f"/v1/conditions/{quote(condition, safe='')}/plan"
    with (
        ServiceClient.of(read_settings(url=url)) as service,
        suggesting(service, {("condition", condition)}),
    ):
        if svg is not None:
            _write(svg, service.text(path, accept="image/svg+xml"))
            return
        answer = service.get(path)
    if as_json:
        write_json_line(answer)
    else:
        show_plan(condition, answer, Console(highlight=False))


def _write(file: Path, picture: str) -> None:
    if str(file) == "-":
        sys.stdout.buffer.write(picture.encode())
        return
    try:
        file.write_text(picture, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--svg: {file} cannot be written: {error.strerror}") from error
