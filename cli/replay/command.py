"""``coincide replay``: its options. What it needs is imported when it runs."""

# Imports inside the command: --help need not wait for them.
# ruff: noqa: PLC0415
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console

from cli.errors import VerificationError
from cli.replay.options import MOST_PROCESSES, Format
from cli.settings import Settings


def replay(
    *,
    file: Annotated[
        list[Path],
        typer.Option(
            "--file", "-f", help="YAML or JSON file of streams and conditions, as for apply."
        ),
    ],
    events: Annotated[
        list[str],
        typer.Option(
            metavar="STREAM=FILE",
            help="Events of a stream: JSON lines, CSV or Parquet; - is standard input. Repeatable, "
            "also for one stream.",
        ),
    ],
    format_: Annotated[
        Format | None,
        typer.Option("--format", help="Of standard input, and of files with other extensions."),
    ] = None,
    condition: Annotated[
        list[str] | None, typer.Option(help="Only this condition. Repeatable.")
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STREAM=PATH",
            help="Field with the join key, where the mapping leaves it to Kafka's record key.",
        ),
    ] = None,
    sort: Annotated[
        bool,
        typer.Option("--sort", help="Order each file by latest time first; takes memory."),
    ] = False,
    thresholds: Annotated[
        str | None,
        typer.Option(help="Count the pairs at 0.5,0.6 or 0.5..0.9:0.1 instead of writing alarms."),
    ] = None,
    alarms: Annotated[
        Path | None, typer.Option(help="File of the alarms; standard output by default.")
    ] = None,
    rejects: Annotated[
        Path | None, typer.Option(help="File of the rows that are no events, with the reason.")
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(help="All cores by default, one for small files.", min=1, max=MOST_PROCESSES),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="End with 1 if a row was rejected or late.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write the summary as JSON, for scripts.")
    ] = False,
) -> None:
    """Run conditions over files, without Kafka, Spark or a service; alarms as JSON lines."""
    from cli.replay.options import ReplayOptions, event_files, split_assignment
    from cli.replay.report import show_report, show_thresholds
    from cli.replay.run import run_replay
    from cli.replay.thresholds import read_thresholds

    options = ReplayOptions(
        resources=tuple(file),
        files=event_files(events, format_),
        conditions=tuple(condition or ()),
        keys=tuple(split_assignment(it, "--key", "STREAM=PATH") for it in key or ()),
        sort=sort,
        processes=processes,
        alarms=alarms,
        rejects=rejects,
        thresholds=read_thresholds(thresholds) if thresholds is not None else (),
        most_record_bytes=Settings().max_record_bytes,
    )
    told = Console(stderr=True, highlight=False, soft_wrap=True)
    report = run_replay(options, told)
    # Standard output is for the alarms, unless there are none or they go elsewhere.
    is_free = bool(options.thresholds) or alarms is not None
    if as_json:
        out = sys.stdout.buffer if is_free else sys.stderr.buffer
        out.write(orjson.dumps(report) + b"\n")
        out.flush()
    else:
        if options.thresholds:
            show_thresholds(report, Console(highlight=False, soft_wrap=True))
        show_report(report, told, letters=rejects is not None)
    if strict:
        _check_complete(report["streams"].values())


def _check_complete(streams: Iterable[Mapping[str, Any]]) -> None:
    """Complain about rows that were rejected or late."""
    found = list(streams)
    rejected = sum(sum(it["rejected"].values()) for it in found)
    late = sum(it["late"] for it in found)
    if rejected or late:
        raise VerificationError(f"{rejected} rows were rejected, {late} events were late")
