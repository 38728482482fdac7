"""Options of ``coincide replay``; its dependencies are imported when it runs."""

# Imports inside the command: --help does not need them.
# ruff: noqa: PLC0415
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console

from cli.client.lines import counted
from cli.errors import VerificationError
from cli.replay.options import MAX_PROCESSES, Format
from cli.settings import read_settings


def replay(
    *,
    file: Annotated[
        list[Path],
        typer.Option(
            "--file", "-f", help="YAML or JSON file of streams and conditions, as for apply."
        ),
    ],
    events: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STREAM=FILE",
            help="Events of a stream: JSON lines, CSV or Parquet; - is standard input. Repeatable, "
            "also for the same stream.",
        ),
    ] = None,
    topics: Annotated[
        bool,
        typer.Option(
            "--topics",
            help="Read the events from the Kafka topics of the streams.",
        ),
    ] = False,
    bootstrap: Annotated[
        str | None,
        typer.Option(help="With --topics: Kafka brokers; COINCIDE_BOOTSTRAP by default."),
    ] = None,
    format_: Annotated[
        Format | None,
        typer.Option(
            "--format", help="Format of standard input, and of files with other extensions."
        ),
    ] = None,
    condition: Annotated[
        list[str] | None, typer.Option(help="Only this condition. Repeatable.")
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(
            metavar="STREAM=PATH",
            help="Field with the join key, if the mapping uses Kafka's record key.",
        ),
    ] = None,
    sort: Annotated[
        bool,
        typer.Option("--sort", help="Sort each file by latest time first; needs memory."),
    ] = False,
    thresholds: Annotated[
        str | None,
        typer.Option(
            help="Count the results at 0.5,0.6 or 0.5..0.9:0.1 instead of writing alarms."
        ),
    ] = None,
    alarms: Annotated[
        Path | None, typer.Option(help="File of the alarms; standard output by default.")
    ] = None,
    rejects: Annotated[
        Path | None, typer.Option(help="File of the rejected rows, with the reason.")
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(
            help="Number of processes; all cores by default, one for small inputs.",
            min=1,
            max=MAX_PROCESSES,
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit code 1 if a row was rejected, late or lost.")
    ] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Replace existing files of --alarms and --rejects."),
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write the summary as JSON, for scripts.")
    ] = False,
) -> None:
    """Run conditions over files or whole Kafka topics; alarms are JSON lines."""
    from cli.replay.lists import show_lists
    from cli.replay.options import (
        ReplayOptions,
        check_source,
        event_files,
        split_assignment,
    )
    from cli.replay.report import show_rejected, show_report, show_thresholds
    from cli.replay.thresholds import read_thresholds

    given = {
        "--events": events,
        "--format": format_,
        "--key": key,
        "--sort": sort,
        "--bootstrap": bootstrap,
    }
    check_source({option for option, value in given.items() if value}, topics=topics)
    counted = read_thresholds(thresholds) if thresholds is not None else ()
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    settings = read_settings(bootstrap=bootstrap)
    options = ReplayOptions(
        resources=tuple(file),
        files=event_files(events or (), format_),
        conditions=tuple(condition or ()),
        keys=tuple(split_assignment(it, "--key", "STREAM=PATH") for it in key or ()),
        sort=sort,
        processes=processes,
        alarms=alarms,
        rejects=rejects,
        thresholds=counted,
        max_record_bytes=settings.max_record_bytes,
        force=force,
    )
    if topics:
        # A replay of files needs no Kafka client.
        from cli.replay.topic_run import run_topic_replay

        report = run_topic_replay(settings, options, console)
    else:
        from cli.replay.run import run_replay

        report = run_replay(options, console)
    # Standard output is for the alarms, unless they are only counted or written to a file.
    is_free = bool(counted) or alarms is not None
    if as_json:
        out = sys.stdout.buffer if is_free else sys.stderr.buffer
        out.write(orjson.dumps(report) + b"\n")
        out.flush()
    else:
        if counted:
            show_thresholds(report, Console(highlight=False, soft_wrap=True))
        show_report(report, console)
        show_lists(report, console)
    # If the JSON summary is on standard error, it is the only output there.
    if is_free or not as_json:
        show_rejected(report, console, letters=rejects is not None, strict=strict)
    if strict:
        _check_complete(report["streams"].values())


def _check_complete(streams: Iterable[Mapping[str, Any]]) -> None:
    """Raise VerificationError if rows were rejected or late, or lost before they were read."""
    found = list(streams)
    rejected = sum(sum(it["rejected"].values()) for it in found)
    late = sum(it["late"] for it in found)
    lost = sum(it.get("lost", 0) for it in found)
    if rejected or late or lost:
        gone = f", {counted(lost, 'record')} lost" if lost else ""
        raise VerificationError(
            f"--strict: {counted(rejected, 'row')} rejected, {counted(late, 'event')} late{gone}"
        )
