"""Follow alarms, dead letters and late events, or the list of a condition (``tail``)."""

# Imports inside the command: Kafka's client takes a second to import; --help does not need it.
# ruff: noqa: PLC0415
import sys
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Annotated, Any

import typer
from rich.console import Console

from cli.client.lines import write_json_line
from cli.settings import Settings, read_settings
from correlation.printable import printable

# Width of lines that are not wrapped.
_NO_WIDTH = 100_000


def tail(
    *,
    condition: Annotated[
        list[str] | None, typer.Option(help="Show only alarms of this condition. Repeatable.")
    ] = None,
    topic: Annotated[str | None, typer.Option(help="Output topic of a condition.")] = None,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Start with the oldest stored alarm.")
    ] = False,
    count: Annotated[
        int | None,
        typer.Option(
            "--count",
            "-n",
            help="Number of alarms, or of updates of lists, after which the command ends.",
            min=1,
        ),
    ] = None,
    set_aside: Annotated[
        bool, typer.Option("--set-aside", help="Show dead letters and late events instead.")
    ] = False,
    present: Annotated[
        str | None,
        typer.Option(
            "--list",
            metavar="CONDITION",
            help="Show the present list of a condition instead, as it changes.",
        ),
    ] = None,
    bootstrap: Annotated[
        str | None,
        typer.Option(help="Addresses of the Kafka brokers; default: COINCIDE_BOOTSTRAP."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> None:
    """Show alarms and changes of lists as they arrive, each exactly once."""
    settings = read_settings(bootstrap=bootstrap)
    chosen = {"--condition": condition, "--topic": topic}
    if set_aside and any(chosen.values()):
        raise typer.BadParameter("--set-aside cannot be combined with --condition or --topic")
    if present is not None:
        others = {**chosen, "--set-aside": set_aside, "--from-beginning": from_beginning}
        for option in (it for it, value in others.items() if value):
            raise typer.BadParameter(f"--list cannot be combined with {option}")
        _follow_list(settings, present, count, as_json=as_json)
        return
    found = _follow(settings, condition, topic, from_beginning=from_beginning, aside=set_aside)
    console = Console(highlight=False, soft_wrap=True, emoji=False)
    for record, line in islice(found, count):
        if as_json:
            write_json_line(record)
        else:
            console.print(line, markup=False)


def _report(line: str) -> None:
    """Write a line on standard error; it may contain strings of records."""
    console = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)
    console.print(printable(line), markup=False)


def _follow(
    settings: Settings,
    conditions: list[str] | None,
    topic: str | None,
    *,
    from_beginning: bool,
    aside: bool,
) -> Iterable[tuple[Mapping[str, Any], str]]:
    """Return JSON object and line of each record."""
    from cli.client.alarms import follow_alarms, follow_set_aside, hint_at_silence
    from cli.client.lines import describe_result, describe_set_aside

    if aside:
        letters = follow_set_aside(settings, from_beginning=from_beginning, report=_report)
        return ((it, describe_set_aside(it)) for it in letters if it is not None)
    results = follow_alarms(settings, topic, from_beginning=from_beginning, report=_report)
    # Scripts may treat output on stderr as an error.
    shown = hint_at_silence(results, _report) if sys.stderr.isatty() else results
    return (
        (it.result, describe_result(*it))
        for it in shown
        if it is not None and (not conditions or it.result["condition"] in conditions)
    )


def _follow_list(settings: Settings, name: str, count: int | None, *, as_json: bool) -> None:
    """Show the lists of a condition as JSON lines, or as tables."""
    from rich.live import Live

    from cli.client.list_tables import FittedLists, ShownLists
    from cli.client.lists import find_lists, follow_lists

    lists = find_lists(settings, name)
    updates = islice(follow_lists(settings, name, lists, _report), count)
    if as_json:
        for update in updates:
            write_json_line(update)
        return
    console = Console(highlight=False)
    shown = ShownLists(name, lists)
    if not console.is_terminal:
        # A file or a pipe has no width: each item is a line.
        console.width = _NO_WIDTH
        for update in updates:
            console.print(shown.take(update))
        return
    with Live(FittedLists(shown), console=console, auto_refresh=False) as live:
        try:
            for update in updates:
                shown.apply(update)
                live.refresh()
        finally:
            # All items remain above the prompt.
            live.update(shown.render())
