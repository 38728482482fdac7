"""Check conditions before they are registered (``validate``)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from cli.client.lines import write_json_line
from cli.errors import UsageError
from cli.settings import read_settings

# A sample may compile kernels, if no job has run on this computer: about a minute.
_TIMEOUT_SECONDS = 300
_MAX_RECORDS = 10_000


def validate(
    *,
    file: Annotated[
        list[Path],
        typer.Option("--file", "-f", help="YAML or JSON file; - is standard input. Repeatable."),
    ],
    sample: Annotated[
        list[str] | None,
        typer.Option(
            help="File with records of a stream, one JSON document per line. Repeatable.",
            metavar="STREAM=FILE",
        ),
    ] = None,
    from_topic: Annotated[
        bool,
        typer.Option("--from-topic", help="Use the newest records of the topics as sample."),
    ] = False,
    records: Annotated[
        int,
        typer.Option(
            help="Max number of records of each sample: the last, or newest.",
            min=1,
            max=_MAX_RECORDS,
        ),
    ] = 1_000,
    rate: Annotated[
        list[str] | None,
        typer.Option(
            help="Events per second of a stream; default: the rate of its sample. Repeatable.",
            metavar="STREAM=RATE",
        ),
    ] = None,
    keys: Annotated[float | None, typer.Option(help="Number of join keys.", min=1)] = None,
    url: Annotated[
        str | None, typer.Option(help="URL of the service; default: COINCIDE_URL.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> None:
    """Check conditions in files and estimate their load; exit code 1 if one is not valid.

    Nothing is written. The streams must be registered.
    """
    # Imported here: slow to import, and --help does not need it.
    from cli.client.resources import read_resources  # noqa: PLC0415
    from cli.client.rest import ServiceClient  # noqa: PLC0415
    from cli.client.validate import (  # noqa: PLC0415
        ValidateOptions,
        read_assignments,
        read_rates,
        show_validation,
        validate_conditions,
    )

    if from_topic and sample:
        raise UsageError("--from-topic and --sample cannot be combined; remove one of them")
    samples = {name: Path(it) for name, it in read_assignments("--sample", sample or ()).items()}
    if [*samples.values(), *file].count(Path("-")) > 1:
        raise UsageError("only one file can be standard input; name the others")
    options = ValidateOptions(samples, from_topic, records, read_rates(rate or ()), keys)
    resources = read_resources(file)
    valid = True
    with ServiceClient.of(read_settings(url=url), _TIMEOUT_SECONDS) as service:
        for name, answer in validate_conditions(service, resources, options):
            valid &= answer["valid"]
            if as_json:
                write_json_line({"name": name, **answer})
            else:
                show_validation(name, answer, Console(highlight=False))
    if not valid:
        raise typer.Exit(1)
