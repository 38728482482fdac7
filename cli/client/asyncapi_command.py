"""Write the AsyncAPI document of an installation (``asyncapi``)."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.client.lines import write_json_line


def asyncapi(
    *,
    prefix: Annotated[
        str | None, typer.Option(help="Prefix of the topics; default: COINCIDE_PREFIX.")
    ] = None,
) -> None:
    """Write the AsyncAPI document: every topic, and JSON Schemas of its records."""
    # Imported here: slow to import, and --help does not need it.
    from service.asyncapi import make_document  # noqa: PLC0415
    from service.settings import Settings  # noqa: PLC0415

    settings = Settings() if prefix is None else Settings(prefix=prefix)
    write_json_line(make_document(settings))
